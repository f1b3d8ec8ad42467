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
        tls_secrets: TLS key logs found in the window.
    """

    numbers: Int64s
    links: Int32s

    def __init__(self, buffers: BufferPool) -> None:
        self._buffers = buffers
        self._reported: set[str] = set()
        self.problems: list[Problem] = []
        self.tls_secrets: list[bytes] = []
        self.start_window(0)

    def start_window(self, window_bytes: int) -> None:
        """Start a new window, with room for the packets it usually has."""
        self._allocate(window_bytes // _BYTES_A_ROW + _MIN_ROWS)
        self.expected_packets = window_bytes // _BYTES_A_STEP
        self.count = 0
        self.problems = []
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

    def report(self, text: str, position: int) -> None:
        """Report damage at a byte of the file; the same text is reported once per file."""
        if text not in self._reported:
            self._reported.add(text)
            self.problems.append(Problem(text, position=position))


class FormatReader(Protocol):
    """
    Reader of one capture format, from windows of the file.

    Attributes:
        needed_bytes: Bytes that the next record needs, once `scan` has returned.
        stopped: Whether the file is too damaged to be read further.
    """

    needed_bytes: int
    stopped: bool

    def scan(self, window: Bytes, at: int, base: int, rows: PacketRows) -> int:
        """
        Read the complete records from `at` on in `window`, which starts at byte `base` of the file.

        Returns:
            Offset in the window of the first incomplete record.
        """
