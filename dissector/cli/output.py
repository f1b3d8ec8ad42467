"""Output of commands: destination and row formats."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, TypeVar

from dissector.cli import interrupt
from dissector.cli.interrupt import OutputClosed
from dissector.engine.tables.column_types import Columns
from dissector.errors import UsageError
from dissector.file_roles import open_output, written_when_complete
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.row_stream import csv_text, ndjson_text, table_text
from dissector.view.text.wrapping import wrapped

if TYPE_CHECKING:
    from dissector.engine.parquet.parquet_types import FileType
    from dissector.engine.parquet.row_groups import RowGroup

Item = TypeVar("Item")


@contextmanager
def open_text(output: str | None) -> Iterator[TextIO]:
    """Open the destination of text: a file, or stdout."""
    try:
        if output is None or output == "-":
            yield sys.stdout
            sys.stdout.flush()
        else:
            binary = open_output(Path(output))
            with io.TextIOWrapper(binary, encoding="utf-8", newline="") as file:
                yield file
    except BrokenPipeError:
        raise OutputClosed from None


def prefetch_first(items: Iterable[Item]) -> Iterator[Item]:
    """Read the first item immediately, so that unreadable input does not overwrite the output."""
    rest = iter(items)
    return chain(list(islice(rest, 1)), rest)


def write_lines(lines: Iterable[str], output: str | None, end: str = "\n") -> None:
    """Write lines, each followed by `end`."""
    lines = prefetch_first(lines)
    with open_text(output) as file:
        file.writelines(line + end for line in lines)


def write_text(lines: Iterable[str], output: str | None) -> None:
    """Write lines, wrapped at the width of the output's terminal."""
    write_lines(wrapped(lines, terminal_width(output)), output)


def is_terminal(output: str | None) -> bool:
    """Return whether output is a terminal."""
    return output in (None, "-") and sys.stdout.isatty()


def terminal_width(output: str | None) -> int | None:
    """Return the width of the output's terminal; None if the output is not a terminal."""
    if not is_terminal(output):
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def write_rows(
    parts: Iterable[Columns],
    form: str,
    output: str | None,
    columns: Sequence[str],
    shown: Sequence[str],
    jobs: int = 1,
    *,
    live: bool = False,
    layout: Layout | None = None,
) -> None:
    """
    Write rows in one of the formats of `pairs` except parquet.

    Args:
        parts: The rows; ndjson prints everything in them.
        form: The format.
        output: File, or None for stdout.
        columns: Columns of csv.
        shown: Columns of text tables, which have no room for all columns.
        jobs: Maximum number of parts formatted in parallel; see `dissector.view.tables.row_stream`.
        live: Whether rows must not wait for later ones.
        layout: Layout of text tables.
    """
    if is_terminal(output):
        jobs = 1  # reading ahead would print the progress line between the rows
    match form:
        case "ndjson":
            text = ndjson_text(parts, jobs)
        case "csv":
            text = csv_text(parts, columns, jobs)
        case _:
            width = terminal_width(output)
            text = table_text(parts, shown, terminal_width=width, live=live, layout=layout)
    text = prefetch_first(text)
    with _open_binary(output) as file:
        for piece in text:
            file.write(piece)


@contextmanager
def open_atomic(output: str | None) -> Iterator[BinaryIO]:
    """Open the destination of bytes; files are renamed to their name when complete."""
    path = Path(output or "-").resolve()
    if output in (None, "-") or (path.exists() and not path.is_file()):
        with _open_binary(output) as file:
            yield file
        return
    with written_when_complete(Path(output or "-"), interrupt.removed_on_exit) as file:
        yield file


@contextmanager
def _open_binary(output: str | None) -> Iterator[BinaryIO]:
    """Open the destination of bytes: a file, or stdout."""
    try:
        if output is None or output == "-":
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with open_output(Path(output)) as file:
                yield file
    except BrokenPipeError:
        raise OutputClosed from None


def check_parquet(form: str, output: str | None) -> None:
    """
    Check that Parquet is not written to a terminal.

    Raises:
        UsageError: The output is a terminal.
    """
    if form == "parquet" and is_terminal(output):
        raise UsageError("-T parquet requires an output file: -o FILE")


def write_parquet(
    parts: Iterable[Columns], types: Mapping[str, FileType], output: str | None, jobs: int = 1
) -> None:
    """
    Write rows as Parquet; see `write_row_groups`.

    Args:
        parts: The rows.
        types: The type of each column.
        output: File, or None for stdout.
        jobs: More than one only if a part stays valid when the next one is requested.
    """
    from dissector.engine.parquet.table_groups import table_groups

    write_row_groups(table_groups(parts, types), types, output, {}, jobs)


def write_row_groups(
    groups: Iterable[RowGroup],
    types: Mapping[str, FileType],
    output: str | None,
    metadata: Mapping[str, str],
    jobs: int,
) -> None:
    """
    Write columns as Parquet.

    Args:
        groups: The rows.
        types: The type of each column.
        output: File, or None for stdout.
        metadata: Written to the metadata of the file.
        jobs: Maximum number of parts encoded in parallel.
    """
    from dissector.engine.parquet.parquet_file import write_groups

    interrupt.reinstall_handlers()
    groups = prefetch_first(groups)
    with open_atomic(output) as file:
        write_groups(groups, types, file, metadata, jobs)
