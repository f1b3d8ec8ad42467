"""The forms of cells, headers and lines in text tables and CSV."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from dissector.engine.tables.column_types import Row
from dissector.view.tables.column_fitting import (
    GAP,
    ColumnWidth,
    Layout,
    cut_middle,
    fit_columns,
    heading_lines,
)
from dissector.view.text.colors import BOLD, PLAIN, colored, row_color
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text, jsonable, time_text

SAMPLE_ROWS = 200
"""Rows that are read before the first is printed; they determine the column widths."""
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
"""Widths of text columns in live output, where few rows are known."""
_DEFAULT_NUMBER_WIDTH = 9
FORMULA_STARTS = ("=", "+", "-", "@")
"""Spreadsheets interpret a text with such a beginning as a formula."""
TIMES_NS = ("time_ns", "end_ns")
"""Ends of the names of columns of times, in ns since the epoch."""
TIMES = (*TIMES_NS, "frame.time")
"""The same, with a name of filters."""
_COLORED = ("errors", "error", "status", "problems", "unanswered")
"""Columns that say what is wrong with a row."""
COLUMN_GAP = " " * GAP
"""Text between two columns."""


def table_lines(
    rows: Iterable[Row],
    columns: Sequence[str],
    *,
    terminal_width: int | None = None,
    layout: Layout | None = None,
) -> Iterator[str]:
    """
    Yield the lines of a table: a header of one or two lines, then a line for each row.

    Args:
        rows: Each has all the columns.
        columns: In order. `frame.time`, and those that end with `time_ns`, are shown as times.
        terminal_width: Width of the terminal, if any: longer lines are truncated.
        layout: Fitting of the columns into that width.
    """
    rows = iter(rows)
    first = list(islice(rows, SAMPLE_ROWS))
    table = Table(columns, first, terminal_width, layout=layout)
    yield from table.header_lines()
    yield from map(table.line, chain(first, rows))


class Table:
    """
    A text table; its first rows determine the column widths.

    Attributes:
        columns: Names of the columns.
        headings: What stands above each.
        widths: Width of each column, unless a later row needs more.
        is_right_aligned: Mask of right-aligned columns: numbers.
    """

    def __init__(
        self,
        columns: Sequence[str],
        first: Sequence[Row],
        terminal_width: int | None = None,
        *,
        live: bool = False,
        layout: Layout | None = None,
    ) -> None:
        """Determine the widths; `live`: from few rows, so default widths apply too."""
        self.columns = columns
        self.headings: dict[str, str] = {}
        self._has_color = layout is not None and layout.has_color
        self._cuts = False
        self.is_right_aligned = [
            _is_number(name, [row[name] for row in first])
            and not (live and name in _DEFAULT_WIDTHS)
            for name in columns
        ]
        self.widths = []
        for name, is_number in zip(columns, self.is_right_aligned, strict=True):
            default = (
                _DEFAULT_WIDTHS.get(name, _DEFAULT_NUMBER_WIDTH if is_number else 0) if live else 0
            )
            cells = (_display_width(cell(name, row[name])) for row in first)
            values = [row[name] for row in first]
            title = name.removesuffix("_ns") if name.endswith(TIMES_NS) else heading(name, values)
            self.headings[name] = title
            self.widths.append(min(_MAX_WIDTH, max([_display_width(title), default, *cells])))
        self._terminal_width = terminal_width
        if terminal_width is not None and layout is not None:
            self._fit(first, terminal_width, layout, live)

    def _fit(self, first: Sequence[Row], terminal_width: int, layout: Layout, live: bool) -> None:
        """Omit columns, and shorten texts, to fit the width of the terminal."""
        needs = [
            ColumnWidth(
                name,
                max(
                    [
                        width if live else 0,
                        *(_display_width(cell(name, row[name])) for row in first),
                    ]
                ),
                _display_width(self.headings[name]),
                not is_number,
                not live and not any(row[name] not in (None, "", 0, [], ()) for row in first),
            )
            for name, width, is_number in zip(
                self.columns, self.widths, self.is_right_aligned, strict=True
            )
        ]
        if sum(max(each.wanted, 1) + GAP for each in needs) - GAP <= terminal_width:
            return
        fitted = fit_columns(needs, terminal_width, layout)
        numbers = dict(zip(self.columns, self.is_right_aligned, strict=True))
        if len(fitted) < len(needs):
            layout.report([each.name for each in needs if each.name not in fitted])
        self.columns = list(fitted)
        self.widths = list(fitted.values())
        self.is_right_aligned = [numbers[name] for name in fitted]
        self._cuts = True

    def header(self) -> str:
        """Return the lines of names as one text."""
        return "\n".join(self.header_lines())

    def header_lines(self) -> list[str]:
        """Return the line of names; two lines if a column is narrower than its name."""
        pairs = [
            heading_lines(title) if self._cuts and len(title) > width else (title, "")
            for title, width in zip(
                map(self.headings.__getitem__, self.columns), self.widths, strict=True
            )
        ]
        lines = [self._line(each) for each in zip(*pairs, strict=True)] if pairs else [""]
        lines = [line for line in lines if line] or [""]
        return [f"{BOLD}{line}{PLAIN}" if self._has_color else line for line in lines]

    def line(self, row: Row) -> str:
        """Return the line of a row."""
        line = self._line([cell(name, row[name]) for name in self.columns])
        color = row_color(row) if self._has_color else ""
        return self._with_color(line, row, color) if color else line

    def _with_color(self, line: str, row: Row, color: str) -> str:
        """Color the cells that say what is wrong; without such a column, the whole line."""
        spans, begin = [], 0
        for name, width in zip(self.columns, self.widths, strict=True):
            shown = max(width, _display_width(cell(name, row[name])))
            if name in _COLORED and row[name] not in (None, "", 0, [], (), "NONE", "answered"):
                spans.append((begin, begin + shown))
            begin += shown + GAP
        if not spans or not line.isascii():
            return colored(line, 0, len(line), color)
        for span in reversed(spans):
            line = colored(line, *span, color)
        return line

    def padded_cell(self, at: int, value: Any) -> str:
        """Return a value of a column, given by its index, padded to the column's width."""
        return _pad(cell(self.columns[at], value), self.widths[at], self.is_right_aligned[at])

    def _line(self, cells: Sequence[str]) -> str:
        if self._cuts:
            cells = [
                cut_middle(text, width, _display_width)
                for text, width in zip(cells, self.widths, strict=True)
            ]
        text = COLUMN_GAP.join(map(_pad, cells, self.widths, self.is_right_aligned)).rstrip()
        return text if self._terminal_width is None else _truncate(text, self._terminal_width)


