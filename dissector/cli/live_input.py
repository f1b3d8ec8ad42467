"""Live captures as the input of commands."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dissector.capture.formats.byte_source import StopSignal
from dissector.cli import interrupt
from dissector.cli.declared.reading_options import LiveOptions
from dissector.errors import UsageError
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.capture.live.capture_plan import CapturePlan
    from dissector.capture.live.live_capture import LiveCapture

Given = TypeVar("Given", bound=LiveOptions)
Status = TypeVar("Status")


class LiveInput(list[str]):
    """The captures of a command that captures: `-`, its packets, and their end conditions."""

    def __init__(self, packets: io.FileIO, stop: StopSignal) -> None:
        super().__init__(["-"])
        self.packets = packets
        self.stop = stop


def is_pipe(capture: str) -> bool:
    """Return whether a capture comes from a pipe."""
    try:
        found = os.fstat(sys.stdin.fileno()) if capture == "-" else Path(capture).stat()
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(found.st_mode)


def accepts_live(command: Callable[[Given], Status]) -> Callable[[Given], Status]:
    """Make a command capture by itself if its options say so."""

    @wraps(command)
    def run(given: Given) -> Status:
        if not given.interfaces:
            if given.capture_filter or given.autostop or given.file_to_keep or given.ring:
                raise UsageError("-f, -a, -w and --ring require -i IFACE")
            return command(given)
        if given.captures:
            raise UsageError("-i captures by itself, and can't be combined with captures")
        plan = capture_plan(given)
        return _run_live(lambda live: command(given.replace(captures=live)), plan)

    return run


def require_captures(captures: Sequence[str]) -> None:
    """
    Check that there is something to read.

    Raises:
        UsageError: There is neither a capture nor an interface.
    """
    if not captures:
        raise UsageError("no input: CAPTURE... or -i IFACE is missing")


def capture_plan(given: LiveOptions) -> CapturePlan:
    """
    Return the captured interfaces, and when capturing ends.

    Raises:
        UsageError: An option has an invalid value, or requires another one.
    """
    from dissector.capture.live.capture_plan import CapturePlan

    limits = _settings("-a", given.autostop, ("duration", "packets", "filesize"))
    ring = ring_of(given.ring)
    file = given.file_to_keep
    if ring and file is None:
        raise UsageError("--ring requires -w FILE")
    if file is not None and str(file) == "-":
        raise UsageError("-w takes a file; packets are not written to stdout")
    return CapturePlan(
        interfaces=given.interfaces,
        capture_filter=given.capture_filter,
        duration_s=limits.get("duration"),
        packets=_whole(limits, "packets"),
        file_kb=_whole(limits, "filesize"),
        file=file,
        ring_files=ring.files if ring else None,
        ring_kb=ring.file_kb if ring else 0,
    )


class Ring(NamedTuple):
    """The limits of a ring of files: only the last are kept, the next begins at a size."""

    files: int
    file_kb: int


def ring_of(text: str | None) -> Ring | None:
    """
    Parse `files:N,filesize:KB`; None without a text.

    Raises:
        UsageError: The text has another form.
    """
    ring = _settings("--ring", (text or "").split(","), ("files", "filesize"))
    if ring and len(ring) < 2:
        raise UsageError("--ring takes files:N,filesize:KB")
    return Ring(int(ring["files"]), int(ring["filesize"])) if ring else None


def _run_live(command: Callable[[LiveInput], Status], plan: CapturePlan) -> Status:
    """Run a command on a live capture; report dropped packets, and failures of the capture."""
    from dissector.capture.live.live_capture import LiveCapture

    capture = LiveCapture(plan)
    # Before the first line of a running capture: from then on Ctrl-C is its normal end.
    stop = interrupt.new_stop_signal(capture.stop)
    place = f"{', '.join(plan.interfaces)} with {capture.program}"
    print("kafkashark:", escaped(f"capturing on {place}"), file=sys.stderr, flush=True)
    try:
        status = command(LiveInput(capture.packets, stop))
    finally:
        capture.close()
        for text in _losses(capture):
            print("kafkashark:", escaped(text), file=sys.stderr)
    if failure := capture.failure():
        raise UsageError(failure)
    return status


def _losses(capture: LiveCapture) -> Iterator[str]:
    """Yield lost and unread packets."""
    for place, count in capture.dropped().items():
        packets = "1 packet was" if count == 1 else f"{count:,} packets were"
        yield f"{packets} dropped by the kernel on {place}: the capture has gaps"
    if count := capture.missed_files:
        files = "1 file was" if count == 1 else f"{count:,} files were"
        yield f"{files} deleted by the ring before it could be read: --ring with larger files"


def _settings(option: str, texts: Iterable[str], allowed: tuple[str, ...]) -> dict[str, float]:
    """Return the values of `NAME:NUMBER` texts, by their names."""
    values: dict[str, float] = {}
    for text in filter(None, texts):
        name, _, number = text.partition(":")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        is_whole = value.is_integer() or name == "duration"
        if name not in allowed or not 0 < value < 1e12 or not is_whole:
            choices = ", ".join(f"{each}:N" for each in allowed)
            raise UsageError(f"{option} takes {choices} with a positive N, not {text!r}")
        values[name] = value
    return values


def _whole(values: dict[str, float], name: str) -> int | None:
    return int(values[name]) if name in values else None
