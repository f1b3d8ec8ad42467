"""
Rows of text from columns, in bulk: the bytes of `dissector.view.tables.row_formats`.

Each distinct value is rendered once, by the functions that render it row by row; a compiled loop
puts the rows together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    SliceBuffers,
    Slices,
)
from dissector.view.tables import row_kernel as loop
from dissector.view.tables.cell_layout import Item, Laid, Pool, lay
from dissector.view.tables.row_formats import GAP, Table, csv_cell
from dissector.view.tables.text_kernel import UNSAFE
from dissector.view.text.value_text import bytes_text, header_texts, json_text

BLOCK_ROWS = 8192
"""So many rows are laid out at a time: their cells stay near the processor."""

OUT_BYTES = 1 << 20
"""Room for text; more where a single row takes more."""

_STEPS_PER_ITEM = 8

_NONE: Mapping[int, str] = {}


def ndjson_rows(columns: Columns, instead: Mapping[int, str] = _NONE) -> Iterator[memoryview]:
    """
    Yield the lines of `ndjson_lines`, with their ends, as UTF-8, many at a time.

    What was yielded is gone when the next is asked for.

    Args:
        columns: The rows.
        instead: Lines, without their ends, that are written in place of some rows.
    """
    kinds: dict[type, int] = {
        Milliseconds: loop.MILLISECONDS,
        Slices: loop.JSON_TEXT,
        JsonTexts: loop.READY,
        Headers: loop.JSON_HEADERS,
    }
    items = [
        Item(f"{', ' if at else '{'}{json_text(name)}: ", column, _kind(column, kinds), _json)
        for at, (name, column) in enumerate(columns.items())
    ]
    return rendered(items, "}\n", {row: line[:-1] for row, line in instead.items()})


def csv_rows(
    columns: Columns, names: Sequence[str], instead: Mapping[int, str] = _NONE
) -> Iterator[memoryview]:
    """
    Yield the lines of `csv_lines` but the first, as `ndjson_rows` does.

    Args:
        columns: The rows; the bytes of records as `record_text` has them.
        names: The columns that are written.
        instead: See `ndjson_rows`.
    """
    kinds: dict[type, int] = {
        Milliseconds: loop.MILLISECONDS,
        Slices: loop.CSV_TEXT,
        JsonTexts: loop.CSV_TEXT,
    }
    items = []
    for at, name in enumerate(names):
        column = columns[name]
        if isinstance(column, Headers):
            column = _header_texts(column)
        items.append(Item("," if at else "", column, _kind(column, kinds), _csv))
    return rendered(items, "\r\n", instead)


def table_rows(columns: Columns, table: Table) -> Iterator[memoryview]:
    """
    Yield the lines of a table for people, as `ndjson_rows` does; none may have bytes of records.

    The table has no terminal whose width lines must keep to.
    """
    kinds: dict[type, int] = {Milliseconds: loop.THREE_PLACES}
    items = []
    for at, name in enumerate(table.columns):
        column = columns[name]
        is_time = name.endswith("time_ns") and isinstance(column, Integers)
        kind = loop.TIME if is_time else _kind(column, kinds)
        width = table.widths[at] if table.right[at] else 0
        items.append(Item(GAP if at else "", column, kind, partial(table.padded, at), width))
    return rendered(items, "\n", trimmed=True)


def _kind(column: Column, kinds: Mapping[type, int]) -> int:
    return kinds.get(type(column), loop.INTEGER)


def _header_texts(column: Headers) -> Coded:
    """Return the headers of records as lists of texts."""
    some = np.flatnonzero(column.count)
    codes = np.zeros(len(column), np.int64)
    codes[some] = np.arange(1, len(some) + 1)
    return Coded(codes, [[], *(header_texts(column.value(row)) for row in some.tolist())])


def _json(value: Any) -> str:
    """Return `json_text`; most values are numbers, and texts that need no look at characters."""
    if type(value) is int:
        return str(value)
    if type(value) is list:
        return f"[{', '.join(map(_json, value))}]"
    if not (isinstance(value, str) and value.isascii() and value.isprintable()):
        return json_text(value)
    return json_text(value) if '"' in value or "\\" in value else f'"{value}"'


def _csv(value: Any) -> str:
    return csv_cell(bytes_text(value) if isinstance(value, bytes) else value)


def rendered(
    items: Sequence[Item], behind: str, instead: Mapping[int, str] = _NONE, *, trimmed: bool = False
) -> Iterator[memoryview]:
    """
    Yield the text of rows, many at a time.

    What was yielded is gone when the next is asked for.

    Args:
        items: What every row is made of.
        behind: The end of every row.
        instead: Texts that are written in place of all items of some rows.
        trimmed: Whether spaces before it are left out.
    """
    pool = Pool(loop.FIXED)
    last = pool.add([behind])
    laid = lay(items, pool, instead)
    texts, offsets = pool.arrays()
    buffers, headers = _buffers(items), _headers(items)
    places = np.cumsum([0, *(len(each.cells) for each in laid)])
    total = len(items[0].column)
    out = np.empty(OUT_BYTES, np.uint8)
    used = np.zeros(1, np.int64)
    constants = [
        np.array(values, np.int64)
        for values in (
            [each.kind for each in laid],
            places[:-1],
            [each.before for each in laid],
            [each.width for each in laid],
        )
    ]
    for begin in range(0, total, BLOCK_ROWS):
        cells = _block(laid, int(places[-1]), slice(begin, min(begin + BLOCK_ROWS, total)))
        row = 0
        while row < len(cells):
            following = loop.render(
                *constants,
                last,
                int(trimmed),
                cells,
                texts,
                offsets,
                buffers.data,
                buffers.carry_over,
                buffers.arena,
                headers,
                UNSAFE,
                row,
                out,
                used,
                work=cells.size * _STEPS_PER_ITEM,
            )
            if following == row:
                out = np.empty(2 * len(out), np.uint8)
            else:
                yield out.data[: int(used[0])]
            row = following


def _block(laid: Sequence[Laid], width: int, rows: slice) -> Any:
    """Return the cells of some rows side by side."""
    block = np.empty((rows.stop - rows.start, width), np.int64)
    at = 0
    for each in laid:
        for cells in each.cells:
            block[:, at] = cells[rows]
            at += 1
    return block


def _buffers(items: Sequence[Item]) -> SliceBuffers:
    """Return the bytes that slices are of: the same for all columns."""
    for item in items:
        if isinstance(item.column, Slices):
            return item.column.buffers
        if isinstance(item.column, Headers):
            return item.column.keys.buffers
    none = np.zeros(0, np.uint8)
    return SliceBuffers(none, none, none)


def _headers(items: Sequence[Item]) -> Any:
    """Return start and length of key and value of each header."""
    for item in items:
        if isinstance(item.column, Headers):
            keys, values = item.column.keys, item.column.values
            return np.stack([keys.start, keys.length, values.start, values.length], axis=1)
    return np.zeros((0, 4), np.int64)
