"""
Ctrl-C: a command that reads captures ends where it is, and prints what it has.

A second Ctrl-C ends the process at once. Before a capture is read the signal does what it does by
default: a traceback of an import helps nobody.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from dissector.capture.formats.byte_source import StopSignal

STATUS = 128 + signal.SIGINT

_stops: list[StopSignal] = []
"""What the first Ctrl-C asks; empty where no capture is read."""

_unfinished: set[Path] = set()
"""Files that nobody shall find if the process ends at once."""


@contextmanager
def restored() -> Iterator[None]:
    """Leave the signal at the end as it was at the beginning."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        _stops.clear()
        _handle(before)


def default() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt`, for what handles that itself."""
    _handle(signal.default_int_handler)


def stops() -> StopSignal:
    """Return what Ctrl-C asks for the end from now on."""
    stop = StopSignal()
    _stops.append(stop)
    _handle(_ask)
    return stop


def asked() -> bool:
    """Return whether Ctrl-C has ended the reading."""
    return any(stop.is_requested for stop in _stops)


def renew() -> None:
    """Take the signal back from a library that has taken it when it was loaded."""
    if _stops:
        _handle(_ask)


@contextmanager
def removed_if_ended(path: Path) -> Iterator[None]:
    """Remove a file where the process ends before the file is whole."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _unfinished.discard(path)
        path.unlink(missing_ok=True)


def _ask(number: int, frame: FrameType | None) -> None:
    if asked():
        for path in _unfinished:
            with suppress(OSError):
                path.unlink()
        os._exit(STATUS)
    for stop in _stops:
        stop.request()


def _handle(handler: signal._HANDLER) -> None:
    # In another thread signals can't be set; who has them ignored, as nohup, keeps it so.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, handler)
