"""Access to columns for filters: numbers as arrays, other values once each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Integers,
    Milliseconds,
    distinct,
    row_count,
)
from dissector.engine.tables.exchange_table import NONE, Ints

Mask: TypeAlias = NDArray[np.bool_]


class ColumnQuery:
    """
    The rows of columns as a `filter.Table`, for filters that test no bodies.

    Attributes:
        columns: The columns.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return row_count(self.columns)

    def number_column(self, name: str, rows: Ints) -> tuple[NDArray[Any], Mask] | None:
        """Return values and validity of a numeric column; None for other columns."""
        match self.columns[name]:
            case Integers(values):
                values = values[rows]
                return values, values != NONE
            case Milliseconds(values_ns):
                values_ns = values_ns[rows]
                return values_ns / 1e6, values_ns != NONE
            case _:
                return None

    def distinct_values(self, name: str, rows: Ints) -> tuple[Ints, Sequence[object]]:
        """Return the index of each row's value among the distinct values, and these."""
        column = self.columns[name]
        match column:
            case Coded(codes, values):
                indexes, distinct_codes = distinct(codes[rows])
                return indexes, [
                    None if code == NONE else values[code] for code in distinct_codes.tolist()
                ]
            case Integers(values):
                indexes, distinct_codes = distinct(values[rows])
                return indexes, [
                    None if value == NONE else value for value in distinct_codes.tolist()
                ]
            case _:
                return np.arange(len(rows)), [column.value(row) for row in rows.tolist()]

    def fields_at(self, name: str, path: Sequence[str], rows: Ints) -> Any:
        """Return the values at a path inside a column; only decoded ones have fields."""
        raise NotImplementedError("a column has no fields")

    def exchange(self, row: int) -> Any:
        """Return a row as an object; only needed for bodies."""
        raise NotImplementedError("a column has no body")

    def any_value_at(self, path: Any, rows: Ints, test: Any, matches: Any) -> Mask:
        """Return for each row whether any value at a path of a body passes."""
        raise NotImplementedError("a column has no body")
