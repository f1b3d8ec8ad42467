"""Tables of a report on a capture, made from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dissector.view.document.content import Table, TableRow
from report.page.safe_text import SafeText

MAX_ROWS = 100
"""Maximum number of rows in a table; others are counted."""

Interval = Callable[[Mapping[str, Any]], tuple[float, float] | None]
"""Returns begin and end of a row in seconds; None for rows without a time."""


def _no_interval(row: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class TableMaker:
    """
    Makes tables of rows.

    Attributes:
        safe: Masks and shortens texts.
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
            change: Formats a row; `mood` is its mood.
            note: Note for the reader.
            is_open: Whether the table is initially unfolded.
        """
        every = list(rows)
        shown = [self._row(change(row), columns) for row in every[: self.most]]
        more = len(every) - len(shown)
        return Table(title, columns, shown, more, note, is_open, name)

    def _row(self, row: Mapping[str, Any], columns: Sequence[str]) -> TableRow:
        begin_s, end_s = self.interval(row) or (None, None)
        values = [self.safe.value(row.get(column)) for column in columns]
        return TableRow(values, row.get("mood", ""), begin_s, end_s)
