"""Where a command's data goes, and in which form rows are written."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from dissector.engine.table import Part
from dissector.errors import UsageError
from dissector.view.text import csv_text, ndjson_text, table_text

if TYPE_CHECKING:
    from polars import DataFrame

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
    parts: Iterable[Part],
    form: str,
    output: str | None,
    columns: Sequence[str],
    shown: Sequence[str],
    jobs: int = 1,
) -> None:
    """
    Write rows as `ROW_FORMATS` has them, all but parquet.

    Args:
        parts: The rows, or columns of them; ndjson has all that is in them.
        form: The format.
        output: File, or None for stdout.
        columns: Of csv.
        shown: Of the table for people, which has no room for everything.
        jobs: How many parts may be written side by side; see `dissector.view.text`.
    """
    match form:
        case "ndjson":
            text = ndjson_text(parts, jobs)
        case "csv":
            text = csv_text(parts, columns, jobs)
        case _:
            text = table_text(parts, shown, terminal_width=terminal_width(output))
    text = begun(text)
    with _opened_binary(output) as file:
        for piece in text:
            file.write(piece)


@contextmanager
def _opened_binary(output: str | None) -> Iterator[BinaryIO]:
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
    if form == "parquet" and output in (None, "-") and sys.stdout.isatty():
        raise UsageError("-T parquet wants a file: -o FILE")


def write_parquet(parts: Iterable[Part], schema: Mapping[str, Any], output: str | None) -> None:
    """Write rows as Parquet as they come; `schema` gives the polars type of each column."""
    from dissector.engine.table import part_frames

    write_frames(part_frames(parts, schema), schema, output)


def write_frames(
    frames: Iterable[DataFrame], schema: Mapping[str, Any], output: str | None
) -> None:
    """Write tables as Parquet as they come; `schema` gives the polars type of each column."""
    from polars.exceptions import PolarsError
    from polars.io.plugins import register_io_source

    frames = begun(frames)
    with _opened_binary(output) as file:
        target: Any = _Target(file)  # polars writes to it, whatever its types say
        try:
            rows = register_io_source(lambda *_: frames, schema=dict(schema))
            # A sixth less work than the usual level, for files that are a twentieth larger.
            rows.sink_parquet(target, compression="zstd", compression_level=1)
        except PolarsError:
            # polars has exceptions of its own for a file that can't be written.
            if target.failed is None:
                raise
            raise target.failed from None


class _Target(io.RawIOBase):
    """Hands bytes on, and remembers why it can't."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failed: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.failed = error
            raise
