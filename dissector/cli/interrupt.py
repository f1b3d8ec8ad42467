"""
Ctrl-C: a command that reads captures stops reading, and prints its results so far.

A second Ctrl-C ends the process immediately. Before a capture is read the signal keeps its default
action, because a traceback from an import is of no use.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from dissector.capture.formats.byte_source import StopSignal

STATUS = 128 + signal.SIGINT

_stop_signals: list[StopSignal] = []
"""Set by the first Ctrl-C; empty while no capture is read."""

_partial_files: set[Path] = set()
"""Incomplete files, removed if the process ends immediately."""


@contextmanager
def restored_handler() -> Iterator[None]:
    """Restore the signal's handler at the end."""
    previous = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        _stop_signals.clear()
        _set_handler(previous)


def use_default_handler() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt`, for commands that handle it themselves."""
    _set_handler(signal.default_int_handler)


def new_stop_signal(end_writer: Callable[[], None] | None = None) -> StopSignal:
    """Return a signal that Ctrl-C sets from now on to stop reading; see `StopSignal`."""
    stop = StopSignal(end_writer)
    _stop_signals.append(stop)
    _set_handler(_on_sigint)
    return stop


def is_interrupted() -> bool:
    """Return whether Ctrl-C has stopped the reading."""
    return any(stop.is_requested for stop in _stop_signals)


def exit_status(status: int) -> int:
    """
    Return the exit status of a command after an interrupt.

    Ctrl-C is the normal end of live captures, but an interruption of other readings.
    """
    if is_interrupted() and not all(stop.ends_writer for stop in _stop_signals):
        return STATUS
    return status


def reinstall_handler() -> None:
    """Install our handler again after a library replaced it on import."""
    if _stop_signals:
        _set_handler(_on_sigint)


@contextmanager
def removed_on_exit(path: Path) -> Iterator[None]:
    """Remove a file at the end, also if a second Ctrl-C ends the process before it is complete."""
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
    # Handlers can be set in the main thread only. A signal that is ignored (nohup) stays ignored.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, handler)
