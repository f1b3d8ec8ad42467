"""Reads the records of a file also behind damage, and behind the header of another file in it."""

from __future__ import annotations

from dissector.capture.columns import Bytes
from dissector.capture.formats.packet_rows import FormatReader, PacketRows
from dissector.capture.formats.pcap import HEADER_BYTES, PcapReader, is_pcap
from dissector.capture.formats.pcapng import MAGIC, PcapngReader
from dissector.capture.formats.start_search import CHAIN, FILE, NOTHING, UNDECIDED, find_start

_CUT_OFF = "cut off"
_SEARCH_BYTES = 2 << 20
"""More than a chain of records, or a block, that decides a search."""


def is_capture(head: bytes) -> bool:
    """Return whether a file that starts with `head` is a capture, perhaps without its header."""
    return head.startswith(MAGIC) or is_pcap(head)


def reader_of(head: bytes) -> tuple[FormatReader, int] | None:
    """Return the reader of a file that starts with `head`, and the size of its header, if any."""
    if head.startswith(MAGIC):
        return PcapngReader(), 0
    return (PcapReader(head), HEADER_BYTES) if is_pcap(head) else None


class RecordReader:
    """
    Reader of a file that may be damaged.

    From an invalid record on it searches the next one, or the header of another file, which then
    counts: files that were joined, by `cat`, are read one after the other.

    Attributes:
        needed_bytes: Bytes that the next record, or the search, needs.
    """

    def __init__(self, reader: FormatReader) -> None:
        """Start with the reader of the file's own header."""
        self._reader = reader
        self._why = ""
        self._lost_from = self._search_from = 0
        self.needed_bytes = reader.needed_bytes

    def scan(
        self, window: Bytes, at: int, base: int, rows: PacketRows, *, is_last: bool = False
    ) -> int:
        """Read the complete records in the window; return the offset of the first other byte."""
        while True:
            if self._why:
                at = self._search(window, at, base, rows, is_last)
                if self._why:
                    return at
            begin = at
            at = self._reader.scan(window, at, base, rows, is_last=is_last)
            rows.add_span(begin, at, self._reader.is_pcapng)
            self.needed_bytes = self._reader.needed_bytes
            if self._reader.at_new_file:
                rows.add_break(base + at)
                at = self._begin_file(window, at)
            elif self._reader.damage:
                rows.add_break(base + at)
                self._begin_search(self._reader.damage, base + at)
            elif is_last and at < len(window):
                self._begin_search(_CUT_OFF, base + at)
            else:
                return at

    def _begin_search(self, why: str, position: int) -> None:
        self._why, self._lost_from, self._search_from = why, position, position + 1

    def _begin_file(self, window: Bytes, at: int) -> int:
        """Go on with the file whose header is at `at`; return its end."""
        found = reader_of(window[at : at + HEADER_BYTES].tobytes())
        assert found is not None
        self._reader, size = found
        return at + size

    def _search(self, window: Bytes, at: int, base: int, rows: PacketRows, is_last: bool) -> int:
        """Search the next record; return where it begins, or where to go on with the search."""
        begin = max(at, self._search_from - base)
        found: int = find_start(window, begin, self._reader.form, CHAIN, int(is_last))
        at, what = divmod(found, 4)
        if what == UNDECIDED or (what == NOTHING and not is_last):
            self._search_from = base + at
            self.needed_bytes = _SEARCH_BYTES
            return at
        if what == NOTHING and self._why == _CUT_OFF:
            left = base + at - self._lost_from
            rows.report(f"cut off: {left:,} bytes of an incomplete packet", self._lost_from)
        elif what == NOTHING:
            rows.report_lost(self._why, self._lost_from, base + at)
        else:
            why = "invalid packet length" if self._why == _CUT_OFF else self._why
            rows.report_lost(why, self._lost_from, base + at)
        self._why = ""
        return self._begin_file(window, at) if what == FILE else at
