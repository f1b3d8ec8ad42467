"""Rows as text: a table for people, CSV and lines of JSON for machines; all of them stream."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text, jsonable, time_text

Row = Mapping[str, Any]

SAMPLE_ROWS = 200
"""So many rows are read before the first is printed; they settle how wide each column is."""
_MAX_WIDTH = 60
_DEFAULT_WIDTHS = {
    "client": 21,
    "broker": 21,
    "api": 16,
    "client_id": 20,
    "status": 10,
    "errors": 24,
    "topics": 24,
    "topic": 24,
    "key": 16,
    "value": 40,
    "headers": 16,
    "codec": 6,
    "control": 6,
}
"""How wide columns of text are where their rows are not known yet."""
_DEFAULT_NUMBER_WIDTH = 9
FORMULA_STARTS = ("=", "+", "-", "@")
"""A spreadsheet takes text that begins so for a formula."""
COLUMN_GAP = "  "
"""Stands between two columns."""


def table_lines(
    rows: Iterable[Row], columns: Sequence[str], *, terminal_width: int | None = None
) -> Iterator[str]:
    """
    Yield the lines of a table: a header, then a line for each row.

    Args:
        rows: Each has all the columns.
        columns: In order. Those that end in `time_ns` are shown as times.
        terminal_width: Where the output is a terminal: longer lines are cut there.
    """
    rows = iter(rows)
    first = list(islice(rows, SAMPLE_ROWS))
    table = Table(columns, first, terminal_width)
    yield table.header()
    yield from map(table.line, chain(first, rows))


class Table:
    """
    A table for people, whose first rows have settled how wide each column is.

    Attributes:
        columns: Their names.
        widths: How many places each takes, unless a later row needs more.
        is_right_aligned: Which stand to the right: numbers.
    """

    def __init__(
        self,
        columns: Sequence[str],
        first: Sequence[Row],
        terminal_width: int | None = None,
        *,
        live: bool = False,
    ) -> None:
        """Settle the columns; `live`: by few rows, so that they need room for what is usual."""
        self.columns = columns
        self.is_right_aligned = [
            _is_number(name, [row[name] for row in first])
            and not (live and name in _DEFAULT_WIDTHS)
            for name in columns
        ]
        self.widths = []
        for name, is_number in zip(columns, self.is_right_aligned, strict=True):
            usual = (
                _DEFAULT_WIDTHS.get(name, _DEFAULT_NUMBER_WIDTH if is_number else 0) if live else 0
            )
            cells = (_display_width(cell(name, row[name])) for row in first)
            self.widths.append(min(_MAX_WIDTH, max([_display_width(name), usual, *cells])))
        self._terminal_width = terminal_width

    def header(self) -> str:
        """Return the line of names."""
        return self._line(self.columns)

    def line(self, row: Row) -> str:
        """Return the line of a row."""
        return self._line([cell(name, row[name]) for name in self.columns])

    def padded_cell(self, at: int, value: Any) -> str:
        """Return what a value of a column, by its place, takes in a line."""
        return _pad(cell(self.columns[at], value), self.widths[at], self.is_right_aligned[at])

    def _line(self, cells: Sequence[str]) -> str:
        text = COLUMN_GAP.join(map(_pad, cells, self.widths, self.is_right_aligned)).rstrip()
        return text if self._terminal_width is None else _truncate(text, self._terminal_width)


def _is_number(name: str, values: Sequence[Any]) -> bool:
    """Tell whether a column holds numbers, which stand to the right."""
    known = [value for value in values if value is not None]
    return not name.endswith("time_ns") and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def cell(name: str, value: Any) -> str:
    """Return a value as a table for people shows it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() if name.endswith("time_ns"):
            return time_text(value)
        case float():
            return f"{value:.3f}"
        case str():
            return escaped(value)
        case list() | tuple():
            return ", ".join(cell(name, each) for each in value)
        case dict() | bytes():
            return json_text(value)
        case _:
            return escaped(str(value))


def _pad(text: str, width: int, right_aligned: bool) -> str:
    space = " " * (width - _display_width(text))
    return space + text if right_aligned else text + space


def _display_width(text: str) -> int:
    """Return how many places a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _truncate(text: str, width: int) -> str:
    if _display_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _character_width(character)
        if used >= width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def ndjson_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON object for each row, without its line end."""
    return map(json_text, rows)


def csv_lines(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """
    Yield the lines of a CSV file, header first, each without its line end (which is CR LF).

    Lists are joined with `;`, null is empty, whatever is not printable is escaped. A text that a
    spreadsheet would take for a formula has a `'` before it.

    Source: RFC 4180; https://owasp.org/www-community/attacks/CSV_Injection
    """
    yield _csv_line(columns)
    for row in rows:
        yield csv_line(row, columns)


def csv_line(row: Row, columns: Sequence[str]) -> str:
    """Return a row as a line of CSV, without its end."""
    return _csv_line([_csv_cell(row[name]) for name in columns])


def csv_cell(value: Any) -> str:
    """Return a value as it stands in a line of CSV, between commas."""
    return _csv_line([_csv_cell(value), ""])[:-1]


def _quote_formula(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _csv_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ";".join(map(_csv_cell, value))
        case dict():
            return json_text(value)
        case int() | float():
            return str(value)
        case _:
            return _quote_formula(escaped(str(jsonable(value))))
