"""The column `info`: what an exchange is about, made for the rows on the screen only."""

from __future__ import annotations

from textual.cache import LRUCache

from browse.listing.exchange_finder import ExchangeFinder
from browse.rows.row_parts import RowParts
from dissector.column_catalogue import FROM_BODIES
from dissector.engine.exchanges.exchange_info import COLUMNS, ExchangeInfo, exchange_info, row_info
from dissector.protocol.embedded.secrecy.credentials import mask_texts

INFO, _, MEANING = FROM_BODIES[0]
"""Name and meaning of the column."""


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
        row = dict(zip(COLUMNS, self._parts.cells(number, COLUMNS), strict=True))
        exchange = self._finder.exchange(number)
        if exchange is None:
            return row_info(row)
        found = exchange_info(exchange, row)
        if not self._show_secrets:
            found = ExchangeInfo(*mask_texts([*found], exchange.known_secrets))
        self._known[number] = found
        return found
