"""Where a command's data goes, and in which form rows are written."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from dissector.cli import interrupt
from dissector.engine.tables.frames import TablePart
from dissector.errors import UsageError
from dissector.view.tables.row_stream import csv_text, ndjson_text, table_text

if TYPE_CHECKING:
    from polars import DataFrame

Row = Mapping[str, Any]
Item = TypeVar("Item")

ROW_FORMATS = ("table", "ndjson", "csv", "parquet")


class OutputClosed(Exception):
    """Nobody reads what we write any more, as behind `| head`: time to stop, nothing is wrong."""


@contextmanager
def open_text(output: str | None) -> Iterator[TextIO]:
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


def prefetch_first(items: Iterable[Item]) -> Iterator[Item]:
    """Take the first item at once, so that input which can't be read costs no output file."""
    rest = iter(items)
    return chain(list(islice(rest, 1)), rest)


def write_lines(lines: Iterable[str], output: str | None, end: str = "\n") -> None:
    """Write lines, each with its end."""
    lines = prefetch_first(lines)
    with open_text(output) as file:
        file.writelines(line + end for line in lines)


def is_terminal(output: str | None) -> bool:
    """Return whether output goes to a terminal."""
    return output in (None, "-") and sys.stdout.isatty()


def terminal_width(output: str | None) -> int | None:
    """Return the width of the terminal that output goes to; None where it goes elsewhere."""
    return get_terminal_size().columns if is_terminal(output) else None


def write_rows(
    parts: Iterable[TablePart],
    form: str,
    output: str | None,
    columns: Sequence[str],
    shown: Sequence[str],
    jobs: int = 1,
    *,
    live: bool = False,
) -> None:
    """
    Write rows as `ROW_FORMATS` has them, all but parquet.

    Args:
        parts: The rows, or columns of them; ndjson has all that is in them.
        form: The format.
        output: File, or None for stdout.
        columns: Of csv.
        shown: Of the table for people, which has no room for everything.
        jobs: How many parts may be written side by side; see `dissector.view.tables.row_stream`.
        live: Whether a row must not wait for those after it.
    """
    if is_terminal(output):
        jobs = 1  # what is read ahead would show its progress among the rows
    match form:
        case "ndjson":
            text = ndjson_text(parts, jobs)
        case "csv":
            text = csv_text(parts, columns, jobs)
        case _:
            text = table_text(parts, shown, terminal_width=terminal_width(output), live=live)
    text = prefetch_first(text)
    with _open_binary(output) as file:
        for piece in text:
            file.write(piece)


@contextmanager
def _open_atomic(output: str | None) -> Iterator[BinaryIO]:
    """Open what bytes are written to; a file has its name once all of it is written."""
    path = Path(output or "-").resolve()
    if output in (None, "-") or (path.exists() and not path.is_file()):
        with _open_binary(output) as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with interrupt.removed_on_exit(part):
        try:
            file = part.open("wb")
        except OSError as error:
            error.filename = output
            raise
        with file:
            yield file
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)


@contextmanager
def _open_binary(output: str | None) -> Iterator[BinaryIO]:
    """Open what bytes are written to: a file, or stdout."""
    try:
        if output is None or output == "-":
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with Path(output).open("wb") as file:
                yield file
    except BrokenPipeError:
        raise OutputClosed from None


def check_parquet(form: str, output: str | None) -> None:
    """
    See that Parquet has a place to go to.

    Raises:
        UsageError: That would be a terminal.
    """
    if form == "parquet" and is_terminal(output):
        raise UsageError("-T parquet wants a file: -o FILE")


def write_parquet(
    parts: Iterable[TablePart], schema: Mapping[str, Any], output: str | None
) -> None:
    """Write rows as Parquet as they come; `schema` gives the polars type of each column."""
    from dissector.engine.tables.frames import part_frames

    write_frames(part_frames(parts, schema), schema, output)


def write_frames(
    frames: Iterable[DataFrame], schema: Mapping[str, Any], output: str | None
) -> None:
    """Write tables as Parquet as they come; `schema` gives the polars type of each column."""
    from polars.exceptions import PolarsError
    from polars.io.plugins import register_io_source

    interrupt.reinstall_handler()
    frames = prefetch_first(frames)
    with _open_atomic(output) as file:
        target: Any = _ErrorKeepingFile(file)  # polars writes to it, whatever its types say
        try:
            rows = register_io_source(lambda *_: frames, schema=dict(schema))
            # A sixth less work than the usual level, for files that are a twentieth larger.
            rows.sink_parquet(target, compression="zstd", compression_level=1)
        except PolarsError:
            # polars has exceptions of its own for a file that can't be written.
            if target.failed is None:
                raise
            raise target.failed from None


class _ErrorKeepingFile(io.RawIOBase):
    """Hands bytes on, and remembers why it can't."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise
