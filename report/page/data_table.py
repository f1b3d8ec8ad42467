"""A table of the page: rows of texts, with the numbers that they sort by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from report.page.safe_text import SafeText

MAX_ROWS = 100
"""Rows of a table; further ones are only counted."""


class Cell(NamedTuple):
    """
    A value of a table.

    Attributes:
        text: The value, safe to print.
        number: The sort key; None for a text.
    """

    text: str
    number: float | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """
    A row of a table.

    Attributes:
        cells: Its values.
        begin_s: When it begins, in seconds since the begin of the plots; None for a row of no time.
        end_s: When it ends.
        css_class: How it is marked.
    """

    cells: list[Cell]
    begin_s: float | None = None
    end_s: float | None = None
    css_class: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table.

    Attributes:
        name: Its id in the page.
        title: Its caption.
        columns: Headings, each with whether the column has numbers.
        rows: The rows.
        more: How many further rows there are.
        note: A note for the reader; may be empty.
        is_open: Whether it is unfolded at first.
    """

    name: str
    title: str
    columns: list[tuple[str, bool]]
    rows: list[TableRow] = field(default_factory=list)
    more: int = 0
    note: str = ""
    is_open: bool = False


Interval = Callable[[Mapping[str, Any]], tuple[float, float] | None]
"""Returns begin and end of a row in seconds; None for a row of no time."""


def _no_interval(row: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class TableMaker:
    """
    Makes tables of rows.

    Attributes:
        safe: Converts values.
        interval: Begin and end of rows.
        most: How many rows a table has.
    """

    safe: SafeText
    interval: Interval = _no_interval
    most: int = MAX_ROWS

    def table(
        self,
        name: str,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Mapping[str, Any]],
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
        *,
        note: str = "",
        is_open: bool = False,
    ) -> Table:
        """
        Return a table with some columns of rows.

        Args:
            name: Its id in the page.
            title: Its caption.
            columns: Names of values; a row may lack them.
            rows: The rows.
            change: Formats a row; `css_class` is how it is marked.
            note: A note for the reader.
            is_open: Whether it is unfolded at first.
        """
        every = list(rows)
        shown = list(map(change, every[: self.most]))
        numeric = [_is_numeric([row.get(column) for row in shown]) for column in columns]
        headings = [column.replace("_", " ") for column in columns]
        return Table(
            name,
            title,
            list(zip(headings, numeric, strict=True)),
            [self._row(row, columns) for row in shown],
            len(every) - len(shown),
            note,
            is_open,
        )

    def _row(self, row: Mapping[str, Any], columns: Sequence[str]) -> TableRow:
        begin_s, end_s = self.interval(row) or (None, None)
        values = [row.get(column) for column in columns]
        cells = [Cell(self.safe.cell(value), _number(value)) for value in values]
        return TableRow(cells, begin_s, end_s, row.get("css_class", ""))


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _is_numeric(values: Sequence[Any]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(_number(value) is not None for value in found)
