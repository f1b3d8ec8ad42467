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

_stop_signals: list[StopSignal] = []
"""What the first Ctrl-C asks; empty where no capture is read."""

_partial_files: set[Path] = set()
"""Files that nobody shall find if the process ends at once."""


@contextmanager
def restored_handler() -> Iterator[None]:
    """Leave the signal at the end as it was at the beginning."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        _stop_signals.clear()
        _set_handler(before)


def use_default_handler() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt`, for what handles that itself."""
    _set_handler(signal.default_int_handler)


def new_stop_signal() -> StopSignal:
    """Return what Ctrl-C asks for the end from now on."""
    stop = StopSignal()
    _stop_signals.append(stop)
    _set_handler(_on_sigint)
    return stop


def is_interrupted() -> bool:
    """Return whether Ctrl-C has ended the reading."""
    return any(stop.is_requested for stop in _stop_signals)


def reinstall_handler() -> None:
    """Take the signal back from a library that has taken it when it was loaded."""
    if _stop_signals:
        _set_handler(_on_sigint)


@contextmanager
def removed_on_exit(path: Path) -> Iterator[None]:
    """Remove a file where the process ends before the file is whole."""
    _partial_files.add(path)
    try:
        yield
    finally:
        _partial_files.discard(path)
        path.unlink(missing_ok=True)


def _on_sigint(number: int, frame: FrameType | None) -> None:
    if is_interrupted():
        for path in _partial_files:
            with suppress(OSError):
                path.unlink()
        os._exit(STATUS)
    for stop in _stop_signals:
        stop.request()


def _set_handler(handler: signal._HANDLER) -> None:
    # In another thread signals can't be set; who has them ignored, as nohup, keeps it so.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, handler)
