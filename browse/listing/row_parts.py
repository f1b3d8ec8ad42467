"""Rows of a list in parts; one thread appends, others read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import Coded, Column, Columns, Integers, row_count
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import Row


class RowParts:
    """
    Rows in columns, numbered from 0, with a part for each window of the capture.

    Attributes:
        parts: Columns of each part; all parts have the same names.
        ends: End of each part. Appended last, because readers stop there.
    """

    def __init__(self) -> None:
        self.parts: list[Columns] = []
        self.ends: list[int] = []

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def append(self, columns: Columns) -> None:
        """Append a part, unless it is empty."""
        if count := row_count(columns):
            end = len(self) + count
            self.parts.append(columns)
            self.ends.append(end)

    def add_column(self, begin: int, name: str, column: Column) -> None:
        """Add a column to the part with this first row, if it exists."""
        part = bisect_right(self.ends, begin)
        if part < len(self.ends) and self.begin_of(part) == begin:
            self.parts[part] = {**self.parts[part], name: column}

    def column(self, part: int, name: str) -> Column:
        """Return a column of a part; nulls until it is read."""
        found = self.parts[part].get(name)
        return found or Coded(np.full(row_count(self.parts[part]), NONE), [])

    def begin_of(self, part: int) -> int:
        """Return the number of the first row of a part."""
        return self.ends[part - 1] if part else 0

    def value(self, row: int, name: str) -> Any:
        """Return one cell."""
        return self.cells(row, (name,))[0]

    def cells(self, row: int, names: Iterable[str]) -> list[Any]:
        """Return some cells of a row; None for columns not yet read."""
        part = bisect_right(self.ends, row)
        columns, at = self.parts[part], row - self.begin_of(part)
        return [columns[name].value(at) if name in columns else None for name in names]

    def row(self, row: int) -> dict[str, Any]:
        """Return a row by column names, with hidden columns."""
        part = bisect_right(self.ends, row)
        at = row - self.begin_of(part)
        return {name: column.value(at) for name, column in self.parts[part].items()}

    def numbers(self, name: str) -> Ints:
        """Return an integer column for all rows; NONE for null."""
        arrays = [_integers(part[name]) for part in self.parts[: len(self.ends)]]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _integers(column: Any) -> Ints:
    if isinstance(column, Integers):
        return column.values
    assert isinstance(column, Coded)
    values = np.array([NONE if each is None else each for each in [*column.values, None]], np.int64)
    found: Ints = values[np.where(column.codes == NONE, len(values) - 1, column.codes)]
    return found


def columns_of_rows(rows: Sequence[Row], names: Iterable[str], numbers: Iterable[str]) -> Columns:
    """Convert rows to columns; `numbers` names integer columns."""
    integral, index = set(numbers), np.arange(len(rows))
    return {
        name: Integers(
            np.array([NONE if row[name] is None else row[name] for row in rows], np.int64)
        )
        if name in integral
        else Coded(index, [row[name] for row in rows])
        for name in names
    }
