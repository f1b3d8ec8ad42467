"""Fits the columns of a table into the width of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

GAP = 2
"""Spaces between two columns."""
_MIN_TEXT = 14
"""A longer text may be cut to this width."""
_WHOLE = {
    **dict.fromkeys(("api", "error", "errors", "client", "broker", "coordinator"), 40),
    **dict.fromkeys(("a", "b", "source", "target"), 40),
    "time": 40,
    "note": 60,
}
"""
Columns whose texts say nothing in part: other columns are left out before they are cut.

With the width to which even these may be cut: lists of errors have any length.
"""
_MIN_HEADER = 10
"""A line of a heading that is longer may be cut to this width."""


@dataclass(slots=True, eq=False, repr=False)
class Layout:
    """
    Layout of a table on a terminal.

    Attributes:
        priority: Columns with precedence if there is no room for all.
        keeps_all: Whether all columns are required, because they were chosen.
        has_color: Whether rows with errors are coloured, in any output.
        report: Receives the columns that are left out, if any.
    """

    priority: Sequence[str] = ()
    keeps_all: bool = False
    has_color: bool = False
    report: Callable[[Sequence[str]], None] = field(default=lambda names: None)


@dataclass(slots=True, eq=False, repr=False)
class ColumnWidth:
    """
    The widths that a column needs.

    Attributes:
        name: The column.
        cells: Width of its widest cell.
        heading: Width of its name.
        may_be_cut: Whether its cells are texts, which may be shortened.
        is_empty: Whether no cell has a value.
    """

    name: str
    cells: int
    heading: int
    may_be_cut: bool
    is_empty: bool

    @property
    def minimum(self) -> int:
        """Its minimum width."""
        limit = _WHOLE.get(self.name, _MIN_TEXT)
        cells = min(self.cells, limit) if self.may_be_cut else self.cells
        lines = max(map(len, heading_lines(self.name)))
        return max(cells, min(lines, _MIN_HEADER))

    @property
    def wanted(self) -> int:
        """Its width without truncation."""
        return max(self.cells, self.heading)


def fit_columns(columns: Sequence[ColumnWidth], width: int, layout: Layout) -> dict[str, int]:
    """Return the columns that are shown, in order, with their widths."""
    needed = set(layout.priority)  # a later row may have an error even if the first ones have none
    wanted = [
        column
        for column in columns
        if layout.keeps_all or column.name in needed or not column.is_empty
    ]
    ranks = {name: rank for rank, name in enumerate(layout.priority)}
    by_rank = sorted(wanted, key=lambda column: ranks.get(column.name, len(ranks)))
    widths: dict[str, int] = {}
    free = width + GAP
    for column in by_rank:
        if layout.keeps_all or column.minimum + GAP <= free:
            widths[column.name] = column.minimum
            free -= column.minimum + GAP
    # Cells first: a heading may have two lines.
    for wish in ("cells", "wanted"):
        for column in by_rank:
            if column.name in widths:
                growth = max(0, min(free, getattr(column, wish) - widths[column.name]))
                widths[column.name] += growth
                free -= growth
    return {column.name: widths[column.name] for column in wanted if column.name in widths}


def heading_lines(name: str) -> tuple[str, str]:
    """Return a name in two lines, divided behind the `_` that makes them narrowest."""
    places = [at + 1 for at, each in enumerate(name[:-1]) if each == "_"]
    at = min(places, key=lambda at: max(at, len(name) - at), default=len(name))
    return name[:at], name[at:]


def cut_middle(text: str, width: int, width_of: Callable[[str], int]) -> str:
    """Cut a text in the middle to a width; `width_of` returns the width of a text."""
    if width_of(text) <= width:
        return text
    if width < 1:
        return ""
    head = tail = ""
    used, at = 1, 0
    while 2 * at < len(text):
        for piece, is_head in ((text[at], True), (text[-1 - at], False)):
            used += width_of(piece)
            if used > width:
                return f"{head}…{tail}"
            head, tail = (head + piece, tail) if is_head else (head, piece + tail)
        at += 1
    return f"{head}…{tail}"
