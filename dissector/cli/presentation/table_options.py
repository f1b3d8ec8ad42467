"""The view of tables that options describe: columns, number of rows, times and colour."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dissector.cli.declared.row_options import (
    ColorOptions,
    ColumnOptions,
    TableOptions,
    TimeOptions,
)
from dissector.cli.output import is_terminal
from dissector.column_catalogue import Catalogue
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    row_count,
    select_rows,
)
from dissector.engine.tables.exchange_table import NONE
from dissector.errors import UsageError
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.row_formats import TIMES
from dissector.view.text.time_style import TimeStyle


@dataclass(slots=True, eq=False, repr=False)
class TableView:
    """
    Presentation of the rows of a command.

    Attributes:
        columns: The chosen columns and fields; empty: the command's own.
        limit: Maximum number of rows.
        times: Formats times; None: as the format does.
        layout: Layout of tables.
    """

    columns: tuple[str, ...] = ()
    limit: int | None = None
    times: TimeStyle | None = None
    layout: Layout = field(default_factory=Layout)

    def apply(self, parts: Iterable[Columns], form: str) -> Iterator[Columns]:
        """Yield at most `limit` rows, with times as text in tables and CSV."""
        if self.limit is not None:
            parts = limited(parts, self.limit)
        if self.times is not None and form in ("table", "csv"):
            parts = with_times(parts, self.times)
        yield from parts

    def time_text(self, begin_ns: Callable[[], int]) -> Callable[[int], str]:
        """Return what makes a time of a line; without a form seconds since the first packet."""
        times = self.times
        if times is not None:
            return times.text
        return lambda time_ns: f"{(time_ns - begin_ns()) / 1e9:.6f}"


def table_view(
    given: TableOptions,
    begin_ns: Callable[[], int],
    *,
    columns: tuple[str, ...] = (),
    priority: Sequence[str] = (),
) -> TableView:
    """Return the view that options describe."""
    times = given_times(given, begin_ns, "r" if given.form == "table" else None)
    layout = Layout(priority, bool(columns), has_color(given, given.output), report_left_out)
    return TableView(columns, given.limit, times, layout)


def given_times(
    given: TimeOptions, begin_ns: Callable[[], int], default: str | None = None
) -> TimeStyle | None:
    """Return the form of times that options describe, by default another one or None."""
    style = given.times or ("ad" if given.utc else default)
    return None if style is None else TimeStyle(style, begin_ns, utc=given.utc)


def has_color(given: ColorOptions, output: str | None) -> bool:
    """
    Return whether output is coloured.

    Source: https://no-color.org
    """
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    is_default = given.color == "auto" and is_wanted
    return given.color == "always" or (is_default and is_terminal(output))


def chosen_columns(given: ColumnOptions) -> tuple[str, ...]:
    """
    Return the names of --columns and -e.

    Raises:
        UsageError: One is empty, or given twice.
    """
    listed = [] if given.columns is None else given.columns.split(",")
    names = (*map(str.strip, listed), *given.fields)
    if "" in names or len(set(names)) < len(names):
        raise UsageError("--columns: a name is empty, or given twice")
    return names


def check_columns(names: Sequence[str], known: Catalogue, command: str) -> None:
    """
    Check names against the columns of a command.

    Raises:
        UsageError: The column does not exist.
    """
    for name in names:
        if name not in {each.name for each in known}:
            raise UsageError(
                f"--columns: no column {name!r}; `kafkashark {command} --list-columns` lists them"
            )


def limited(parts: Iterable[Columns], limit: int) -> Iterator[Columns]:
    """Yield the first rows of all parts."""
    for part in parts:
        count = min(limit, row_count(part))
        yield select_rows(part, slice(0, count))
        limit -= count
        if not limit:
            return


def report_left_out(names: Iterable[str]) -> None:
    """Report columns that the terminal is too narrow for."""
    text = f"left out: {', '.join(names)} (--columns chooses columns, -T ndjson prints all)"
    print(f"kafkashark: {text}", file=sys.stderr)


def with_times(parts: Iterable[Columns], style: TimeStyle) -> Iterator[Columns]:
    """Yield parts with the times of their columns as text."""
    for part in parts:
        yield {name: _time_column(name, each, style) for name, each in part.items()}


def _time_column(name: str, column: Column, style: TimeStyle) -> Column:
    if not _unit_ns(name) or not isinstance(column, Integers | Coded):
        return column
    import numpy as np

    if isinstance(column, Integers):
        values = [None if each == NONE else each for each in column.values.tolist()]
    else:
        values = [column.value(row) for row in range(len(column))]
    return Coded(np.arange(len(values)), [_time_cell(name, each, style) for each in values])


def _time_cell(name: str, cell: Any, style: TimeStyle) -> Any:
    """Return a cell with its times, if the column has some, as text."""
    unit_ns = _unit_ns(name)
    if unit_ns and isinstance(cell, list):
        return [_time_cell(name, each, style) for each in cell]
    return style.text(cell * unit_ns, name) if unit_ns and isinstance(cell, int) else cell


def _unit_ns(name: str) -> int:
    """Return the unit of a column of times; 0 for other columns."""
    if name.endswith(TIMES):
        return 1
    return 1_000_000 if name in ("timestamp_ms", "timestamp", "kafka.message_timestamp") else 0


def select_columns(parts: Iterable[Columns], names: Iterable[str]) -> Iterator[Columns]:
    """Yield parts with only some columns."""
    for part in parts:
        yield {name: part[name] for name in names}
