"""
Classic pcap: both byte orders, microseconds and nanoseconds, and Kuznetzov's longer record header.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html and, for what old writers did
to the two lengths, https://www.tcpdump.org/manpages/pcap-savefile.5.html
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.formats.packet_rows import (
    CAPTURED,
    MAX_RECORD_BYTES,
    ORIGINAL,
    START,
    TIME,
    PacketRows,
)
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel

HEADER_BYTES = 24

# Magic number -> bytes of a record's header, nanoseconds in a unit of its clock.
_MAGICS = {0xA1B2C3D4: (16, 1000), 0xA1B23C4D: (16, 1), 0xA1B2CD34: (24, 1000)}
_LINK_MASK = 0x03FFFFFF  # above are the length of the frame check sequence and its flag

# Which of the two lengths comes first: the captured, the original, or the smaller one.
_USUAL, _SWAPPED, _MIXED = range(3)

# Why scanning stops: a record is not whole, can't be, or finds no room.
_CUT, _ODD, _FULL = range(3)


def is_pcap(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a classic pcap file."""
    return _order(head) is not None


def _order(head: bytes) -> str | None:
    if len(head) >= 4:
        for order in "<>":
            if struct.unpack_from(f"{order}I", head)[0] in _MAGICS:
                return order
    return None


class PcapReader:
    """Reads classic pcap; see `Reader`. It starts behind the file's header, `head`."""

    def __init__(self, head: bytes) -> None:
        order = _order(head)
        magic, major, minor, _, _, _, link = struct.unpack_from(f"{order}IHHiIII", head)
        self._big = int(order == ">")
        self._record_bytes, self._unit_ns = _MAGICS[magic]
        self._link = link & _LINK_MASK
        version = (major, minor)
        self._lengths = _SWAPPED if version < (2, 3) else _MIXED if version == (2, 3) else _USUAL
        self.needed_bytes = self._record_bytes
        self.stopped = False

    def time_ns(self, record: bytes) -> int:
        """Return the time that the header of a record tells."""
        seconds, fraction = struct.unpack_from(">II" if self._big else "<II", record)
        return int(seconds * 1_000_000_000 + fraction * self._unit_ns)

    def scan(self, window: Bytes, at: int, base: int, rows: PacketRows) -> int:
        """Read the whole records in the window; see `Reader.scan`."""
        state = np.zeros(3, np.int64)
        while True:
            state[:2] = at, rows.count
            why = _scan(
                window,
                self._big,
                self._record_bytes,
                self._unit_ns,
                self._lengths,
                self._link,
                rows.numbers,
                rows.links,
                state,
                work=rows.expected_packets,
            )
            at, rows.count, captured = state.tolist()
            if why != _FULL:
                break
            rows.grow()
        self.needed_bytes = self._record_bytes + captured
        if why == _ODD:
            rows.report(f"a packet of {captured:,} bytes is none: reading stops", base + at)
            self.stopped = True
        return at


@Kernel
def _scan(
    data: Any,
    big: int,
    record_bytes: int,
    unit_ns: int,
    lengths: int,
    link: int,
    numbers: Any,
    links: Any,
    state: Any,
) -> int:
    """
    Write a column for each whole record, and return why it stops.

    Args:
        data: The window.
        big: Whether the highest byte of a number comes first.
        record_bytes: Of each record's header.
        unit_ns: Nanoseconds in a unit of the fraction of a second.
        lengths: Which of the two comes first.
        link: The link type of all.
        numbers: As `Rows.numbers`.
        links: As `Rows.links`.
        state: Where the next record begins, and how many columns are filled, from and to which;
            and the length that the record claims at which it stops, 0 where its header is cut.
    """
    at, count = state[0], state[1]
    captured = 0
    why = _CUT
    while at + record_bytes <= len(data):
        captured = u32_of(data, at + 8, big)
        original = u32_of(data, at + 12, big)
        if lengths == _SWAPPED or (lengths == _MIXED and captured > original):
            captured, original = original, captured
        start = at + record_bytes
        if captured > MAX_RECORD_BYTES:
            why = _ODD
            break
        if start + captured > len(data):
            break
        if count == len(links):
            why = _FULL
            break
        seconds, fraction = u32_of(data, at, big), u32_of(data, at + 4, big)
        numbers[TIME, count] = seconds * 1_000_000_000 + fraction * unit_ns
        numbers[START, count] = start
        numbers[CAPTURED, count] = captured
        numbers[ORIGINAL, count] = original
        links[count] = link
        count += 1
        at = start + captured
        captured = 0
    state[0], state[1], state[2] = at, count, captured
    return why
