"""
Rows that are made one by one, as columns: between two stages all rows are columns.

A column has the kind that its name is given: of the columns that are made in bulk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dissector.engine.tables.column_kinds import column_of
from dissector.engine.tables.column_types import (
    ABSENT,
    Coded,
    Columns,
    Row,
    row_count,
    select_rows,
    shared_buffers,
)
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import Ints

Kinds: TypeAlias = Mapping[str, type[Any]]
"""The kinds of columns by name; the others are `Coded`."""

_FIRST_ROWS, _MOST_ROWS = 200, 20_000
"""Rows of the first batch and of the largest: the first lines of output don't wait for many."""


def columns_of(rows: Sequence[Row], kinds: Kinds | None = None) -> Columns:
    """Return rows as columns, in the order of names; `ABSENT` where a row has no such name."""
    given = kinds or {}
    names = dict.fromkeys(name for row in rows for name in row)
    joined = ColumnConcatenator()
    joined.add(
        {
            name: column_of([row.get(name, ABSENT) for row in rows], given.get(name, Coded))
            for name in names
        }
    )
    return joined.columns()


def column_batches(
    rows: Iterable[Row], kinds: Kinds | None = None, *, live: bool = False
) -> Iterator[Columns]:
    """Yield rows as columns; see `batches_of`."""
    return (columns_of(batch, kinds) for batch in batches_of(rows, live=live))


def batches_of(rows: Iterable[Row], *, live: bool = False) -> Iterator[list[Row]]:
    """Yield rows, few and then more at a time; one at a time if they are `live`."""
    rows, count = iter(rows), 1 if live else _FIRST_ROWS
    while batch := list(islice(rows, count)):
        yield batch
        count = 1 if live else min(4 * count, _MOST_ROWS)


def with_inserted(columns: Columns, positions: Ints, rows: Columns) -> Columns:
    """
    Return columns with other rows between theirs.

    Args:
        columns: Most rows.
        positions: For each of the other rows, the row of `columns` that follows it; in order.
        rows: The other rows.
    """
    joined = ColumnConcatenator(shared_buffers(columns.values()))
    joined.add(columns)
    joined.add(rows)
    count = row_count(columns)
    order = np.insert(np.arange(count), positions, count + np.arange(len(positions)))
    return select_rows(joined.columns(), order)
