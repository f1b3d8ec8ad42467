"""
Sort rows by columns, in memory, for `--sort`; nulls first.

Columns stay columns: a dictionary-encoded column is sorted by the order of its distinct values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

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
from dissector.engine.tables.frames import MixedRows, Row, TablePart
from dissector.errors import UsageError
from dissector.view.text.value_text import json_text

Keys: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
"""For each row, a number by which it is sorted, and whether it has a value."""


def sort_names(text: str, columns: Sequence[str]) -> list[str]:
    """
    Return the columns to sort by.

    Args:
        text: `COLUMN[,COLUMN...]`.
        columns: All columns.

    Raises:
        UsageError: There is no such column.
    """
    names = text.split(",")
    for name in names:
        if name not in columns:
            raise UsageError(f"--sort: no column {name!r}; columns are {', '.join(columns)}")
    return names


def sorted_rows(rows: Iterable[Row], names: Sequence[str]) -> list[Row]:
    """Return rows sorted by columns."""
    return sorted(rows, key=lambda row: [_sort_key(row[name]) for name in names])


def sorted_part(parts: Iterable[TablePart], names: Sequence[str]) -> TablePart:
    """Return the rows of all parts sorted by columns."""
    joining, rows = ColumnConcatenator(), list[Row]()
    of_columns, of_rows = [_NO_INDICES], [_NO_INDICES]
    total = 0
    for part in parts:
        at, between, count = _NO_INDICES, list[Row](), 0
        if isinstance(part, (Mapping, MixedRows)):
            columns = part.columns if isinstance(part, MixedRows) else part
            joining.add(columns)
            count = row_count(columns)
        if isinstance(part, MixedRows):
            lists = [list(each) for each in part.inserted]
            between = [row for each in lists for row in each]
            at = np.repeat(np.asarray(part.positions, np.int64), [len(each) for each in lists])
        elif not isinstance(part, Mapping):
            between = list(part)
            at = np.zeros(len(between), np.int64)
        place = np.arange(count)
        of_columns.append(total + place + np.searchsorted(at, place, "right"))
        of_rows.append(total + at + np.arange(len(at)))
        rows += between
        total += count + len(between)
    return _sort_mixed(joining.columns(), rows, names, np.concatenate([*of_columns, *of_rows]))


_NO_INDICES = np.zeros(0, np.int64)


def _sort_mixed(columns: Columns, rows: list[Row], names: Sequence[str], number: Ints) -> TablePart:
    """Sort rows of columns together with single rows; equal ones by their numbers."""
    if not columns:
        return sorted_rows(rows, names)
    keys: list[NDArray[Any]] = [number]
    for name in reversed(names):
        keys += _sort_keys(columns[name], [row[name] for row in rows])
    order = np.lexsort(keys)
    count = row_count(columns)
    alone = order >= count
    out = select_rows(columns, order[~alone])
    if not rows:
        return out
    at = np.cumsum(~alone)[alone]
    groups = groupby(zip(at.tolist(), (order[alone] - count).tolist(), strict=True), lambda p: p[0])
    between = [(place, [rows[row] for _, row in group]) for place, group in groups]
    return MixedRows(out, [place for place, _ in between], [some for _, some in between])


def _sort_keys(column: Column, more: list[Any]) -> Keys:
    """Return the sort keys of a column, followed by those of further values."""
    keys: NDArray[Any]
    match column:
        case Coded(codes, values):
            ranks = _ranks([*values, *more, None])
            of_rows = ranks[np.where(codes == NONE, len(ranks) - 1, codes)]
            keys = np.append(of_rows, ranks[len(values) : -1])
            there = keys >= 0
        case Integers(values):
            keys = np.append(values, np.array([NONE if v is None else v for v in more], np.int64))
            there = _is_present(values, more)
        case Milliseconds(values_ns):
            keys = np.append(values_ns / 1e6, [0.0 if v is None else v for v in more])
            there = _is_present(values_ns, more)
        case _:
            some: list[Any] = [column.value(row) for row in range(len(column))]
            if isinstance(column, JsonTexts):
                some = [None if each is None else each.decode() for each in some]
                more = [json_text(each) if isinstance(each, dict) else each for each in more]
            keys = _ranks([*some, *more])
            there = keys >= 0
    return np.where(there, keys, 0), there


def _is_present(values: Ints, more: list[Any]) -> NDArray[np.bool_]:
    there = [value is not None for value in more]
    return np.concatenate([values != NONE, np.array(there, np.bool_)])


def _ranks(values: Sequence[Any]) -> Ints:
    """Return the dense rank of each value; -1 for null."""
    keys = [_sort_key(value) for value in values]
    ranks = np.full(len(values), -1, np.int64)
    last: Any = None
    rank = -1
    for place in sorted(range(len(values)), key=keys.__getitem__):
        if values[place] is not None:
            rank += keys[place] != last
            last = keys[place]
            ranks[place] = rank
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
