"""Selection and order of the rows in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from browse.rows.row_parts import RowParts
from dissector.cli.sorting import SortKey, sorted_parts
from dissector.engine.tables.column_types import Coded, Columns, Integers, select_rows
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Ints

Mask = Callable[[Columns], Ints]
"""Returns the numbers of matching rows in a part."""

_NUMBER = "number of the row"
_BATCH = 1 << 14
"""Rows per batch in another order than that of the capture."""


class CaptureOrder:
    """
    The order of rows by packets, which grows with the parts.

    Parts come almost in order: only rows behind the first one of new parts are sorted again.
    """

    def __init__(self, parts: RowParts, key: Sequence[str]) -> None:
        self._parts = parts
        self._key = key
        self._seen = 0
        self._order = np.zeros(0, np.int64)
        self._packets = np.zeros(0, np.int64)

    def of(self, parts: int) -> Ints:
        """Return the numbers of the rows of the first parts, in order."""
        if parts > self._seen:
            found = [self._packets_of(part) for part in range(self._seen, parts)]
            new = np.concatenate(found)
            begin = self._parts.begin_of(self._seen)
            cut = int(np.searchsorted(self._packets, new.min(), side="right"))
            packets = np.concatenate([self._packets[cut:], new])
            numbers = np.concatenate([self._order[cut:], begin + np.arange(len(new))])
            order = np.argsort(packets, kind="stable")
            self._packets = np.concatenate([self._packets[:cut], packets[order]])
            self._order = np.concatenate([self._order[:cut], numbers[order]])
            self._seen = parts
        return self._order

    def _packets_of(self, part: int) -> Ints:
        """Return the key of each row of a part; rows without one stay behind their window."""
        count = self._parts.ends[part] - self._parts.begin_of(part)
        found = np.full(count, NONE, np.int64)
        for name in self._key:
            column = self._parts.column(part, name)
            if isinstance(column, Integers):
                found = np.where(found == NONE, column.values, found)
        return np.where(found == NONE, found.max(initial=0), found)


class ShownRows:
    """
    Rows by their place on the screen.

    Attributes:
        parts: All rows.
        sort: Sorted column; None for capture order.
        key: Columns in capture order, of which the first that is not null counts; empty if the
            order of reading is kept.
    """

    def __init__(self, parts: RowParts, key: Sequence[str] = ()) -> None:
        self.parts = parts
        self.key = key
        self.sort: SortKey | None = None
        self._mask: Mask | None = None
        self._is_given = False
        self._seen = 0
        self._passing: list[Ints] = []
        self._order: Ints | None = None
        self._count = 0
        self._capture_order = CaptureOrder(parts, key)

    def __len__(self) -> int:
        return self._count

    def number(self, place: int) -> int:
        """Return the number of the row at a place."""
        return place if self._order is None else int(self._order[place])

    def numbers(self) -> Ints:
        """Return the numbers of all shown rows, in order."""
        return np.arange(self._count) if self._order is None else self._order

    def place_of(self, number: int) -> int | None:
        """Return the place of a row; None if it is hidden."""
        if self._order is None:
            return number if 0 <= number < self._count else None
        found = np.flatnonzero(self._order == number)
        return int(found[0]) if len(found) else None

    def nearest(self, number: int) -> int:
        """Return the place of a row, or of the nearest shown row in capture order."""
        place = self.place_of(number)
        if place is None and self._order is not None and len(self._order):
            ranks = np.arange(len(self.parts))
            if self.key:
                order = self._capture_order.of(self._seen)
                ranks[order] = np.arange(len(order))
            place = int(np.argmin(np.abs(ranks[self._order] - ranks[number])))
        return place or 0

    def columns(self) -> Iterator[Columns]:
        """Yield the shown rows in order, as chunks of columns."""
        numbers = self.numbers()
        part_of = np.searchsorted(np.array(self.parts.ends), numbers, side="right")
        # Runs within a part, as in capture order; else batches of rows from all parts.
        cuts = np.flatnonzero(np.diff(part_of)) + 1
        if len(cuts) > len(self.parts.ends):
            cuts = np.arange(_BATCH, len(numbers), _BATCH)
        for some in np.split(numbers, cuts):
            if len(some):
                yield self._rows(some)

    def _rows(self, numbers: Ints) -> Columns:
        """Return rows from any parts in the given order."""
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], self.parts.ends)
        joined, begin = ColumnConcatenator(), 0
        for part, end in enumerate(ends.tolist()):
            if begin < end:
                rows = numbers[order[begin:end]] - self.parts.begin_of(part)
                joined.add(self.parts.columns(part, rows))
            begin = end
        return select_rows(joined.columns(), np.argsort(order, kind="stable"))

    def numbers_with(self, name: str, most: int) -> list[int]:
        """Return the numbers of the first shown rows with a non-empty list in a column."""
        numbers = self.numbers()
        found: list[int] = numbers[self.rows_where(name, bool)[numbers]][:most].tolist()
        return found

    def rows_where(self, name: str, test: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """Return by number of row whether its value in a column of few values passes a test."""
        passes = [np.zeros(0, np.bool_)]
        for part in range(len(self.parts.ends)):
            column = self.parts.column(part, name)
            if isinstance(column, Coded):
                by_code = np.array([*(test(each) for each in column.values), False], np.bool_)
                passes.append(by_code[np.where(column.codes == NONE, -1, column.codes)])
            else:
                passes.append(np.zeros(len(column), np.bool_))
        return np.concatenate(passes)

    def filter_by(self, mask: Mask | None) -> None:
        """Show matching rows only, now and in later parts; None shows all."""
        self._mask, self._is_given = mask, False
        self._reset()
        self.update()

    def begin_given(self) -> None:
        """Restrict the rows to those from `give`, for filters applied elsewhere."""
        self._mask, self._is_given = None, True
        self._reset()
        self.update()

    def give(self, numbers: Ints) -> None:
        """Add rows."""
        self._passing.append(numbers)
        self._arrange()

    def sort_by(self, sort: SortKey | None) -> None:
        """Change the order."""
        self.sort = sort
        self._arrange()

    def update(self) -> bool:
        """Add new parts; return whether there were any."""
        ends = self.parts.ends
        if self._seen == len(ends):
            return False
        begin, self._seen = self._seen, len(ends)
        if self._mask is not None:
            for part in range(begin, self._seen):
                numbers = self._mask(self.parts.columns(part))
                self._passing.append(self.parts.begin_of(part) + numbers)
        self._arrange()
        return True

    def _reset(self) -> None:
        self._seen, self._passing, self._order, self._count = 0, [], None, 0

    def _arrange(self) -> None:
        total = self.parts.ends[self._seen - 1] if self._seen else 0
        numbers: Ints | None = None
        if self._mask is not None or self._is_given:
            numbers = np.concatenate([np.zeros(0, np.int64), *self._passing])
            self._passing = [numbers]
            numbers = numbers[numbers < total]
        if total and (self.sort is not None or self.key):
            order = self._sorted(self.sort) if self.sort else self._capture_order.of(self._seen)
            if numbers is not None:
                is_shown = np.zeros(total, np.bool_)
                is_shown[numbers] = True
                order = order[is_shown[order]]
            numbers = order
        self._order, self._count = numbers, total if numbers is None else len(numbers)

    def _sorted(self, sort: SortKey) -> Ints:
        """Return the numbers of all rows in the order of a column."""
        columns = [
            {
                sort.name: column,
                _NUMBER: Integers(np.arange(self.parts.begin_of(part), self.parts.ends[part])),
            }
            for part, column in enumerate(self.parts.sort_column(self._seen, sort.name))
        ]
        (found,) = sorted_parts(columns, [sort])
        numbers = found[_NUMBER]
        assert isinstance(numbers, Integers)
        return numbers.values
