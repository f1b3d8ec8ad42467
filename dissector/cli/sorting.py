"""
Sort rows by columns, in memory, for `--sort`; nulls first, or last in descending order.

Columns stay columns: a dictionary-encoded column is sorted by the order of its distinct values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    JsonTexts,
    Milliseconds,
    Row,
    select_rows,
)
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.errors import UsageError
from dissector.view.text.value_text import json_text

Keys: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
"""For each row, its sort number, and whether it has a value."""


class SortKey(NamedTuple):
    """A column to sort by."""

    name: str
    descends: bool


def sort_keys(text: str, columns: Sequence[str]) -> list[SortKey]:
    """
    Return the columns to sort by.

    Args:
        text: `COLUMN[,COLUMN...]`; `-` before a column sorts in descending order.
        columns: All columns.

    Raises:
        UsageError: The column does not exist.
    """
    keys = [SortKey(each.removeprefix("-"), each.startswith("-")) for each in text.split(",")]
    for name, _ in keys:
        if name not in columns:
            raise UsageError(f"--sort: no column {name!r}; columns are {', '.join(columns)}")
    return keys


def sorted_rows(rows: Iterable[Row], keys: Sequence[SortKey]) -> list[Row]:
    """Return rows sorted by columns."""
    out = list(rows)
    for name, descends in reversed(keys):
        out.sort(key=lambda row: _sort_key(row[name]), reverse=descends)
    return out


def sorted_parts(parts: Iterable[Columns], keys: Sequence[SortKey]) -> Iterator[Columns]:
    """Yield the rows of all parts, if any, sorted by columns; equal ones stay in their order."""
    joined = ColumnConcatenator()
    for part in parts:
        joined.add(part)
    columns = joined.columns()
    if not columns:
        return
    sort_by: list[NDArray[Any]] = []
    for name, descends in reversed(keys):
        values, present = _sort_keys(columns[name])
        sort_by += [-values, ~present] if descends else [values, present]
    yield select_rows(columns, np.lexsort(sort_by))


def _sort_keys(column: Column) -> Keys:
    keys: NDArray[Any]
    match column:
        case Coded(codes, values):
            ranks = _ranks([*values, None])
            keys = ranks[np.where(codes == NONE, len(values), codes)]
            present = keys >= 0
        case Integers(values):
            keys, present = values, values != NONE
        case Milliseconds(values_ns):
            keys, present = values_ns / 1e6, values_ns != NONE
        case _:
            cells: list[Any] = [column.value(row) for row in range(len(column))]
            if isinstance(column, JsonTexts):
                cells = [None if each is None else each.decode() for each in cells]
            keys = _ranks(cells)
            present = keys >= 0
    return np.where(present, keys, 0), present


def _ranks(values: Sequence[Any]) -> Ints:
    """Return the dense rank of each value; -1 for null."""
    keys = [_sort_key(value) for value in values]
    ranks = np.full(len(values), -1, np.int64)
    last: Any = None
    rank = -1
    for index in sorted(range(len(values)), key=keys.__getitem__):
        if values[index] is not None:
            rank += keys[index] != last
            last = keys[index]
            ranks[index] = rank
    return ranks


def _sort_key(value: Any) -> tuple[int, Any]:
    """Return the sort key of a value; values of different types are never compared."""
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case str():
            return 2, value
        case bytes():
            return 3, value
        case list():
            return 4, [_sort_key(each) for each in value]
        case _:
            return 5, json_text(value)
