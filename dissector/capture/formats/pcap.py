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
    MAX_RECORD_BYTES,
    PacketColumns,
    PacketRows,
    RecordForm,
    ScanState,
)
from dissector.capture.formats.start_search import (
    FILE,
    FILE_HEADER_BYTES,
    MAX_PACKET_BYTES,
    UNDECIDED,
    begins_file,
    is_next_record,
)
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import RowArray, dtype_of, row_of

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
        form = RecordForm(
            is_pcapng=False,
            is_big=order == ">",
            record_bytes=record_bytes,
            units_per_s=1_000_000_000 // unit_ns,
            longest=longest,
            unit_ns=unit_ns,
            lengths=lengths,
            link=link & _LINK_MASK,
        )
        self.form: RowArray = form.to_array()
        self.snap_bytes = snap_bytes
        self.needed_bytes = record_bytes
        self.damage = ""
        self.at_new_file = False

    @property
    def record_bytes(self) -> int:
        """Size of a record header."""
        return row_of(self.form, RecordForm).record_bytes

    def time_ns(self, record: bytes) -> int:
        """Return the time in a record header."""
        form = row_of(self.form, RecordForm)
        seconds, fraction = struct.unpack_from(">II" if form.is_big else "<II", record)
        return int(seconds * 1_000_000_000 + fraction * form.unit_ns)

    def scan(
        self, window: Bytes, at: int, base: int, rows: PacketRows, *, is_last: bool = False
    ) -> int:
        """Read the complete records in the window; see `FormatReader.scan`."""
        state = np.zeros((), dtype_of(ScanState))
        state["at"], state["count"] = at, rows.count
        while True:
            status = _scan(window, self.form, int(is_last), rows.columns, state)
            at, rows.count, needed, _ = state.tolist()
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
def _scan(
    data: U8, form: RecordForm, is_last: int, columns: PacketColumns, state: ScanState
) -> int:
    """
    Write a row for each complete record; return the stop reason.

    A record with an unlikely length, longer than the packet or than any, or of no bytes, counts if
    another one, or the end of the file, follows.

    Args:
        data: The window.
        form: The form of records.
        is_last: Whether the file ends with the window.
        columns: Receives the columns.
        state: Where the scan begins and stops.
    """
    at, count = state.at, state.count
    big, record_bytes, lengths = form.is_big, form.record_bytes, form.lengths
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
        if captured > original or captured > form.longest or original == 0:
            following = start + captured
            is_end = is_last and following == len(data)
            if not is_last and following + record_bytes > len(data):
                captured += record_bytes
                break
            if not is_end and not is_next_record(data, following, form):
                status = _UNLIKELY
                break
        if count == len(columns.link):
            status = _FULL
            break
        columns.time_ns[count] = seconds * 1_000_000_000 + fraction * form.unit_ns
        columns.start[count] = start
        columns.captured[count] = captured
        columns.original[count] = original
        columns.link[count] = form.link
        count += 1
        at = start + captured
        captured = 0
    state.at, state.count, state.needed = at, count, captured
    return status
