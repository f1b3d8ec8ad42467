"""Where a command's data goes, and in which form rows are written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from dissector.errors import UsageError
from dissector.view.table import csv_lines, ndjson_lines, table_lines
from dissector.view.values import json_text

if TYPE_CHECKING:
    import polars

Row = Mapping[str, Any]
Item = TypeVar("Item")

ROW_FORMATS = ("table", "ndjson", "csv", "parquet")


class OutputClosed(Exception):
    """Nobody reads what we write any more, as behind `| head`: time to stop, nothing is wrong."""


@contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """Open what text is written to: a file, or stdout."""
    try:
        if output is None or output == "-":
            yield sys.stdout
            sys.stdout.flush()
        else:
            with Path(output).open("w", encoding="utf-8", newline="") as file:
                yield file
    except BrokenPipeError:
        raise OutputClosed from None


def begun(items: Iterable[Item]) -> Iterator[Item]:
    """Take the first item at once, so that input which can't be read costs no output file."""
    rest = iter(items)
    return chain(list(islice(rest, 1)), rest)


def write_lines(lines: Iterable[str], output: str | None, end: str = "\n") -> None:
    """Write lines, each with its end."""
    lines = begun(lines)
    with opened(output) as file:
        for line in lines:
            file.write(line)
            file.write(end)


def terminal_width(output: str | None) -> int | None:
    """Return the width of the terminal that output goes to; None where it goes elsewhere."""
    to_terminal = output in (None, "-") and sys.stdout.isatty()
    return get_terminal_size().columns if to_terminal else None


def write_rows(
    rows: Iterable[Row], form: str, output: str | None, columns: Sequence[str], shown: Sequence[str]
) -> None:
    """
    Write rows as `ROW_FORMATS` has them, all but parquet.

    Args:
        rows: The rows; ndjson has all that is in them.
        form: The format.
        output: File, or None for stdout.
        columns: Of csv.
        shown: Of the table for people, which has no room for everything.
    """
    rows = begun(rows)
    match form:
        case "ndjson":
            write_lines(ndjson_lines(rows), output)
        case "csv":
            write_lines(csv_lines(rows, columns), output, "\r\n")
        case _:
            write_lines(table_lines(rows, shown, terminal_width=terminal_width(output)), output)


def check_parquet(form: str, output: str | None) -> None:
    """
    See that Parquet has a place to go to.

    Raises:
        UsageError: That would be a terminal.
    """
    if form == "parquet" and output in (None, "-") and sys.stdout.isatty():
        raise UsageError("-T parquet wants a file: -o FILE")


def write_parquet(rows: Iterable[Row], schema: Mapping[str, Any], output: str | None) -> None:
    """Write rows as Parquet; `schema` gives the polars type of each column."""
    import polars

    from dissector.engine.table import frames

    table = polars.concat(list(frames(rows, schema)))
    if output is None or output == "-":
        _write_table(table, sys.stdout.buffer)
    else:
        with Path(output).open("wb") as file:
            _write_table(table, file)


def _write_table(table: polars.DataFrame, file: BinaryIO) -> None:
    # By way of memory: polars has exceptions of its own for a file that can't be written.
    from io import BytesIO

    data = BytesIO()
    table.write_parquet(data)
    try:
        file.write(data.getbuffer())
        file.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def sorted_rows(rows: Iterable[Row], text: str | None, columns: Sequence[str]) -> Iterable[Row]:
    """
    Return rows sorted by columns, in memory; nulls first.

    Args:
        rows: The rows.
        text: `COLUMN[,COLUMN...]`; None leaves them as they are.
        columns: Those that there are.

    Raises:
        UsageError: There is no such column.
    """
    if text is None:
        return rows
    names = text.split(",")
    for name in names:
        if name not in columns:
            raise UsageError(f"--sort: no column {name!r}; there are {', '.join(columns)}")
    return sorted(rows, key=lambda row: [_sortable(row[name]) for name in names])


def _sortable(value: Any) -> tuple[int, Any]:
    """Return what a value is sorted by; values of different types never meet."""
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case str():
            return 2, value
        case bytes():
            return 3, value
        case list():
            return 4, [_sortable(each) for each in value]
        case _:
            return 5, json_text(value)
