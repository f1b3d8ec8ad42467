"""
Sort rows by columns, in memory, for `--sort`; nulls first, or last in descending order.

Columns stay columns: a dictionary-encoded column is sorted by the order of its distinct values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
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
    row_count,
    select_rows,
)
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import MixedRows, Row, TablePart
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


def sorted_part(parts: Iterable[TablePart], keys: Sequence[SortKey]) -> TablePart:
    """Return the rows of all parts sorted by columns."""
    all_columns, all_rows = ColumnConcatenator(), list[Row]()
    # The original numbers of the rows: keys of rows in columns, and of single rows between them.
    column_numbers, row_numbers = [_NO_INDICES], [_NO_INDICES]
    total = 0
    for part in parts:
        positions, rows, count = _NO_INDICES, list[Row](), 0
        if isinstance(part, (Mapping, MixedRows)):
            columns = part.columns if isinstance(part, MixedRows) else part
            all_columns.add(columns)
            count = row_count(columns)
        if isinstance(part, MixedRows):
            groups = [list(each) for each in part.inserted]
            rows = [row for group in groups for row in group]
            sizes = [len(group) for group in groups]
            positions = np.repeat(np.asarray(part.positions, np.int64), sizes)
        elif not isinstance(part, Mapping):
            rows = list(part)
            positions = np.zeros(len(rows), np.int64)
        index = np.arange(count)
        column_numbers.append(total + index + np.searchsorted(positions, index, "right"))
        row_numbers.append(total + positions + np.arange(len(positions)))
        all_rows += rows
        total += count + len(rows)
    numbers = np.concatenate([*column_numbers, *row_numbers])
    return _sort_mixed(all_columns.columns(), all_rows, keys, numbers)


_NO_INDICES = np.zeros(0, np.int64)


def _sort_mixed(
    columns: Columns, rows: list[Row], sort_by: Sequence[SortKey], numbers: Ints
) -> TablePart:
    """Sort rows of columns together with single rows; equal ones by their numbers."""
    if not columns:
        return sorted_rows(rows, sort_by)
    keys: list[NDArray[Any]] = [numbers]
    for name, descends in reversed(sort_by):
        values, present = _sort_keys(columns[name], [row[name] for row in rows])
        keys += [-values, ~present] if descends else [values, present]
    order = np.lexsort(keys)
    count = row_count(columns)
    is_single = order >= count
    out = select_rows(columns, order[~is_single])
    if not rows:
        return out
    positions = np.cumsum(~is_single)[is_single]
    indices = order[is_single] - count
    pairs = zip(positions.tolist(), indices.tolist(), strict=True)
    inserted = [
        (position, [rows[index] for _, index in group])
        for position, group in groupby(pairs, lambda pair: pair[0])
    ]
    return MixedRows(out, [position for position, _ in inserted], [some for _, some in inserted])


def _sort_keys(column: Column, others: list[Any]) -> Keys:
    """Return the sort keys of numbers in a column, followed by keys of other values."""
    keys: NDArray[Any]
    match column:
        case Coded(codes, values):
            ranks = _ranks([*values, *others, None])
            of_rows = ranks[np.where(codes == NONE, len(ranks) - 1, codes)]
            keys = np.append(of_rows, ranks[len(values) : -1])
            present = keys >= 0
        case Integers(values):
            keys = np.append(values, np.array([NONE if v is None else v for v in others], np.int64))
            present = _is_present(values, others)
        case Milliseconds(values_ns):
            keys = np.append(values_ns / 1e6, [0.0 if v is None else v for v in others])
            present = _is_present(values_ns, others)
        case _:
            cells: list[Any] = [column.value(row) for row in range(len(column))]
            if isinstance(column, JsonTexts):
                cells = [None if each is None else each.decode() for each in cells]
                others = [json_text(each) if isinstance(each, dict) else each for each in others]
            keys = _ranks([*cells, *others])
            present = keys >= 0
    return np.where(present, keys, 0), present


def _is_present(values: Ints, others: list[Any]) -> NDArray[np.bool_]:
    present = [value is not None for value in others]
    return np.concatenate([values != NONE, np.array(present, np.bool_)])


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
