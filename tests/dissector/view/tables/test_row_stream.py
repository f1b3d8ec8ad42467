"""A table has the same text for any division of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.tables.column_types import Coded, Columns, Integers, row_count, row_dict
from dissector.engine.tables.polars_tables import MixedRows
from dissector.view.tables import bulk_rows
from dissector.view.tables.row_formats import SAMPLE_ROWS, csv_lines, ndjson_lines, table_lines
from dissector.view.tables.row_stream import (
    LIVE_HEADER_LINES,
    Text,
    csv_text,
    ndjson_text,
    table_text,
)
from tests.dissector.view.drawn_columns import any_columns, ints
from tests.example_counts import examples


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [row_dict(columns, row) for row in range(row_count(columns))]


def joined(text: Iterator[Text]) -> str:
    return b"".join(map(bytes, text)).decode()


NAMES = ["number", 'na"me', "same_time_ns", "lag_ms", "last"]

FORMS: dict[str, tuple[Callable[[Any], Iterator[Text]], Callable[[Any], Iterator[str]], str]] = {
    "ndjson": (ndjson_text, ndjson_lines, "\n"),
    "csv": (lambda parts: csv_text(parts, NAMES), lambda rows: csv_lines(rows, NAMES), "\r\n"),
    "ndjson side by side": (lambda parts: ndjson_text(parts, 2), ndjson_lines, "\n"),
    "csv side by side": (
        lambda parts: csv_text(parts, NAMES, 2),
        lambda rows: csv_lines(rows, NAMES),
        "\r\n",
    ),
    "table": (lambda parts: table_text(parts, NAMES), lambda rows: table_lines(rows, NAMES), "\n"),
    "terminal": (
        lambda parts: table_text(parts, NAMES, terminal_width=30),
        lambda rows: table_lines(rows, NAMES, terminal_width=30),
        "\n",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(30))
@given(st.lists(st.tuples(any_columns(max_rows=3), st.booleans()), max_size=3))
def test_parts_of_any_kind(form: str, parts: list[tuple[Columns, bool]]) -> None:
    text, lines, end = FORMS[form]
    # All rows have the same order of columns.
    ordered = [({name: part[name] for name in NAMES}, in_columns) for part, in_columns in parts]
    given_parts = [part if in_columns else iter(rows_of(part)) for part, in_columns in ordered]
    rows = [row for part, _ in ordered for row in rows_of(part)]
    assert joined(text(given_parts)) == "".join(f"{line}{end}" for line in lines(rows))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(30))
@given(any_columns(max_rows=6), st.data())
def test_rows_among_columns(form: str, columns: Columns, data: st.DataObject) -> None:
    text, lines, end = FORMS[form]
    columns = {name: columns[name] for name in NAMES}
    rows = rows_of(columns)
    numbers = st.lists(st.integers(0, len(rows)), max_size=4)
    positions = sorted(data.draw(numbers if rows else st.just([0])))
    inserted = [
        data.draw(st.lists(st.sampled_from(rows), max_size=2)) if rows else [] for _ in positions
    ]
    expected = list(rows)
    for position, others in reversed(list(zip(positions, inserted, strict=True))):
        expected[position:position] = others
    part = MixedRows(columns, positions, list(map(iter, inserted)))
    assert joined(text([part])) == "".join(f"{line}{end}" for line in lines(expected))


def test_rows_among_columns_do_not_divide_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each distinct value of columns is rendered once."""
    rendered: list[object] = []

    def json_value(value: object) -> str:
        rendered.append(value)
        return str(value)

    monkeypatch.setattr(bulk_rows, "_json_value", json_value)
    columns = {"name": Coded(ints([0] * 100), [7])}
    part = MixedRows(columns, list(range(100)), [iter([{"name": 8}])] * 100)
    assert joined(ndjson_text([part])).count("\n") == 101
    assert rendered.count(7) == 1


@pytest.mark.parametrize("form", FORMS)
def test_widths_are_fixed_by_the_first_rows(form: str) -> None:
    text, lines, end = FORMS[form]
    counts = [SAMPLE_ROWS - 50, SAMPLE_ROWS, 7]
    parts = [{name: Integers(ints([*range(n)]) * 10**8) for name in NAMES} for n in counts]
    rows = [row for part in parts for row in rows_of(part)]
    expected = "".join(f"{line}{end}" for line in lines(rows))
    for in_columns in (0, 1, 2):
        mixed = [iter(rows_of(part)) if at == in_columns else part for at, part in enumerate(parts)]
        assert joined(text(mixed)) == expected


def test_the_header_of_csv_is_not_written_before_input_is_readable() -> None:
    def broken() -> Iterator[Any]:
        raise OSError
        yield

    with pytest.raises(OSError):  # noqa: PT011
        next(csv_text(broken(), NAMES))


@pytest.mark.parametrize("width", [None, 80])
def test_a_live_table_repeats_its_header(width: int | None) -> None:
    rows = [{"number": number, "last": "x"} for number in range(2 * LIVE_HEADER_LINES + 1)]
    parts = ([row] for row in rows)
    lines = joined(
        table_text(parts, ["number", "last"], terminal_width=width, live=True)
    ).splitlines()
    headers = [at for at, line in enumerate(lines) if line.endswith("last")]
    assert headers == [0, LIVE_HEADER_LINES + 1, 2 * LIVE_HEADER_LINES + 2]
    assert len({len(line) for line in lines}) == 2  # "x" is shorter than "last"


def test_columns_are_written_between_headers() -> None:
    part = {"number": Integers(ints(list(range(LIVE_HEADER_LINES))))}
    lines = joined(table_text([part, part], ["number"], live=True)).splitlines()
    headers = [at for at, line in enumerate(lines) if line.endswith("number")]
    assert headers == [0, LIVE_HEADER_LINES + 1]
