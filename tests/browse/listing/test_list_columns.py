"""Columns of the list: cells as text, widths, times."""

from __future__ import annotations

from browse.listing.list_columns import MAX_BYTES, MODES, ColumnWidths, TimeForms, cell_text
from browse.listing.row_colors import kind_of_api, style_of
from browse.listing.row_marks import RowMarks
from dissector.view.text.time_style import STYLES


def test_cells_are_safe_for_a_terminal() -> None:
    assert cell_text("key", b"caf\xc3\xa9") == "café"
    assert cell_text("key", b"\xff\x00") == "0xff00"
    assert cell_text("key", b"\x1b[2J") == "\\x1b[2J"
    assert cell_text("value", "é".encode() * 200)[:MAX_BYTES].startswith("éé")
    assert cell_text("headers", [{"key": "a", "value": b"b\n"}]) == "a=b\\x0a"
    assert cell_text("timestamp_ms", 1_700_000_000_000) == "2023-11-14 22:13:20.000Z"
    assert cell_text("errors", ["A", "B"]) == "A, B"


def test_widths_fit_the_samples() -> None:
    widths = ColumnWidths(("api", "network_ms"), [[("Fetch", False), ("12.500", True)]])
    assert widths.line(("Fetch", "1.0")) == "Fetch         1.0"
    assert widths.line(("LeaderAndIsr", "")).startswith("Lead…")
    assert [widths.at(x) for x in (0, 6, 7, 99)] == [0, 0, 1, None]
    assert widths.total == 17
    assert ColumnWidths((), ()).line(()) == ""


def test_formats_of_times() -> None:
    times = TimeForms("r", 1_000_000_000)
    assert times.text(1_500_000_000, None) == "0.500000"
    seen = {times.next() for _ in STYLES}
    assert seen == set(STYLES.values())
    times.style = "d"
    assert times.text(1_500_000_000, 1_200_000_000) == "0.300000"


def test_modes_show_their_own_columns() -> None:
    for mode in MODES:
        assert {*mode.shown, *mode.packets, mode.time} <= {*mode.columns}


def test_colors_distinguish_kinds_and_errors() -> None:
    assert [kind_of_api(api) for api in ("Fetch", "Metadata", "JoinGroup", "Vote", None)] == [
        *("data", "metadata", "groups", "cluster", "other")
    ]
    assert style_of({"api": "Fetch", "errors": ["X"]}) == "error"
    assert style_of({"api": "Fetch", "status": "unanswered"}) == "incomplete"
    assert style_of({"api": "InitProducerId", "errors": []}) == "transactions"


def test_marks() -> None:
    marks = RowMarks()
    marks.set("a", 3)
    marks.set("'", 5)
    assert (marks.sign(3), marks.sign(5), marks.row("'")) == ("a", "", 5)
    marks.set("a", 4)
    assert marks.letters() == {"a": 4}
    marks.set("a", 4)
    assert marks.letters() == {}
