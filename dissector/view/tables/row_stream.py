"""Tables as text, part by part: many rows at a time, or, where each line is shaped, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from dissector.engine.reading.prefetch import map_in_threads
from dissector.engine.tables.column_types import Coded, Columns, Row, iter_rows, row_count
from dissector.view.tables.bulk_rows import Text, csv_rows, ndjson_rows, table_rows
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.row_formats import SAMPLE_ROWS, Table, csv_header, heading

LIVE_HEADER_LINES = 40
"""Number of lines of a live table between headers."""

MAX_WRITERS = 2
"""More writers would not help: writing their output to one file takes as long."""


def ndjson_text(parts: Iterable[Columns], jobs: int = 1) -> Iterator[Text]:
    """Yield a JSON object for each row; see `ndjson_rows`, and `_write_parts` for `jobs`."""
    return _write_parts(parts, ndjson_rows, jobs)


def csv_text(parts: Iterable[Columns], columns: Sequence[str], jobs: int = 1) -> Iterator[Text]:
    """
    Yield a CSV file; see `csv_rows`, and `_write_parts` for `jobs`.

    The header is yielded once the first rows have been read.
    """
    parts = iter(parts)
    first = list(islice(parts, 1))
    headings = [heading(name, _texts(first, name)) for name in columns]
    yield from _with_ends([csv_header(headings)], "\r\n")
    rows = chain(first, parts)
    yield from _write_parts(rows, lambda part: csv_rows(part, columns), jobs)


def _texts(parts: Sequence[Columns], name: str) -> Iterable[object]:
    """Return the values of a column that may hold texts."""
    found = (part[name] for part in parts)
    return chain.from_iterable(each.values for each in found if isinstance(each, Coded))


def _write_parts(
    parts: Iterable[Columns], write: Callable[[Columns], Iterator[Text]], jobs: int
) -> Iterator[Text]:
    """
    Yield the text of parts in their order.

    Args:
        parts: With several jobs they must stay valid when the next ones are requested.
        write: Writes a part.
        jobs: Maximum number of parts that are written concurrently.
    """
    if jobs <= 1:
        return chain.from_iterable(map(write, parts))
    writers = min(jobs, MAX_WRITERS)
    texts = map_in_threads(parts, lambda part: list(map(bytes, write(part))), writers, writers)
    return chain.from_iterable(texts)


def table_text(
    parts: Iterable[Columns],
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
    remaining_parts = iter(parts)
    first: list[Row] = []
    read_parts: list[Columns] = []
    for part in remaining_parts:
        first += islice(iter_rows(part), SAMPLE_ROWS - len(first))
        read_parts.append(part)
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
    part: Columns, table: Table, *, in_bulk: bool
) -> Iterator[tuple[Iterable[Text], int]]:
    """Yield the text of a part, with the number of its rows: whole, or row by row."""
    if in_bulk:
        yield table_rows(part, table), row_count(part)
    else:
        for row in iter_rows(part):
            yield _with_ends([table.line(row)], "\n"), 1


def _with_ends(lines: Iterable[str], end: str) -> Iterator[bytes]:
    return (f"{line}{end}".encode() for line in lines)
