"""Documents as text."""

from __future__ import annotations

from dissector.view.document.content import (
    Document,
    Drawing,
    Facts,
    Finding,
    Findings,
    Markup,
    Notes,
    Section,
    Table,
    TableRow,
    table_of,
)
from dissector.view.document.text_form import text_lines


def _document() -> Document:
    found = [Finding("later", [("found", "a\x1b"), ("", {"b": None})], "error F1")]
    blocks = [
        Facts([("capture", "a.pcap")]),
        Notes([], "Nothing"),
        Findings(found * 2),
        Findings([Finding("step 1", [("captured", 3)])], "Differences"),
        Drawing([Markup("<svg></svg>")]),
        *table_of("Totals", [{"api": "Fetch", "count": 2}]),
    ]
    return Document("title", "all is well", [Section("s", "Section", blocks)])


BODY = [
    "capture   a.pcap",
    "",
    "error F1 later",
    "  found     a\\x1b",
    '            {"b": null}',
    "",
    "error F1 later",
    "  found     a\\x1b",
    '            {"b": null}',
    "",
    "Differences",
    "  step 1",
    "    captured  3",
    "",
    "Totals",
    "api    count",
    "Fetch      2",
]


def test_blocks_are_apart_and_empty_ones_are_left_out() -> None:
    assert list(text_lines(_document())) == ["all is well", "", *BODY]


def test_the_headline_may_come_last() -> None:
    lines = list(text_lines(_document(), ends_with_headline=True))
    assert lines == [*BODY, "", "all is well"]
    empty = Document("", "nothing", [Section("s", "S", [])])
    assert list(text_lines(empty, ends_with_headline=True)) == ["nothing"]


def test_rows_that_are_left_out_are_counted() -> None:
    table = Table("T", ["a"], [TableRow([1])], more=1_500, note="of all")
    lines = list(text_lines(Document("", "h", [Section("s", "S", [table])])))
    assert lines[-2:] == ["1,500 more are not shown", "of all"]
