from __future__ import annotations

import csv
import io
from itertools import count, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.view.tables.row_formats import SAMPLE_ROWS, table_lines
from tests.dissector.view.row_lines import csv_lines

ROWS = [
    {"api": "Produce", "latency_ms": 1.0, "count": 12, "topics": ["a", "b"], "ok": True},
    {"api": "日本", "latency_ms": None, "count": 3, "topics": [], "ok": None},
    {"api": "\x1b[31m", "latency_ms": 12.3456, "count": None, "topics": ["x\ny"], "ok": False},
]
COLUMNS = ("api", "latency_ms", "count", "topics", "ok")


def test_a_table() -> None:
    assert list(table_lines(ROWS, COLUMNS)) == [
        "api       latency_ms  count  topics  ok",
        "Produce        1.000     12  a, b    true",
        "日本                      3",
        r"\x1b[31m      12.346         x\x0ay  false",
    ]


def test_times_are_readable() -> None:
    lines = list(table_lines([{"time_ns": 1}], ["time_ns"]))
    assert lines == ["time", "1970-01-01 00:00:00.000000001Z"]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (40, ["a             b", "日本日本日本  1"]),
        (15, ["a             b", "日本日本日本  1"]),
        (14, ["a            …", "日本日本日本 …"]),
        (6, ["a    …", "日本…"]),
        (1, ["…", "…"]),
    ],
)
def test_lines_fit_the_terminal(width: int, expected: list[str]) -> None:
    rows = [{"a": "日本日本日本", "b": 1}]
    assert list(table_lines(rows, ["a", "b"], terminal_width=width)) == expected


def test_a_table_is_streamed_once_its_widths_are_fixed() -> None:
    endless = ({"n": n} for n in count())
    lines = list(islice(table_lines(endless, ["n"]), SAMPLE_ROWS + 1000))
    assert lines[:2] == ["  n", "  0"]
    assert lines[-1] == "1198"


def test_column_width_is_limited() -> None:
    line = list(table_lines([{"a": "x" * 500, "b": "y"}, {"a": "x", "b": "y"}], ["a", "b"]))[2]
    assert line == "x" + " " * 59 + "  y"


def test_no_rows_give_the_header() -> None:
    assert list(table_lines([], ["a", "b"])) == ["a  b"]
    assert list(csv_lines([], ["a", "b"])) == ["a,b"]


def test_csv() -> None:
    row = {"a": 'say "x", y', "b": ["p", "q;r"], "c": None, "d": {"hex": "ff"}, "e": 1.5, "f": True}
    assert list(csv_lines([row], list(row))) == [
        "a,b,c,d,e,f",
        '"say ""x"", y",p;q;r,,"{""hex"": ""ff""}",1.5,true',
    ]


FORMULAS = ("=", "+", "-", "@")


@pytest.mark.parametrize("text", ["=1+1", "+49", "-1", "@SUM(1)", "=cmd|' /C calc'!A0"])
def test_texts_in_csv_are_not_formulas(text: str) -> None:
    row = {"text": text, "list": [text, "b"], "number": -1, "real": -1.5}
    _, line = csv_lines([row], list(row))
    assert line == f"'{text},'{text};b,-1,-1.5"


@given(st.lists(st.tuples(st.text(st.characters()), st.none() | st.integers()), max_size=5))
def test_csv_can_be_read_back(values: list[tuple[str, Any]]) -> None:
    rows = [{"text": text, "number": number} for text, number in values]
    written = "".join(f"{line}\r\n" for line in csv_lines(rows, ["text", "number"]))
    assert written.encode("utf-8")
    read = list(csv.DictReader(io.StringIO(written, newline="")))
    assert [row["number"] for row in read] == [
        "" if number is None else str(number) for _, number in values
    ]
    printable = [(got["text"], text) for got, (text, _) in zip(read, values, strict=True)]
    guarded = [(got, f"'{text}" if text[:1] in FORMULAS else text) for got, text in printable]
    assert all(got == text for got, text in guarded if text.isprintable())
    assert all(got.isprintable() for got, _ in printable)


@given(st.text(st.characters()))
def test_control_characters_are_escaped(text: str) -> None:
    rows = [{text: text, "list": [text]}]
    for lines in (
        table_lines(rows, [text, "list"]),
        table_lines(rows, [text, "list"], terminal_width=20),
        csv_lines(rows, ["list"]),
    ):
        assert list(lines)[-1].isprintable()
