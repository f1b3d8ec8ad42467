"""Rows that were made one by one, as columns, and among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.tables.column_types import (
    Coded,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    Slices,
    iter_rows,
    row_count,
)
from dissector.engine.tables.columns_of import column_batches, columns_of, with_inserted
from dissector.engine.tables.concatenate import ColumnConcatenator

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
HEADER = st.fixed_dictionaries({"key": TEXT, "value": st.none() | st.binary(max_size=2)})
EXACT_MS = st.integers(0, 2**62).map(lambda ns: ns / 1e6)
CELLS: dict[type[Any], st.SearchStrategy[Any]] = {
    Coded: st.none() | st.booleans() | st.integers(0, 2) | st.lists(TEXT) | TEXT,
    Integers: st.none() | st.integers(-(2**63), 2**64),
    Milliseconds: st.none()
    | st.floats(allow_nan=False)
    | st.integers(0, 2**62).map(lambda n: n / 1e6),
    Slices: st.none() | st.binary(max_size=3),
    JsonTexts: st.none() | st.binary(max_size=3),
    Headers: st.lists(HEADER, max_size=2),
}
KINDS = {kind.__name__: kind for kind in CELLS}
ROWS = st.lists(
    st.fixed_dictionaries(
        {name: CELLS[kind] for name, kind in KINDS.items()}, optional={"more": st.just(7)}
    ),
    max_size=5,
)


@given(st.lists(ROWS, max_size=3))
def test_columns_have_the_values_of_rows(parts: list[list[dict[str, Any]]]) -> None:
    """Even of values that do not fit the kind of their column, and of names that few rows have."""
    joined = ColumnConcatenator()
    for rows in parts:
        columns = columns_of(rows, KINDS)
        assert list(iter_rows(columns)) == rows
        assert [type(row) for row in iter_rows(columns)] == [dict] * row_count(columns)
        joined.add(columns)
    assert list(iter_rows(joined.columns())) == [row for rows in parts for row in rows]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Integers, [1, None, -5]),
        (Milliseconds, [0.25, None]),
        (Slices, [b"a", None, b""]),
        (JsonTexts, ["{}", None]),
        (Headers, [[], [{"key": "k", "value": None}]]),
    ],
)
def test_values_that_fit_have_the_kind(kind: type[Any], values: list[Any]) -> None:
    columns = columns_of([{"a": value} for value in values], {"a": kind})
    assert type(columns["a"]) is kind


@given(ROWS, ROWS, st.data())
def test_rows_are_inserted(
    rows: list[dict[str, Any]], others: list[dict[str, Any]], data: st.DataObject
) -> None:
    numbers = st.lists(st.integers(0, len(rows)), min_size=len(others), max_size=len(others)).map(
        sorted
    )
    at = data.draw(numbers)
    expected = [*rows]
    for place, row in reversed(list(zip(at, others, strict=True))):
        expected.insert(place, row)
    found = with_inserted(columns_of(rows), np.array(at, np.int64), columns_of(others, KINDS))
    assert list(iter_rows(found)) == expected


def test_the_first_rows_wait_for_few() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(2000):
            taken.append(number)
            yield {"number": number}

    batches = column_batches(rows())
    assert row_count(next(batches)) == len(taken) < 500
    counts = [row_count(each) for each in batches]
    assert sum(counts) > counts[0] > 500
    assert [row_count(each) for each in column_batches([{}, {"a": 1}], live=True)] == [0, 1]