def heading(name: str, values: Iterable[Any] = ()) -> str:
    """
    Return what stands above a column: its name, without the unit if it shows times as text.

    Args:
        name: The name.
        values: Some of the values.
    """
    unit = next((unit for unit in ("_ns", "_ms") if name.endswith(unit)), "")
    has_texts = bool(unit) and any(isinstance(each, str) for each in values)
    return name.removesuffix(unit) if has_texts else name


def _is_number(name: str, values: Sequence[Any]) -> bool:
    """Return whether a column holds numbers, which are right-aligned."""
    not_null = [value for value in values if value is not None]
    return not name.endswith(TIMES) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in not_null
    )


def cell(name: str, value: Any) -> str:
    """Return a value as shown in a text table."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() if name.endswith(TIMES):
            return time_text(value)
        case float():
            return f"{value:.3f}"
        case "" if name != "network":
            return '""'
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
    """Return the number of terminal columns of a text."""
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
    characters, used = [], 0
    for character in text:
        used += _character_width(character)
        if used >= width:
            break
        characters.append(character)
    return "".join(characters) + "…"


def csv_header(columns: Sequence[str]) -> str:
    """
    Return the first line of a CSV file with these headings, without its line end (CR LF).

    Source: RFC 4180
    """
    return _csv_line(columns)


def csv_cell(value: Any) -> str:
    """
    Return a value as a CSV cell.

    Lists are joined with `;`, null is empty, an empty text is `""`, non-printable characters are
    escaped. A text that a spreadsheet would interpret as a formula is prefixed with `'`.

    Source: RFC 4180; https://owasp.org/www-community/attacks/CSV_Injection
    """
    return _csv_line([_csv_cell(value)])


def _quote_formula(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _csv_line(cells: Sequence[str | None]) -> str:
    return ",".join(map(_quote_cell, cells))


def _quote_cell(cell: str | None) -> str:
    if cell is None:
        return ""
    if cell == "" or any(character in cell for character in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _csv_cell(value: Any) -> str | None:
    match value:
        case None | [] | ():
            return None
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ";".join(_csv_cell(each) or "" for each in value)
        case dict():
            return json_text(value)
        case int() | float():
            return str(value)
        case _:
            return _quote_formula(escaped(str(jsonable(value))))
