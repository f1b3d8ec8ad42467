"""
Ctrl-C and SIGTERM: a command that reads captures stops reading, and prints its results so far.

A second signal ends the process immediately. Before a capture is read they keep their default
actions, because a traceback from an import is of no use.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissector.capture.formats.byte_source import StopSignal

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_stop_signals: list[StopSignal] = []
"""Set by the first signal; empty while no capture is read."""

_received: list[int] = []
"""The signals so far."""

_partial_files: set[Path] = set()
"""Incomplete files, removed if the process ends immediately."""


class OutputClosed(Exception):
    """The reader of standard output is gone, as with `| head`; output stops without an error."""


@contextmanager
def restored_handlers() -> Iterator[None]:
    """Restore the handlers of the signals at the end."""
    previous = [(number, signal.getsignal(number)) for number in SIGNALS]
    try:
        yield
    finally:
        _stop_signals.clear()
        _received.clear()
        for number, handler in previous:
            _set_handler(number, handler)


def use_raising_handlers() -> None:
    """Make the signals raise `KeyboardInterrupt`, for commands that handle it themselves."""
    _set_handler(signal.SIGINT, signal.default_int_handler)
    _set_handler(signal.SIGTERM, _act_as_ctrl_c)


def new_stop_signal(end_writer: Callable[[], None] | None = None) -> StopSignal:
    """Return a signal that Ctrl-C and SIGTERM set from now on to stop reading."""
    from dissector.capture.formats.byte_source import StopSignal

    stop = StopSignal(end_writer)
    _stop_signals.append(stop)
    reinstall_handlers()
    return stop


def is_interrupted() -> bool:
    """Return whether a signal has stopped the reading."""
    return any(stop.is_requested for stop in _stop_signals)


def interrupted_status() -> int:
    """Return the exit status of a process that a signal ends: 130 or 143, as in shells."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def exit_status(status: int) -> int:
    """
    Return the exit status of a command after an interrupt.

    A signal is the normal end of live captures, but an interruption of other readings.
    """
    is_live = bool(_stop_signals) and all(stop.ends_writer for stop in _stop_signals)
    return interrupted_status() if _received and not is_live else status


def reinstall_handlers() -> None:
    """Install our handlers again after a library replaced one on import."""
    for number in SIGNALS if _stop_signals else ():
        _set_handler(number, _request_stop)


@contextmanager
def removed_on_exit(path: Path) -> Iterator[None]:
    """Remove a file also if a second signal ends the process before it is complete."""
    _partial_files.add(path)
    try:
        yield
    finally:
        _partial_files.discard(path)


def _request_stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if is_interrupted():
        for path in _partial_files:
            with suppress(OSError):
                path.unlink()
        os._exit(interrupted_status())
    for stop in _stop_signals:
        stop.request()


def _act_as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Do what SIGINT does at present: asyncio, for one, cancels its work in an own handler."""
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def _set_handler(number: int, handler: signal._HANDLER) -> None:
    # Handlers can be set in the main thread only. A signal that is ignored stays ignored, as
    # SIGINT is for the background processes of shells.
    with suppress(ValueError):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
