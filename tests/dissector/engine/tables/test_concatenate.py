"""Concatenated columns of several windows."""

from __future__ import annotations

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    SliceBuffers,
    Slices,
    row_count,
    row_dict,
    shared_buffers,
)
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE


def window(data: np.ndarray, number: int) -> Columns:
    """Three rows; all bytes are in `data`, which the next window reuses."""
    data[:] = np.frombuffer(f"{number}abcdefg".encode(), np.uint8)
    none = np.zeros(0, np.uint8)
    buffers = SliceBuffers(none, data[:4], data[4:])
    first = np.array([0, 3, 5])
    bytes_column = np.array([5, NONE, 0]), np.array([2, -1, 4]), buffers
    return {
        "list": Coded(np.array([1, NONE, 0]), [[number], ["same"]]),
        "number": Integers(np.array([number, NONE, 7])),
        "time": Milliseconds(np.array([NONE, number, 10**6])),
        "bytes": Slices(*bytes_column),
        "json": JsonTexts(*bytes_column),
        "headers": Headers(
            np.array([1, 2, 3]),
            np.array([1, 0, 2]),
            Slices(np.array([0, *first, 2, 2]), np.array([4, 1, 1, 1, 1, 1]), buffers),
            Slices(np.array([0, NONE, *first, 1]), np.array([4, -1, 1, 1, 1, 1]), buffers),
        ),
    }


def test_rows_outlive_their_window() -> None:
    joining, data = ColumnConcatenator(), np.zeros(8, np.uint8)
    rows = []
    for number in range(3):
        columns = window(data, number)
        rows += [row_dict(columns, row) for row in range(row_count(columns))]
        joining.add(columns)
    data[:] = 0
    joined = joining.columns()
    assert [row_dict(joined, row) for row in range(row_count(joined))] == rows
    assert {name: type(column) for name, column in joined.items()} == {
        name: type(column) for name, column in columns.items()
    }
    codes = joined["list"]
    assert isinstance(codes, Coded)
    assert codes.values == [[0], ["same"], [1], [2]]


def test_no_windows_give_no_columns() -> None:
    assert ColumnConcatenator().columns() == {}


def test_bytes_of_the_base_are_not_copied() -> None:
    first, other = (window(np.zeros(8, np.uint8), number) for number in range(2))
    joining = ColumnConcatenator(shared_buffers(first.values()))
    rows = []
    for columns in (first, other, first):
        joining.add(columns)
        rows += [row_dict(columns, row) for row in range(row_count(columns))]
    joined = joining.columns()
    assert [row_dict(joined, row) for row in range(row_count(joined))] == rows
    buffers = shared_buffers(joined.values())
    assert buffers.data is shared_buffers(first.values()).data
    alone = ColumnConcatenator()
    alone.add(other)
    assert len(buffers) == sum(
        len(shared_buffers(each.values())) for each in (first, alone.columns())
    )
