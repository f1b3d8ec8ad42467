"""Cache of exchanges; uncached windows are read again."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import NamedTuple

from browse.listing.capture_access import CaptureAccess, Pass
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Window
from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.context import using

MAX_KEPT_BYTES = 48 << 20
"""Size limit of cached messages; enough for all messages of a small capture."""


class _CachedWindow(NamedTuple):
    begin: int
    table: Exchanges
    reading: Reading
    size: int


class ExchangeFinder:
    """
    Exchanges of cached windows.

    Attributes:
        names: Known names of topic ids.
    """

    def __init__(self, names: TopicNames) -> None:
        self.names = TopicNames()
        # Shared, but not read ahead: that would block the screen.
        self.names.by_id = names.by_id
        self._windows: OrderedDict[int, _CachedWindow] = OrderedDict()
        self._size = 0

    def keep(self, begin: int, window: Window, reading: Reading, *, evicting: bool = True) -> None:
        """Cache a window; with `evicting`, older windows make room."""
        table = window.exchanges
        size = len(table.data) + len(table.carry_over)
        if begin in self._windows or not len(table):
            return
        while evicting and self._windows and self._size + size > MAX_KEPT_BYTES:
            self._size -= self._windows.popitem(last=False)[1].size
        if self._size + size <= MAX_KEPT_BYTES or not self._windows:
            self._windows[begin] = _CachedWindow(begin, table, reading, size)
            self._size += size

    def exchange(self, number: int) -> Exchange | None:
        """Return an exchange; None if its window is not cached."""
        begins = sorted(self._windows)
        at = bisect_right(begins, number) - 1
        if at < 0:
            return None
        begin, table, reading, _ = self._windows[begins[at]]
        if number >= begin + len(table):
            return None
        self._windows.move_to_end(begin)
        with using(reading.options.schemas):
            return reading.exchange(table, number - begin, self.names).kept()


class WindowSearch(Pass):
    """A pass up to the window of a row, for the cache."""

    def __init__(self, access: CaptureAccess, finder: ExchangeFinder, number: int) -> None:
        super().__init__(access.reopen(None, False), access.total_bytes)
        self.number = number
        self._finder = finder

    def search(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._search)

    def _search(self) -> None:
        begin = 0
        for window in self.windows(gleaning=False):
            end = begin + len(window.exchanges)
            if begin <= self.number < end:
                reading = self.source.capture.reading
                assert reading is not None
                self._finder.keep(begin, window, reading)
                self.cancel()
                return
            begin = end
            del window
