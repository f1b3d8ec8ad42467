"""Common parts of the readers of pcap and pcapng: rows of packets, and problems reported once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dissector.capture.columns import Bytes, Int64s
from dissector.capture.formats.window_buffers import BufferPool
from dissector.errors import Problem
from dissector.kernel.arrays import I32, I64
from dissector.kernel.named_rows import NamedRow, RowArray, table_of

MAX_RECORD_BYTES = 256 << 20
"""No packet or block is longer; a greater length is damage."""

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
    """The columns of `Packets` while kernels fill them."""

    time_ns: I64
    start: I64
    captured: I64
    original: I64
    link: I32


@dataclass(slots=True)
class RecordForm(NamedRow):
    """
    The form of records in a file. The first two fields also apply to the blocks of pcapng.

    Attributes:
        is_pcapng: Whether they are blocks of pcapng.
        is_big: Whether integers are big-endian.
        record_bytes: The size of a record header.
        units_per_s: The units of its fraction in a second.
        longest: The longest packet.
        unit_ns: The ns of a unit.
        lengths: The order of the two lengths.
        link: The link type.
    """

    is_pcapng: bool
    is_big: bool
    record_bytes: int = 0
    units_per_s: int = 0
    longest: int = 0
    unit_ns: int = 0
    lengths: int = 0
    link: int = 0

    def to_array(self) -> RowArray:
        """Return it for kernels."""
        return table_of([self], RecordForm).reshape(())


class ScanState(NamedRow):
    """
    How far a kernel came in a window.

    Attributes:
        at: Offset of the next record or block.
        count: Number of packets found.
        needed: Bytes needed behind the header of the record of pcap that stopped it; 0 if the
            header is incomplete.
        time_ns: The time of the last packet of pcapng.
    """

    at: int
    count: int
    needed: int
    time_ns: int


class PacketRows:
    """
    The packets found so far in a window.

    Attributes:
        columns: The columns of the packets.
        expected_packets: Approximate number of packets in this window.
        count: Number of columns that are filled.
        problems: Damage found in the window.
        spans: The undamaged parts of the window: begin, end, and whether they are pcapng.
        tls_secrets: TLS key logs found in the window.
        break_position: The first byte of the file in the window that is damaged or begins another
            file's header; None without one.
    """

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

    def grow(self) -> None:
        """Double the room."""
        columns, count = self.columns, self.count
        self._allocate(2 * len(columns.link))
        for new, old in zip(self.columns, columns, strict=True):
            new[:count] = old[:count]

    def _allocate(self, rows: int) -> None:
        numbers: Int64s = self._buffers.acquire("i8", 4, rows)
        self.columns = PacketColumns._make((*numbers, self._buffers.acquire("i4", rows)))

    def add(self, time_ns: int, start: int, captured: int, original: int, link: int) -> None:
        """Add a packet."""
        if self.count == len(self.columns.link):
            self.grow()
        values = time_ns, start, captured, original, link
        for column, value in zip(self.columns, values, strict=True):
            column[self.count] = value
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
    def form(self) -> RowArray:
        """The form of records, a `RecordForm`, for the search of the next one."""

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
