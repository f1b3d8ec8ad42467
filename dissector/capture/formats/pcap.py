"""
Classic pcap: both byte orders, microseconds and nanoseconds, and Kuznetzov's longer record header.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html and, for what old writers did
to the two lengths, https://www.tcpdump.org/manpages/pcap-savefile.5.html
"""

from __future__ import annotations

import struct

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.formats.packet_rows import (
    CAPTURED,
    MAX_RECORD_BYTES,
    ORIGINAL,
    START,
    TIME,
    PacketColumns,
    PacketRows,
)
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8

HEADER_BYTES = 24

# Magic number -> size of a record header in bytes, nanoseconds per unit of its fraction.
_MAGICS = {0xA1B2C3D4: (16, 1000), 0xA1B23C4D: (16, 1), 0xA1B2CD34: (24, 1000)}
_LINK_MASK = 0x03FFFFFF  # the upper bits hold the length of the frame check sequence and its flag

# Order of the two lengths: captured first, original first, or the smaller one first.
_CAPTURED_FIRST, _ORIGINAL_FIRST, _SMALLER_FIRST = range(3)

# Reasons to stop scanning: a record is incomplete, is invalid, or has no room in the columns.
_INCOMPLETE, _INVALID, _FULL = range(3)


def is_pcap(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a classic pcap file."""
    return _order(head) is not None


def file_header(head: bytes) -> tuple[int, int]:
    """Return link type and snapshot length of a classic pcap file."""
    snap_bytes, link = struct.unpack_from(f"{_order(head)}16xII", head)
    return link & _LINK_MASK, snap_bytes


def _order(head: bytes) -> str | None:
    if len(head) >= 4:
        for order in "<>":
            if struct.unpack_from(f"{order}I", head)[0] in _MAGICS:
                return order
    return None


class PcapReader:
    """Reader of classic pcap; see `FormatReader`. It starts after the file header, `head`."""

    def __init__(self, head: bytes) -> None:
        order = _order(head)
        magic, major, minor, _, _, _, link = struct.unpack_from(f"{order}IHHiIII", head)
        self._big = int(order == ">")
        self._record_bytes, self._unit_ns = _MAGICS[magic]
        self._link = link & _LINK_MASK
        version = (major, minor)
        self._lengths = (
            _ORIGINAL_FIRST
            if version < (2, 3)
            else _SMALLER_FIRST
            if version == (2, 3)
            else _CAPTURED_FIRST
        )
        self.needed_bytes = self._record_bytes
        self.stopped = False

    def time_ns(self, record: bytes) -> int:
        """Return the time in a record header."""
        seconds, fraction = struct.unpack_from(">II" if self._big else "<II", record)
        return int(seconds * 1_000_000_000 + fraction * self._unit_ns)

    def scan(self, window: Bytes, at: int, base: int, rows: PacketRows) -> int:
        """Read the complete records in the window; see `FormatReader.scan`."""
        state = np.zeros(3, np.int64)
        while True:
            state[:2] = at, rows.count
            status = _scan(
                window,
                self._big,
                self._record_bytes,
                self._unit_ns,
                self._lengths,
                self._link,
                rows.columns(),
                state,
            )
            at, rows.count, captured = state.tolist()
            if status != _FULL:
                break
            rows.grow()
        self.needed_bytes = self._record_bytes + captured
        if status == _INVALID:
            rows.report(f"invalid packet length {captured:,}: reading stops", base + at)
            self.stopped = True
        return at


@Kernel
def _scan(
    data: U8,
    big: int,
    record_bytes: int,
    unit_ns: int,
    lengths: int,
    link: int,
    columns: PacketColumns,
    state: I64,
) -> int:
    """
    Write a column for each complete record; return the stop reason.

    Args:
        data: The window.
        big: Whether integers are big-endian.
        record_bytes: Size of a record header.
        unit_ns: Nanoseconds per unit of the fraction of a second.
        lengths: Order of the two lengths.
        link: The link type of all packets.
        columns: Receives the columns.
        state: Input and output: the offset of the next record and the number of filled columns.
            Output only: the captured length of the record that stopped the scan, 0 if its header is
            incomplete.
    """
    at, count = state[0], state[1]
    captured = 0
    status = _INCOMPLETE
    while at + record_bytes <= len(data):
        captured = u32_of(data, at + 8, big)
        original = u32_of(data, at + 12, big)
        if lengths == _ORIGINAL_FIRST or (lengths == _SMALLER_FIRST and captured > original):
            captured, original = original, captured
        start = at + record_bytes
        if captured > MAX_RECORD_BYTES:
            status = _INVALID
            break
        if start + captured > len(data):
            break
        if count == len(columns.links):
            status = _FULL
            break
        seconds, fraction = u32_of(data, at, big), u32_of(data, at + 4, big)
        columns.numbers[TIME, count] = seconds * 1_000_000_000 + fraction * unit_ns
        columns.numbers[START, count] = start
        columns.numbers[CAPTURED, count] = captured
        columns.numbers[ORIGINAL, count] = original
        columns.links[count] = link
        count += 1
        at = start + captured
        captured = 0
    state[0], state[1], state[2] = at, count, captured
    return status
