"""Options of live captures, added to commands by a decorator."""

from __future__ import annotations

import inspect
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from dissector.capture.formats.byte_source import StopSignal
from dissector.cli import interrupt
from dissector.cli.parsing.parameters import Option
from dissector.errors import UsageError
from dissector.file_roles import WRITES
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.capture.live.capture_plan import CapturePlan
    from dissector.capture.live.live_capture import LiveCapture

Interfaces = Annotated[
    list[str] | None,
    Option(
        "-i",
        "--interface",
        metavar="IFACE",
        help="Capture on this interface, with dumpcap or else tcpdump, until Ctrl-C. May be given "
        "more than once.",
        show_default=False,
    ),
]
CaptureFilter = Annotated[
    str,
    Option(
        "-f",
        "--capture-filter",
        metavar="BPF",
        help="With -i: capture only these packets, as in 'tcp port 9092' (pcap-filter).",
        show_default=False,
    ),
]
Autostop = Annotated[
    list[str] | None,
    Option(
        "-a",
        "--autostop",
        metavar="duration:S|packets:N|filesize:KB",
        help="With -i: when the capture ends. May be given more than once.",
        show_default=False,
    ),
]
KeptFile = Annotated[
    Path | None,
    Option(
        "-w",
        "--keep",
        metavar="FILE",
        help="With -i: keep the packets in a file, too.",
        show_default=False,
    ),
    WRITES,
]
Ring = Annotated[
    str | None,
    Option(
        "--ring",
        metavar="files:N,filesize:KB",
        help="With -w: keep the last N files, each of this size.",
        show_default=False,
    ),
]

_CAPTURES_PARAMETER = "captures"


class LiveOptions(NamedTuple):
    """The values of the options, in the order of `_PARAMETERS`."""

    interfaces: list[str] | None
    capture_filter: str
    autostop: list[str] | None
    file: Path | None
    ring: str | None

    def plan(self) -> CapturePlan:
        """
        Return the captured interface and options.

        Raises:
            UsageError: An option has an invalid value, or requires another one.
        """
        from dissector.capture.live.capture_plan import CapturePlan

        limits = _settings("-a", self.autostop or (), ("duration", "packets", "filesize"))
        ring = _settings("--ring", (self.ring or "").split(","), ("files", "filesize"))
        if ring and self.file is None:
            raise UsageError("--ring requires -w FILE")
        if ring and len(ring) < 2:
            raise UsageError("--ring takes files:N,filesize:KB")
        if self.file is not None and str(self.file) == "-":
            raise UsageError("-w takes a file; packets are not written to stdout")
        return CapturePlan(
            interfaces=tuple(self.interfaces or ()),
            capture_filter=self.capture_filter,
            duration_s=limits.get("duration"),
            packets=_whole(limits, "packets"),
            file_kb=_whole(limits, "filesize"),
            file=self.file,
            ring_files=_whole(ring, "files"),
            ring_kb=_whole(ring, "filesize") or 0,
        )


_PARAMETERS: dict[str, tuple[Any, Any]] = {
    "interfaces": (Interfaces, None),
    "capture_filter": (CaptureFilter, ""),
    "autostop": (Autostop, None),
    "file_to_keep": (KeptFile, None),
    "ring": (Ring, None),
}


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


def accepts_live(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a live capture to a command with a list of captures."""

    def run(**values: Any) -> Any:
        options = LiveOptions(*(values.pop(name) for name in _PARAMETERS))
        captures = values.pop(_CAPTURES_PARAMETER)
        if not options.interfaces:
            if any(options[1:]):
                raise UsageError("-f, -a, -w and --ring require -i IFACE")
            if not captures and not is_optional:
                raise UsageError("no input: CAPTURE... or -i IFACE is missing")
            return command(captures, **values)
        if captures:
            raise UsageError("-i captures by itself, and can't be combined with captures")
        plan = options.plan()
        return _run_live(lambda live: command(live, **values), plan)

    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    parameters = {
        name: each.replace(annotation=hints[name]) for name, each in signature.parameters.items()
    }
    first = parameters[_CAPTURES_PARAMETER]
    is_optional = first.default is None
    argument = Annotated[(list[str] | None, *first.annotation.__metadata__)]
    parameters[_CAPTURES_PARAMETER] = first.replace(annotation=argument, default=None)
    for name, (annotation, default) in _PARAMETERS.items():
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
        )
    run.__name__, run.__doc__, run.__module__ = (
        command.__name__,
        command.__doc__,
        command.__module__,
    )
    run.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _run_live(command: Callable[[LiveInput], Any], plan: CapturePlan) -> Any:
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
