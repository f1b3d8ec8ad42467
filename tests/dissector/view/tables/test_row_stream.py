"""A table has the same text for any division of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.tables.column_types import Columns, Integers, iter_rows
from dissector.engine.tables.columns_of import columns_of
from dissector.view.tables.row_formats import SAMPLE_ROWS, table_lines
from dissector.view.tables.row_stream import (
    LIVE_HEADER_LINES,
    Text,
    csv_text,
    ndjson_text,
    table_text,
)
from tests.dissector.view.drawn_columns import any_columns, ints
from tests.dissector.view.row_lines import csv_lines, ndjson_lines
from tests.example_counts import examples


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return list(iter_rows(columns))


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
    ordered = [({name: part[name] for name in NAMES}, in_bulk) for part, in_bulk in parts]
    given_parts = [part if in_bulk else columns_of(rows_of(part)) for part, in_bulk in ordered]
    given_parts = [part for part in given_parts if part]
    rows = [row for part, _ in ordered for row in rows_of(part)]
    assert joined(text(given_parts)) == "".join(f"{line}{end}" for line in lines(rows))


@pytest.mark.parametrize("form", FORMS)
def test_widths_are_fixed_by_the_first_rows(form: str) -> None:
    text, lines, end = FORMS[form]
    counts = [SAMPLE_ROWS - 50, SAMPLE_ROWS, 7]
    parts = [{name: Integers(ints([*range(n)]) * 10**8) for name in NAMES} for n in counts]
    rows = [row for part in parts for row in rows_of(part)]
    expected = "".join(f"{line}{end}" for line in lines(rows))
    for apart in (0, 1, 2):
        given_parts = [
            columns_of(rows_of(part)) if at == apart else part for at, part in enumerate(parts)
        ]
        assert joined(text(given_parts)) == expected


def test_the_header_of_csv_is_not_written_before_input_is_readable() -> None:
    def broken() -> Iterator[Any]:
        raise OSError
        yield

    with pytest.raises(OSError):  # noqa: PT011
        next(csv_text(broken(), NAMES))


@pytest.mark.parametrize("width", [None, 80])
def test_a_live_table_repeats_its_header(width: int | None) -> None:
    rows = [{"number": number, "last": "x"} for number in range(2 * LIVE_HEADER_LINES + 1)]
    parts = (columns_of([row]) for row in rows)
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
