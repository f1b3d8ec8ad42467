"""Output that is printed again and again while a capture is read, on a terminal in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from shutil import get_terminal_size

from dissector.cli.output import is_terminal, write_lines

_HOME, _ERASE_LINE, _ERASE_BELOW, _ERASE_ALL = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[H\x1b[2J"
"""Source: ECMA-48 (CUP, EL, ED)."""


class RefreshedOutput:
    """Lines that replace earlier ones on a terminal and in a file, and follow them in a pipe."""

    def __init__(self, output: str | None, interval_s: float | None) -> None:
        """Start; without an interval only the last lines are written."""
        self._output = output
        self._interval_s = interval_s
        self._due_s = time.monotonic() + (interval_s or 0.0)
        self._is_shown = False

    def refresh(self, lines: Callable[[], Sequence[str]]) -> None:
        """Write the lines if it is time to."""
        if self._interval_s is None or time.monotonic() < self._due_s:
            return
        current = lines()
        if is_terminal(self._output):
            self._write_in_place(current)
        else:
            write_lines(current, self._output)
        self._is_shown = True
        self._due_s = time.monotonic() + self._interval_s

    def write_last(self, lines: Sequence[str]) -> None:
        """Write all lines at the end."""
        if self._is_shown and is_terminal(self._output):
            write_lines([_ERASE_ALL], None, end="")
        write_lines(lines, self._output)

    def _write_in_place(self, lines: Sequence[str]) -> None:
        """Overwrite the screen with as many lines as it has."""
        room = get_terminal_size().lines - 1
        if len(lines) > room:
            left_out = len(lines) - room + 1
            lines = [*lines[: room - 1], f"... {left_out} more lines: --top N, or a larger window"]
        start = _HOME if self._is_shown else _ERASE_ALL
        shown = "".join(f"{line}{_ERASE_LINE}\n" for line in lines)
        write_lines([f"{start}{shown}{_ERASE_BELOW}"], None, end="")
