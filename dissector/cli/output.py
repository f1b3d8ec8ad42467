"""Where a command's data goes, and in which form rows are written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TextIO

from dissector.errors import UsageError
from dissector.view.table import csv_lines, ndjson_lines, table_lines

Row = Mapping[str, Any]

ROW_FORMATS = ("table", "ndjson", "csv", "parquet")


@contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """Open what data is written to: a file, or stdout."""
    if output is None or output == "-":
        yield sys.stdout
    else:
        with Path(output).open("w", encoding="utf-8", newline="") as file:
            yield file


def write_lines(lines: Iterable[str], output: str | None, end: str = "\n") -> None:
    """Write lines, each with its end."""
    with opened(output) as file:
        for line in lines:
            file.write(line)
            file.write(end)


def terminal_width(output: str | None) -> int | None:
    """Return the width of the terminal that output goes to; None where it goes elsewhere."""
    to_terminal = output is None and sys.stdout.isatty()
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
    match form:
        case "ndjson":
            write_lines(ndjson_lines(rows), output)
        case "csv":
            write_lines(csv_lines(rows, columns), output, "\r\n")
        case _:
            write_lines(table_lines(rows, shown, terminal_width=terminal_width(output)), output)


def parquet_file(output: str | None) -> str:
    """
    Return the file that Parquet goes to.

    Raises:
        UsageError: None was named; a terminal is no place for it.
    """
    if output is None:
        raise UsageError("-T parquet wants a file: -o FILE")
    return output


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


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, value


def batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows in lists of a size."""
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
