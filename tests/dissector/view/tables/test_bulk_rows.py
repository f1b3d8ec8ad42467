"""Rows written in bulk equal, byte for byte, those written one by one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.tables.column_types import Coded, Columns, Integers, Milliseconds, row_dict
from dissector.engine.tables.columns_of import columns_of
from dissector.view.tables import bulk_rows as bulk
from dissector.view.tables import row_kernel as loop
from dissector.view.tables.bulk_rows import csv_rows, ndjson_rows, table_rows, text_columns
from dissector.view.tables.row_formats import Table
from dissector.view.text.value_text import record_json
from tests.dissector.view.drawn_columns import any_columns, ints
from tests.dissector.view.row_lines import csv_lines, ndjson_lines, record_text
from tests.example_counts import examples
from tests.kernel_modes import PYTHON, running


def written(text: Callable[..., Iterator[memoryview]], *given: Any) -> str:
    """Return the output, equal in Python and compiled."""
    done = [b"".join(map(bytes, text(*given))).decode()]
    with running(PYTHON, loop.write_rows):
        done.append(b"".join(map(bytes, text(*given))).decode())
    assert done[0] == done[1]
    return done[0]


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [row_dict(columns, row) for row in range(len(next(iter(columns.values()))))]


def with_line_ends(lines: Iterable[str], end: str) -> str:
    return "".join(f"{line}{end}" for line in lines)


@settings(max_examples=examples(50))
@given(any_columns())
def test_lines_of_json(columns: Columns) -> None:
    assert written(ndjson_rows, columns) == with_line_ends(ndjson_lines(rows_of(columns)), "\n")


@settings(max_examples=examples(50))
@given(any_columns(records=True))
def test_records_as_json(columns: Columns) -> None:
    rows = map(record_json, rows_of(columns))
    assert written(ndjson_rows, columns) == with_line_ends(ndjson_lines(rows), "\n")


@settings(max_examples=examples(50))
@given(any_columns(), st.data())
def test_csv(columns: Columns, data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(columns)))[:4]
    lines = list(csv_lines(rows_of(columns), names))[1:]
    assert written(csv_rows, columns, names) == with_line_ends(lines, "\r\n")


@settings(max_examples=examples(50))
@given(any_columns(records=True))
def test_each_row_of_a_single_column_is_read_back(columns: Columns) -> None:
    for name in columns:
        text = written(csv_rows, columns, [name])
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        assert len(rows) == len(rows_of(columns))


@settings(max_examples=examples(50))
@given(any_columns(records=True))
def test_records_as_csv(columns: Columns) -> None:
    lines = list(csv_lines(map(record_text, rows_of(columns)), list(columns)))[1:]
    assert written(csv_rows, columns, list(columns)) == with_line_ends(lines, "\r\n")


@settings(max_examples=examples(30))
@given(any_columns(records=True))
def test_records_in_a_table(columns: Columns) -> None:
    table = Table(list(columns), [])
    lines = map(table.line, map(record_text, rows_of(columns)))
    assert written(table_rows, text_columns(columns), table) == with_line_ends(lines, "\n")


@settings(max_examples=examples(50))
@given(any_columns(), any_columns())
def test_a_table(first: Columns, columns: Columns) -> None:
    names = list(columns)
    table = Table(names, rows_of(first))
    lines = map(table.line, rows_of(columns))
    assert written(table_rows, columns, table) == with_line_ends(lines, "\n")


@pytest.mark.parametrize(
    "ns", [0, 1, 99, 100, 1000, 1_500_000, 2_500, 10**15 - 1, 10**15, 3 * 10**16]
)
def test_lengths_of_time(ns: int) -> None:
    columns = {"a": Milliseconds(ints([ns, -ns])), "b": Milliseconds(ints([-ns, ns]))}
    table = Table(["a", "b"], [])
    assert written(table_rows, columns, table) == with_line_ends(
        map(table.line, rows_of(columns)), "\n"
    )
    assert written(ndjson_rows, columns) == with_line_ends(ndjson_lines(rows_of(columns)), "\n")


def test_an_absent_cell_has_no_name() -> None:
    columns = columns_of([{"a": 1, "more": None}, {"a": 2}, {"a": None, "more": [1]}])
    assert written(ndjson_rows, columns).splitlines() == [
        '{"a": 1, "more": null}',
        '{"a": 2}',
        '{"a": null, "more": [1]}',
    ]


def test_capacity_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "OUT_BYTES", 16)
    monkeypatch.setattr(bulk, "BLOCK_ROWS", 3)
    columns: Columns = {
        "code": Coded(ints([0, 1, 0, 2, 0, 0, 0]), ["a", "b" * 500, []]),
        "number": Integers(ints([*range(7)])),
    }
    parts = [bytes(part) for part in ndjson_rows(columns)]
    assert b"".join(parts).decode() == with_line_ends(ndjson_lines(rows_of(columns)), "\n")
    assert len(parts) >= 3


def test_no_rows() -> None:
    assert list(ndjson_rows({"a": Integers(ints([]))})) == []
