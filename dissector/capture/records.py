"""What the two readers of capture formats share: rows of packets, and problems told once."""

from __future__ import annotations

from array import array
from typing import Protocol

import numpy as np

from dissector.capture.columns import Int64s
from dissector.errors import Problem

MAX_RECORD_BYTES = 256 << 20
"""No packet or block is longer; a length above it is damage."""

_COLUMNS = 5
_TIME_MIN, _TIME_MAX = -(2**63), 2**63 - 1


class Rows:
    """
    The packets found so far in a window.

    Attributes:
        numbers: Of each its time in ns, start, captured and original length, and link type.
        problems: What was wrong on the way.
    """

    def __init__(self) -> None:
        self.numbers = array("q")
        self._told: set[str] = set()
        self.problems: list[Problem] = []

    def add(self, time_ns: int, start: int, captured: int, original: int, link: int) -> None:
        """Add a packet; a time that no clock shows becomes the nearest that fits."""
        if not _TIME_MIN <= time_ns <= _TIME_MAX:
            time_ns = _TIME_MIN if time_ns < 0 else _TIME_MAX
        self.numbers.extend((time_ns, start, captured, original, link))

    def report(self, what: str, position: int) -> None:
        """Note damage at a byte of the file; the same words are noted once a file."""
        if what not in self._told:
            self._told.add(what)
            self.problems.append(Problem(what, position=position))

    def take(self) -> tuple[Int64s, list[Problem]]:
        """Return the rows [n, 5] and problems so far, and start anew."""
        rows = np.array(self.numbers, dtype=np.int64).reshape(-1, _COLUMNS)
        problems = self.problems
        self.numbers = array("q")
        self.problems = []
        return rows, problems


class Reader(Protocol):
    """
    Reads one capture format out of windows of the file.

    Attributes:
        need: Bytes that the next record needs, once `scan` has returned.
        stopped: The file is damaged so that it can't be read further.
    """

    need: int
    stopped: bool

    def scan(self, window: memoryview, base: int, rows: Rows) -> int:
        """
        Read the whole records in `window`, which starts at byte `base` of the file.

        Returns:
            Where in the window the first record starts that is not whole.
        """
