"""What the two readers of capture formats share: rows of packets, and problems told once."""

from __future__ import annotations

from typing import Protocol

from dissector.capture.columns import Bytes, Int32s, Int64s
from dissector.capture.formats.window_buffers import BufferPool
from dissector.errors import Problem

MAX_RECORD_BYTES = 256 << 20
"""No packet or block is longer; a length above it is damage."""

TIME, START, CAPTURED, ORIGINAL = range(4)
COLUMNS = 4
"""The columns of `Rows.numbers`."""

TIME_MIN, TIME_MAX = -(2**62), 2**62 - 1
"""
Times in ns that packets may have, 1823 to 2116; others become the nearest of these. So the
difference of any two has 64 bits, and none is a number that stands for no time.
"""

_BYTES_A_ROW = 64
"""About the least that a packet takes in a file, its header included."""

_BYTES_A_STEP = 100
"""And about what it takes on a small average."""

_LEAST_ROWS = 16


class PacketRows:
    """
    The packets found so far in a window.

    Attributes:
        numbers: Of each, a column, its time in ns, start, captured and original length.
        links: Of each its link type.
        expected_packets: About how many packets this window will have.
        count: How many columns are filled.
        problems: What was wrong on the way.
    """

    numbers: Int64s
    links: Int32s

    def __init__(self, buffers: BufferPool) -> None:
        self._buffers = buffers
        self._told: set[str] = set()
        self.problems: list[Problem] = []
        self.start_window(0)

    def start_window(self, window_bytes: int) -> None:
        """Start anew, with room for the packets of a window as they are as a rule."""
        self._allocate(window_bytes // _BYTES_A_ROW + _LEAST_ROWS)
        self.expected_packets = window_bytes // _BYTES_A_STEP
        self.count = 0
        self.problems = []

    def grow(self) -> None:
        """Make room for twice as many."""
        numbers, links, count = self.numbers, self.links, self.count
        self._allocate(2 * len(links))
        self.numbers[:, :count] = numbers[:, :count]
        self.links[:count] = links[:count]

    def _allocate(self, rows: int) -> None:
        self.numbers = self._buffers.acquire("i8", COLUMNS, rows)
        self.links = self._buffers.acquire("i4", rows)

    def add(self, time_ns: int, start: int, captured: int, original: int, link: int) -> None:
        """Add a packet."""
        if self.count == len(self.links):
            self.grow()
        self.numbers[:, self.count] = time_ns, start, captured, original
        self.links[self.count] = link
        self.count += 1

    def report(self, what: str, position: int) -> None:
        """Note damage at a byte of the file; the same words are noted once a file."""
        if what not in self._told:
            self._told.add(what)
            self.problems.append(Problem(what, position=position))


class FormatReader(Protocol):
    """
    Reads one capture format out of windows of the file.

    Attributes:
        needed_bytes: Bytes that the next record needs, once `scan` has returned.
        stopped: The file is damaged so that it can't be read further.
    """

    needed_bytes: int
    stopped: bool

    def scan(self, window: Bytes, at: int, base: int, rows: PacketRows) -> int:
        """
        Read the whole records from `at` on in `window`, which starts at byte `base` of the file.

        Returns:
            Where in the window the first record starts that is not whole.
        """
