"""Common parts of the readers of pcap and pcapng: rows of packets, and problems reported once."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dissector.capture.columns import Bytes, Int32s, Int64s
from dissector.capture.formats.window_buffers import BufferPool
from dissector.errors import Problem
from dissector.kernel.arrays import I32, I64Table

MAX_RECORD_BYTES = 256 << 20
"""No packet or block is longer; a greater length is damage."""

TIME, START, CAPTURED, ORIGINAL = range(4)
COLUMNS = 4
"""The columns of `PacketRows.numbers`."""

TIME_MIN, TIME_MAX = -(2**62), 2**62 - 1
"""
Range of packet times in ns, 1823 to 2116; times outside become the nearest of these. So the
difference of any two fits 64 bits, and none equals the number for no time.
"""

_BYTES_A_ROW = 64
"""Approximate minimum size of a packet in a file, including its header."""

_BYTES_A_STEP = 100
"""About the average space of a packet in a capture of small packets."""

_MIN_ROWS = 16

_MAX_LOST_PLACES = 10
"""Damaged places of a file that are reported one by one."""


class PacketColumns(NamedTuple):
    """The columns of `PacketRows`, for kernels."""

    numbers: I64Table
    links: I32


class PacketRows:
    """
    The packets found so far in a window.

    Attributes:
        numbers: A column for each packet: time in ns, start, captured and original length.
        links: The link type of each packet.
        expected_packets: Approximate number of packets in this window.
        count: Number of columns that are filled.
        problems: Damage found in the window.
        spans: The undamaged parts of the window: begin, end, and whether they are pcapng.
        tls_secrets: TLS key logs found in the window.
        break_position: The first byte of the file in the window that is damaged or begins another
            file's header; None without one.
    """

    numbers: Int64s
    links: Int32s

    def __init__(self, buffers: BufferPool) -> None:
        self._buffers = buffers
        self._reported: set[str] = set()
        self._lost_places = self._lost_bytes = 0
        self.problems: list[Problem] = []
        self.tls_secrets: list[bytes] = []
        self.start_window(0)

    def start_window(self, window_bytes: int) -> None:
        """Start a new window, with room for the packets it usually has."""
        self._allocate(window_bytes // _BYTES_A_ROW + _MIN_ROWS)
        self.expected_packets = window_bytes // _BYTES_A_STEP
        self.count = 0
        self.problems = []
        self.spans: list[tuple[int, int, bool]] = []
        self.break_position: int | None = None
        self.tls_secrets = []

    def columns(self) -> PacketColumns:
        """Return the current columns."""
        return PacketColumns._make((self.numbers, self.links))

    def grow(self) -> None:
        """Double the room."""
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

    def add_span(self, begin: int, end: int, is_pcapng: bool) -> None:
        """Record an undamaged part of the window."""
        if self.spans and self.spans[-1][1:] == (begin, is_pcapng):
            begin = self.spans.pop()[0]
        if end > begin:
            self.spans.append((begin, end, is_pcapng))

    def add_break(self, position: int) -> None:
        """Record that damage, or another file, begins at a byte of the file."""
        if self.break_position is None:
            self.break_position = position

    def report_lost(self, why: str, begin: int, end: int) -> None:
        """Report bytes of the file without packets; of many places all but the first in a sum."""
        if self._lost_places < _MAX_LOST_PLACES:
            text = f"{why}: lost {end - begin:,} bytes"
            self.problems.append(Problem(text, position=begin))
        else:
            self._lost_bytes += end - begin
        self._lost_places += 1

    def report_more_lost(self) -> None:
        """Report the places that `report_lost` has only counted, at the end of the file."""
        more = self._lost_places - _MAX_LOST_PLACES
        if more > 0:
            text = f"{more:,} more damaged place{'s' * (more > 1)}: lost {self._lost_bytes:,} bytes"
            self.problems.append(Problem(text))

    def report(self, text: str, position: int) -> None:
        """Report damage at a byte of the file; the same text is reported once per file."""
        if text not in self._reported:
            self._reported.add(text)
            self.problems.append(Problem(text, position=position))


class FormatReader(Protocol):
    """
    Reader of one capture format, from windows of the file.

    Attributes:
        is_pcapng: Whether the format is pcapng.
        needed_bytes: Bytes that the next record needs, once `scan` has returned.
        damage: Why the record at which `scan` has stopped is not valid; empty if it may be.
        at_new_file: Whether `scan` has stopped at the header of another file.
    """

    is_pcapng: bool
    needed_bytes: int
    damage: str
    at_new_file: bool

    @property
    def form(self) -> Int64s:
        """The form of records, for the search of the next one; see `start_search`."""

    def scan(
        self, window: Bytes, at: int, base: int, rows: PacketRows, *, is_last: bool = False
    ) -> int:
        """
        Read the complete records from `at` on in `window`, which starts at byte `base` of the file.

        Args:
            window: Bytes of the file.
            at: Where the records begin.
            base: Position of the window in the file.
            rows: Receives the packets.
            is_last: Whether the file ends with the window.

        Returns:
            Offset in the window of the first record that is incomplete, or not valid.
        """
