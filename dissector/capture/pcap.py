"""
Classic pcap: both byte orders, microseconds and nanoseconds, and Kuznetzov's longer record header.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html and, for what old writers did
to the two lengths, https://www.tcpdump.org/manpages/pcap-savefile.5.html
"""

from __future__ import annotations

import struct

from dissector.capture.records import MAX_RECORD_BYTES, Rows

HEADER_BYTES = 24

# Magic number -> bytes of a record's header, nanoseconds in a unit of its clock.
_MAGICS = {0xA1B2C3D4: (16, 1000), 0xA1B23C4D: (16, 1), 0xA1B2CD34: (24, 1000)}
_LINK_MASK = 0x03FFFFFF  # above are the length of the frame check sequence and its flag


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
        self._record_bytes, self._unit_ns = _MAGICS[magic]
        self._record = struct.Struct(f"{order}IIII")
        self._link = link & _LINK_MASK
        self._lengths_swapped = (major, minor) < (2, 3)
        self._lengths_mixed = (major, minor) == (2, 3)
        self.need = self._record_bytes
        self.stopped = False

    def scan(self, window: memoryview, base: int, rows: Rows) -> int:
        """Read the whole records in the window; see `Reader.scan`."""
        at, filled = 0, len(window)
        self.need = self._record_bytes
        read, add = self._record.unpack_from, rows.numbers.extend
        link, unit_ns = self._link, self._unit_ns
        while at + self._record_bytes <= filled:
            seconds, fraction, captured, original = read(window, at)
            if self._lengths_swapped or (self._lengths_mixed and captured > original):
                captured, original = original, captured
            if captured > MAX_RECORD_BYTES:
                rows.report(f"a packet of {captured:,} bytes is none: reading stops", base + at)
                self.stopped = True
                break
            start = at + self._record_bytes
            if start + captured > filled:
                self.need = self._record_bytes + captured
                break
            time_ns = seconds * 1_000_000_000 + fraction * unit_ns
            add((time_ns, start, captured, original, link))
            at = start + captured
        return at
