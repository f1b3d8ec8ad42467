"""
Tables as text, part by part: a part is rows one by one, or a whole window of them in columns.

Rows that come in columns are written in bulk; the text is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeAlias

from dissector.engine.reading.prefetch import map_in_threads
from dissector.engine.tables.column_types import Columns
from dissector.engine.tables.frames import RowBatch, TablePart, iter_rows, split_mixed
from dissector.view.tables.bulk_rows import csv_rows, ndjson_rows, table_rows
from dissector.view.tables.row_formats import (
    SAMPLE_ROWS,
    Row,
    Table,
    csv_line,
    csv_lines,
    ndjson_lines,
)

Text: TypeAlias = bytes | memoryview
"""Some lines as UTF-8, with their ends. A memoryview is gone when the next text is asked for."""

MAX_WRITERS = 2
"""What they write has to go to one file, which takes as long."""


def ndjson_text(parts: Iterable[TablePart], jobs: int = 1) -> Iterator[Text]:
    """Yield a JSON object for each row; see `ndjson_lines`, and `_write_parts` for `jobs`."""
    return _write_parts(parts, ndjson_rows, lambda rows: _with_ends(ndjson_lines(rows), "\n"), jobs)


def csv_text(parts: Iterable[TablePart], columns: Sequence[str], jobs: int = 1) -> Iterator[Text]:
    """
    Yield a CSV file; see `csv_lines`, and `_write_parts` for `jobs`.

    Its header comes once there is something to read.
    """
    rows = _write_parts(
        parts,
        lambda part: csv_rows(part, columns),
        lambda part: _with_ends((csv_line(row, columns) for row in part), "\r\n"),
        jobs,
    )
    first = list(islice(rows, 1))
    yield from _with_ends(csv_lines([], columns), "\r\n")
    yield from first
    yield from rows


def _write_parts(
    parts: Iterable[TablePart],
    write_columns: Callable[[Columns], Iterator[Text]],
    write_rows: Callable[[Iterable[Row]], Iterator[Text]],
    jobs: int,
) -> Iterator[Text]:
    """
    Yield the text of parts in their order.

    Args:
        parts: Where columns are written side by side, they must stay when others are asked for.
        write_columns: Writes columns.
        write_rows: Writes rows.
        jobs: How many columns may be written side by side.
    """

    def written(piece: Columns | Text) -> list[Text]:
        return (
            [bytes(text) for text in write_columns(piece)]
            if isinstance(piece, Mapping)
            else [piece]
        )

    def in_turn() -> Iterator[Columns | Text]:
        for piece in split_mixed(parts):
            if isinstance(piece, Mapping):
                yield piece
            else:
                yield from write_rows(piece)

    if jobs <= 1:
        for piece in in_turn():
            yield from write_columns(piece) if isinstance(piece, Mapping) else [piece]
    else:
        writers = min(jobs, MAX_WRITERS)
        done = map_in_threads(in_turn(), written, writers, writers)
        yield from chain.from_iterable(done)


def table_text(
    parts: Iterable[TablePart],
    columns: Sequence[str],
    *,
    terminal_width: int | None = None,
    live: bool = False,
) -> Iterator[Text]:
    """
    Yield a table for people; see `table_lines`.

    Args:
        parts: The rows.
        columns: In order.
        terminal_width: Where the output is a terminal: longer lines are cut there.
        live: The first part with rows is written at once; columns have room for what is usual.
    """
    rest_of_parts = split_mixed(parts)
    first: list[Row] = []
    taken: list[RowBatch] = []
    for part in rest_of_parts:
        if isinstance(part, Mapping):
            first += islice(iter_rows(part), SAMPLE_ROWS - len(first))
            taken.append(part)
        else:
            rest = iter(part)
            rows = list(islice(rest, SAMPLE_ROWS - len(first)))
            first += rows
            taken += [rows, rest]
        if len(first) == SAMPLE_ROWS or (live and first):
            break
    table = Table(columns, first, terminal_width, live=live)
    yield from _with_ends([table.header()], "\n")
    for part in chain(taken, rest_of_parts):
        if isinstance(part, Mapping) and terminal_width is None:
            yield from table_rows(part, table)
        else:
            yield from _with_ends(map(table.line, iter_rows(part)), "\n")


def _with_ends(lines: Iterable[str], end: str) -> Iterator[bytes]:
    return (f"{line}{end}".encode() for line in lines)
