"""Searches for text in columns, bytes in messages, and fields."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.list_columns import cell_text
from browse.rows.row_parts import RowParts
from dissector.engine.fields.column_query import Mask
from dissector.engine.tables.column_types import Coded, Column, Integers, row_count
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.errors import UsageError

HELP = "search: text, re:PATTERN, hex:0a0b, bytes:TEXT (in messages), field:FILTER"


class Search(NamedTuple):
    """
    A parsed search.

    Attributes:
        text: Text of the user.
        in_cells: Tests cells; None for other searches.
        in_bytes: Tests message bytes; None for other searches.
        filter: Filter for a field; empty for other searches.
    """

    text: str
    in_cells: Callable[[str], bool] | None = None
    in_bytes: re.Pattern[bytes] | None = None
    filter: str = ""


def parse_search(text: str) -> Search:
    """
    Parse a search text.

    Raises:
        UsageError: The regular expression or the hex string is invalid.
    """
    kind, colon, rest = text.partition(":")
    match kind if colon else "":
        case "re":
            from dissector.filter.literals import compile_pattern

            try:
                search = compile_pattern(rest).search
            except ValueError as error:
                raise UsageError(str(error)) from None
            return Search(text, lambda cell: search(cell) is not None)
        case "hex":
            try:
                pattern = re.escape(bytes.fromhex(rest.removeprefix("0x")))
            except ValueError:
                raise UsageError(f"{rest[:40]!r} is not hex, such as 0a0b") from None
            return Search(text, in_bytes=re.compile(pattern))
        case "bytes":
            return Search(text, in_bytes=re.compile(re.escape(rest.encode()), re.IGNORECASE))
        case "field":
            return Search(text, filter=rest.strip())
        case _:
            wanted = text.lower()
            return Search(text, lambda cell: wanted in cell.lower())


class CellSearch(Pass):
    """
    A search for rows with a matching cell, except in columns of times.

    Attributes:
        found: Numbers of matching rows, as one array at the end.
    """

    def __init__(
        self,
        access: CaptureAccess,
        parts: RowParts,
        names: Iterable[str],
        holds: Callable[[str], bool],
    ) -> None:
        super().__init__(access.first)
        self.found: deque[Ints] = deque()
        self._parts = parts
        self._names = [name for name in names if not name.endswith("_ns")]
        self._holds = holds
        self._searched = 0

    @property
    def share(self) -> float:
        """Searched share of the parts, from 0 to 1."""
        return self._searched / max(1, len(self._parts.ends))

    def cancel(self) -> None:
        """End the search soon; the capture is still needed."""
        self.is_cancelled = True

    def search(self) -> None:
        """Search the rows; for a thread."""
        self.run(self._search)

    def _search(self) -> None:
        found = [np.zeros(0, np.int64)]
        for part in range(len(self._parts.ends)):
            if self.is_cancelled:
                return
            columns = self._parts.columns(part)
            mask = np.zeros(row_count(columns), np.bool_)
            for name in filter(columns.__contains__, self._names):
                mask |= _mask(name, columns[name], self._holds)
            found.append(self._parts.begin_of(part) + np.flatnonzero(mask))
            self._searched = part + 1
        self.found.append(np.concatenate(found))


def _mask(name: str, column: Column, holds: Callable[[str], bool]) -> Mask:
    """Test each distinct value once."""
    if isinstance(column, Coded):
        passes = [value is not None and holds(cell_text(name, value)) for value in column.values]
        codes = np.where(column.codes == NONE, len(passes), column.codes)
        by_code: Mask = np.array([*passes, False], np.bool_)
        return by_code[codes]
    if isinstance(column, Integers):
        values, index = np.unique(column.values, return_inverse=True)
        passes = [value != NONE and holds(str(value)) for value in values.tolist()]
        by_value: Mask = np.array(passes, np.bool_)
        return by_value[index]
    cells = (column.value(row) for row in range(len(column)))
    known: dict[object, bool] = {None: False}
    return np.array([_passes(name, each, holds, known) for each in cells], np.bool_)


def _passes(
    name: str, cell: object, holds: Callable[[str], bool], known: dict[object, bool]
) -> bool:
    """Test a cell; `known` has the results for earlier cells of bytes, often equal ones."""
    if isinstance(cell, list):
        return holds(cell_text(name, cell))
    if cell not in known:
        known[cell] = holds(cell_text(name, cell))
    return known[cell]


class ByteSearch(Pass):
    """
    A pass that finds exchanges by bytes of their messages.

    Attributes:
        found: Numbers of matching rows, window by window.
    """

    def __init__(self, access: CaptureAccess, pattern: re.Pattern[bytes]) -> None:
        super().__init__(access.reopen(None, False), access.total_bytes)
        self.found: deque[Ints] = deque()
        self._pattern = pattern

    def search(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._search)

    def _search(self) -> None:
        begin = 0
        for window in self.windows(gleaning=False):
            table = window.exchanges
            rows = [begin + row for row in range(len(table)) if self._is_in(table, row)]
            self.found.append(np.array(rows, np.int64))
            begin += len(table)
            del window, table

    def _is_in(self, table: Exchanges, row: int) -> bool:
        frames = (table.frame(side, row) for side in (table.request, table.response))
        return any(frame is not None and self._pattern.search(frame) for frame in frames)
