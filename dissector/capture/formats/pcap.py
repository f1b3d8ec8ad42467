"""
Classic pcap: both byte orders, microseconds and nanoseconds, and Kuznetzov's longer record header.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html and, for what old writers did
to the two lengths, https://www.tcpdump.org/manpages/pcap-savefile.5.html
"""

from __future__ import annotations

import struct

import numpy as np

from dissector.capture.columns import Bytes, Int64s
from dissector.capture.formats.packet_rows import (
    CAPTURED,
    MAX_RECORD_BYTES,
    ORIGINAL,
    START,
    TIME,
    PacketColumns,
    PacketRows,
)
from dissector.capture.formats.start_search import (
    BIG,
    FILE,
    FILE_HEADER_BYTES,
    LENGTHS,
    LINK,
    LONGEST,
    MAX_PACKET_BYTES,
    RECORD_BYTES,
    UNDECIDED,
    UNIT_NS,
    begins_file,
    is_next_record,
)
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8

HEADER_BYTES = FILE_HEADER_BYTES

# Magic number -> size of a record header in bytes, nanoseconds per unit of its fraction.
_MAGICS = {0xA1B2C3D4: (16, 1000), 0xA1B23C4D: (16, 1), 0xA1B2CD34: (24, 1000)}
_LINK_MASK = 0x03FFFFFF  # the upper bits hold the length of the frame check sequence and its flag

# Order of the two lengths: captured first, original first, or the smaller one first.
_CAPTURED_FIRST, _ORIGINAL_FIRST, _SMALLER_FIRST = range(3)

# Reasons to stop scanning: a record is incomplete, is invalid, or has no room in the columns; or
# another file begins.
_INCOMPLETE, _INVALID, _FULL, _UNLIKELY, _ZEROS, _NEW_FILE = range(6)
_DAMAGE = {_UNLIKELY: "no packet behind a packet of unlikely length", _ZEROS: "zeros"}


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

    is_pcapng = False

    def __init__(self, head: bytes) -> None:
        order = _order(head)
        magic, major, minor, _, _, snap_bytes, link = struct.unpack_from(f"{order}IHHiIII", head)
        record_bytes, unit_ns = _MAGICS[magic]
        version = (major, minor)
        lengths = (
            _ORIGINAL_FIRST
            if version < (2, 3)
            else _SMALLER_FIRST
            if version == (2, 3)
            else _CAPTURED_FIRST
        )
        longest = max(snap_bytes if snap_bytes <= MAX_RECORD_BYTES else 0, MAX_PACKET_BYTES)
        form = (0, order == ">", record_bytes, 1_000_000_000 // unit_ns, longest, unit_ns, lengths)
        self.form: Int64s = np.array([*form, link & _LINK_MASK], np.int64)
        self.snap_bytes = snap_bytes
        self.needed_bytes = record_bytes
        self.damage = ""
        self.at_new_file = False

    @property
    def record_bytes(self) -> int:
        """Size of a record header."""
        return int(self.form[RECORD_BYTES])

    def time_ns(self, record: bytes) -> int:
        """Return the time in a record header."""
        seconds, fraction = struct.unpack_from(">II" if self.form[BIG] else "<II", record)
        return int(seconds * 1_000_000_000 + fraction * int(self.form[UNIT_NS]))

    def scan(
        self, window: Bytes, at: int, base: int, rows: PacketRows, *, is_last: bool = False
    ) -> int:
        """Read the complete records in the window; see `FormatReader.scan`."""
        state = np.zeros(3, np.int64)
        while True:
            state[:2] = at, rows.count
            status = _scan(window, self.form, int(is_last), rows.columns(), state)
            at, rows.count, needed = state.tolist()
            if status != _FULL:
                break
            rows.grow()
        self.needed_bytes = self.record_bytes + needed
        self.damage = _DAMAGE.get(status, "")
        self.at_new_file = status == _NEW_FILE
        if status == _INVALID:
            self.damage = f"invalid packet length {needed:,}"
        return at


@Kernel
def _scan(data: U8, form: I64, is_last: int, columns: PacketColumns, state: I64) -> int:
    """
    Write a column for each complete record; return the stop reason.

    A record with an unlikely length, longer than the packet or than any, or of no bytes, counts if
    another one, or the end of the file, follows.

    Args:
        data: The window.
        form: The form of records.
        is_last: Whether the file ends with the window.
        columns: Receives the columns.
        state: Input and output: the offset of the next record and the number of filled columns.
            Output only: the bytes needed behind the header of the record that stopped the scan, 0
            if its header is incomplete.
    """
    at, count = state[0], state[1]
    big, record_bytes, lengths = form[BIG], form[RECORD_BYTES], form[LENGTHS]
    captured = 0
    status = _INCOMPLETE
    while at + record_bytes <= len(data):
        captured = u32_of(data, at + 8, big)
        original = u32_of(data, at + 12, big)
        if captured == 0 or captured > MAX_RECORD_BYTES:
            what = begins_file(data, at, is_last)
            if what == FILE:
                status = _NEW_FILE
                break
            if what == UNDECIDED:
                captured = FILE_HEADER_BYTES
                break
        seconds, fraction = u32_of(data, at, big), u32_of(data, at + 4, big)
        if captured == 0 and original == 0 and seconds == 0 and fraction == 0:
            status = _ZEROS
            break
        if lengths == _ORIGINAL_FIRST or (lengths == _SMALLER_FIRST and captured > original):
            captured, original = original, captured
        start = at + record_bytes
        if captured > MAX_RECORD_BYTES:
            status = _INVALID
            break
        if start + captured > len(data):
            break
        if captured > original or captured > form[LONGEST] or original == 0:
            following = start + captured
            is_end = is_last and following == len(data)
            if not is_last and following + record_bytes > len(data):
                captured += record_bytes
                break
            if not is_end and not is_next_record(data, following, form):
                status = _UNLIKELY
                break
        if count == len(columns.links):
            status = _FULL
            break
        columns.numbers[TIME, count] = seconds * 1_000_000_000 + fraction * form[UNIT_NS]
        columns.numbers[START, count] = start
        columns.numbers[CAPTURED, count] = captured
        columns.numbers[ORIGINAL, count] = original
        columns.links[count] = form[LINK]
        count += 1
        at = start + captured
        captured = 0
    state[0], state[1], state[2] = at, count, captured
    return status
