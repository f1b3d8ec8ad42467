from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissector.view.tables.column_fitting import ColumnWidth, Layout, cut_middle, fit_columns
from dissector.view.tables.row_formats import table_lines


def column(name: str, cells: int, *, text: bool = True, empty: bool = False) -> ColumnWidth:
    return ColumnWidth(name, cells, len(name), text, empty)


def test_columns_with_the_highest_rank_are_kept() -> None:
    columns = [column("x", 30), column("number", 9, text=False), column("y", 30), column("z", 8)]
    shown = fit_columns(columns, 32, Layout(priority=("y", "number")))
    assert list(shown) == ["number", "y"]
    assert shown["number"] == 9, "numbers are never shortened"
    assert sum(shown.values()) + 2 == 32


def test_empty_columns_are_dropped_first_unless_ranked() -> None:
    columns = [column("empty", 0, empty=True), column("errors", 0, empty=True), column("x", 70)]
    assert list(fit_columns(columns, 60, Layout(priority=("errors",)))) == ["errors", "x"]
    assert list(fit_columns(columns, 60, Layout(keeps_all=True))) == ["empty", "errors", "x"]


WIDTHS = st.lists(st.builds(column, st.text("abc", min_size=1), st.integers(0, 90)), max_size=8)


@given(WIDTHS, st.integers(20, 200))
def test_shown_columns_fit(columns: list[ColumnWidth], width: int) -> None:
    shown = fit_columns(columns, width, Layout())
    assert sum(shown.values()) + 2 * (len(shown) - 1) <= width


def test_columns_are_left_out_before_names_of_errors_and_addresses_are_cut() -> None:
    columns = [column("errors", 26), column("broker", 21), column("topics", 40), column("x", 30)]
    shown = fit_columns(columns, 70, Layout(priority=("errors", "topics", "broker")))
    assert shown == {"errors": 26, "broker": 0, "topics": 40} | {"broker": 21, "topics": 19}
    assert list(fit_columns(columns, 50, Layout(priority=("errors", "broker")))) == [
        "errors",
        "broker",
    ]


@given(st.text(max_size=30), st.integers(0, 30))
def test_shortened_texts_keep_both_ends(text: str, width: int) -> None:
    cut = cut_middle(text, width, len)
    assert len(cut) <= max(width, 0)
    if len(text) > width > 2:
        assert (cut[0], cut[-1], cut.count("…") >= 1) == (text[0], text[-1], True)
    elif len(text) <= width:
        assert cut == text


def test_wide_characters_count_twice() -> None:
    rows = [{"name": "漢字漢字漢字漢字漢字漢字", "n": 1}]
    (_, line) = table_lines(rows, ("name", "n"), terminal_width=20, layout=Layout(("name", "n")))
    assert "…" in line
    assert line.endswith("1")


def test_omitted_columns_are_reported() -> None:
    reported: list[str] = []
    layout = Layout(("x",), report=reported.extend)
    rows = [{"x": "x" * 40, "y": "y" * 40, "c": None}]
    header, line = table_lines(rows, ("x", "y", "c"), terminal_width=30, layout=layout)
    assert reported == ["c"]
    assert (len(header.split()), line.count("…")) == (2, 2)
