"""
Tables as text, part by part: a part is single rows, or a window of rows in columns.

Rows in columns are written in bulk; the text is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from dissector.engine.reading.prefetch import map_in_threads
from dissector.engine.tables.column_types import Columns, row_count
from dissector.engine.tables.polars_tables import (
    MixedRows,
    RowBatch,
    TablePart,
    iter_rows,
    split_mixed,
)
from dissector.view.tables.bulk_rows import Inserted, Text, csv_rows, ndjson_rows, table_rows
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.row_formats import (
    SAMPLE_ROWS,
    Row,
    Table,
    csv_line,
    csv_lines,
    ndjson_lines,
)

LIVE_HEADER_LINES = 40
"""Number of lines of a live table between headers."""

MAX_WRITERS = 2
"""More writers would not help: writing their output to one file takes as long."""


def ndjson_text(parts: Iterable[TablePart], jobs: int = 1) -> Iterator[Text]:
    """Yield a JSON object for each row; see `ndjson_lines`, and `_write_parts` for `jobs`."""
    return _write_parts(parts, ndjson_rows, lambda rows: _with_ends(ndjson_lines(rows), "\n"), jobs)


def csv_text(parts: Iterable[TablePart], columns: Sequence[str], jobs: int = 1) -> Iterator[Text]:
    """
    Yield a CSV file; see `csv_lines`, and `_write_parts` for `jobs`.

    The header is yielded once the first rows have been read.
    """
    rows = _write_parts(
        parts,
        lambda part, inserted: csv_rows(part, columns, inserted),
        lambda part: _with_ends((csv_line(row, columns) for row in part), "\r\n"),
        jobs,
    )
    first = list(islice(rows, 1))
    yield from _with_ends(csv_lines([], columns), "\r\n")
    yield from first
    yield from rows


def _write_parts(
    parts: Iterable[TablePart],
    write_columns: Callable[[Columns, Inserted], Iterator[Text]],
    write_rows: Callable[[Iterable[Row]], Iterator[Text]],
    jobs: int,
) -> Iterator[Text]:
    """
    Yield the text of parts in their order.

    Args:
        parts: With several jobs, columns must stay valid when the next parts are requested.
        write_columns: Writes columns, and texts of rows between them.
        write_rows: Writes rows.
        jobs: Maximum number of columns that are written concurrently.
    """

    def texts_of(part: tuple[Columns, Inserted] | Text) -> Iterable[Text]:
        return write_columns(*part) if isinstance(part, tuple) else (part,)

    def in_order() -> Iterator[tuple[Columns, Inserted] | Text]:
        for part in parts:
            if isinstance(part, MixedRows):
                others = map(write_rows, part.inserted)
                yield part.columns, list(zip(part.positions, others, strict=True))
            elif isinstance(part, Mapping):
                yield part, ()
            else:
                yield from write_rows(part)

    if jobs <= 1:
        yield from chain.from_iterable(map(texts_of, in_order()))
    else:
        writers = min(jobs, MAX_WRITERS)
        texts = map_in_threads(
            in_order(), lambda part: list(map(bytes, texts_of(part))), writers, writers
        )
        yield from chain.from_iterable(texts)


def table_text(
    parts: Iterable[TablePart],
    columns: Sequence[str],
    *,
    terminal_width: int | None = None,
    live: bool = False,
    layout: Layout | None = None,
) -> Iterator[Text]:
    """
    Yield a text table; see `table_lines`.

    Args:
        parts: The rows.
        columns: In order.
        terminal_width: Width of the terminal, if any: longer lines are truncated.
        live: Whether the first part with rows is written immediately; default column widths apply,
            and the header is repeated.
        layout: Fitting of the columns into the width of a terminal, and their colours.
    """
    remaining_parts = split_mixed(parts)
    first: list[Row] = []
    read_parts: list[RowBatch] = []
    for part in remaining_parts:
        if isinstance(part, Mapping):
            first += islice(iter_rows(part), SAMPLE_ROWS - len(first))
            read_parts.append(part)
        else:
            remaining_rows = iter(part)
            rows = list(islice(remaining_rows, SAMPLE_ROWS - len(first)))
            first += rows
            read_parts += [rows, remaining_rows]
        if len(first) == SAMPLE_ROWS or (live and first):
            break
    table = Table(columns, first, terminal_width, live=live, layout=layout)
    yield from _with_ends([table.header()], "\n")
    in_bulk = terminal_width is None and not (layout is not None and layout.has_color)
    since_header = 0
    for part in chain(read_parts, remaining_parts):
        for texts, count in _table_pieces(part, table, in_bulk=in_bulk):
            if live and since_header >= LIVE_HEADER_LINES:
                yield from _with_ends([table.header()], "\n")
                since_header = 0
            yield from texts
            since_header += count


def _table_pieces(
    part: RowBatch, table: Table, *, in_bulk: bool
) -> Iterator[tuple[Iterable[Text], int]]:
    """Yield the text of a part, with the number of its rows: whole, or row by row."""
    if isinstance(part, Mapping) and in_bulk:
        yield table_rows(part, table), row_count(part)
    else:
        for row in iter_rows(part):
            yield _with_ends([table.line(row)], "\n"), 1


def _with_ends(lines: Iterable[str], end: str) -> Iterator[bytes]:
    return (f"{line}{end}".encode() for line in lines)
