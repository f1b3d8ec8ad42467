"""Tables of the page: rows of texts, with numeric sort keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from report.page.safe_text import SafeText

MAX_ROWS = 100
"""Maximum number of rows in a table; others are counted."""


class Cell(NamedTuple):
    """
    A value in a table.

    Attributes:
        text: Escaped text.
        number: Sort key; None for texts.
    """

    text: str
    number: float | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """
    A row in a table.

    Attributes:
        cells: Values of the row.
        begin_s: Begin in seconds since the begin of the plots; None for rows without a time.
        end_s: End in the same unit.
        css_class: CSS class of the row.
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
        name: Id in the page.
        title: Caption.
        columns: Headings, and whether columns are numeric.
        rows: The rows.
        more: Number of omitted rows.
        note: Note for the reader; may be empty.
        is_open: Whether the table is initially unfolded.
    """

    name: str
    title: str
    columns: list[tuple[str, bool]]
    rows: list[TableRow] = field(default_factory=list)
    more: int = 0
    note: str = ""
    is_open: bool = False


Interval = Callable[[Mapping[str, Any]], tuple[float, float] | None]
"""Returns begin and end of a row in seconds; None for rows without a time."""


def _no_interval(row: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class TableMaker:
    """
    Makes tables of rows.

    Attributes:
        safe: Converts values to escaped texts.
        interval: Returns begin and end of rows.
        most: Maximum number of rows in a table.
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
        Return a table with selected columns of rows.

        Args:
            name: Id in the page.
            title: Caption.
            columns: Names of values; rows may lack some.
            rows: The rows.
            change: Formats a row; `css_class` is its CSS class.
            note: Note for the reader.
            is_open: Whether the table is initially unfolded.
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
