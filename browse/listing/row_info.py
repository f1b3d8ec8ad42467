"""The column `info`: what an exchange is about, made for the rows on the screen only."""

from __future__ import annotations

from textual.cache import LRUCache

from browse.listing.exchange_finder import ExchangeFinder
from browse.rows.row_parts import RowParts
from dissector.view.text.exchange_info import ExchangeInfo, exchange_info, row_info

INFO = "info"
"""Name of the column."""
MEANING = "what is asked, and the answer, in plain words"
_COLUMNS = ("errors", "status", "topics", "problems")


class RowInfo:
    """
    Plain words for exchanges by number.

    Bodies are read where their window is cached; else the columns of the list have to do.
    """

    def __init__(self, parts: RowParts, finder: ExchangeFinder, show_secrets: bool) -> None:
        self._parts = parts
        self._finder = finder
        self._show_secrets = show_secrets
        self._known: LRUCache[int, ExchangeInfo] = LRUCache(2000)

    def of(self, number: int) -> ExchangeInfo:
        """Return what an exchange is about."""
        if (known := self._known.get(number)) is not None:
            return known
        row = dict(zip(_COLUMNS, self._parts.cells(number, _COLUMNS), strict=True))
        exchange = self._finder.exchange(number)
        if exchange is None:
            return row_info(row)
        found = exchange_info(exchange, row, show_secrets=self._show_secrets)
        self._known[number] = found
        return found
