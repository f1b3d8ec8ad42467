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
from dissector.view.tables.cell_layout import FragmentPool, ItemCells, RowItem, lay_out
from dissector.view.tables.row_formats import COLUMN_GAP, Table, csv_cell
from dissector.view.tables.text_kernel import UNSAFE
from dissector.view.text.value_text import bytes_text, header_texts, json_text

BLOCK_ROWS = 8192
"""So many rows are laid out at a time: their cells stay near the processor."""

OUT_BYTES = 1 << 20
"""Room for text; more where a single row takes more."""

_STEPS_PER_ITEM = 8

_NO_OVERRIDES: Mapping[int, str] = {}


def ndjson_rows(
    columns: Columns, overrides: Mapping[int, str] = _NO_OVERRIDES
) -> Iterator[memoryview]:
    """
    Yield the lines of `ndjson_lines`, with their ends, as UTF-8, many at a time.

    What was yielded is gone when the next is asked for.

    Args:
        columns: The rows.
        overrides: Lines, without their ends, that are written in place of some rows.
    """
    kinds: dict[type, int] = {
        Milliseconds: loop.MILLISECONDS,
        Slices: loop.JSON_TEXT,
        JsonTexts: loop.JSON_BYTES,
        Headers: loop.JSON_HEADERS,
    }
    items = [
        RowItem(
            f"{', ' if at else '{'}{json_text(name)}: ",
            column,
            _item_kind(column, kinds),
            _json_value,
        )
        for at, (name, column) in enumerate(columns.items())
    ]
    return render_rows(items, "}\n", {row: line[:-1] for row, line in overrides.items()})


def csv_rows(
    columns: Columns, names: Sequence[str], overrides: Mapping[int, str] = _NO_OVERRIDES
) -> Iterator[memoryview]:
    """
    Yield the lines of `csv_lines` but the first, as `ndjson_rows` does.

    Args:
        columns: The rows; the bytes of records as `record_text` has them.
        names: The columns that are written.
        overrides: See `ndjson_rows`.
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
        items.append(RowItem("," if at else "", column, _item_kind(column, kinds), _csv_value))
    return render_rows(items, "\r\n", overrides)


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
        kind = loop.TIME if is_time else _item_kind(column, kinds)
        width = table.widths[at] if table.is_right_aligned[at] else 0
        items.append(
            RowItem(COLUMN_GAP if at else "", column, kind, partial(table.padded_cell, at), width)
        )
    return render_rows(items, "\n", strip_spaces=True)


def _item_kind(column: Column, kinds: Mapping[type, int]) -> int:
    return kinds.get(type(column), loop.INTEGER)


def _header_texts(column: Headers) -> Coded:
    """Return the headers of records as lists of texts."""
    some = np.flatnonzero(column.count)
    codes = np.zeros(len(column), np.int64)
    codes[some] = np.arange(1, len(some) + 1)
    return Coded(codes, [[], *(header_texts(column.value(row)) for row in some.tolist())])


def _json_value(value: Any) -> str:
    """Return `json_text`; most values are numbers, and texts that need no look at characters."""
    if type(value) is int:
        return str(value)
    if type(value) is list:
        return f"[{', '.join(map(_json_value, value))}]"
    if not (isinstance(value, str) and value.isascii() and value.isprintable()):
        return json_text(value)
    return json_text(value) if '"' in value or "\\" in value else f'"{value}"'


def _csv_value(value: Any) -> str:
    return csv_cell(bytes_text(value) if isinstance(value, bytes) else value)


def render_rows(
    items: Sequence[RowItem],
    row_end: str,
    overrides: Mapping[int, str] = _NO_OVERRIDES,
    *,
    strip_spaces: bool = False,
) -> Iterator[memoryview]:
    """
    Yield the text of rows, many at a time.

    What was yielded is gone when the next is asked for.

    Args:
        items: What every row is made of.
        row_end: The end of every row.
        overrides: Texts that are written in place of all items of some rows.
        strip_spaces: Whether spaces before it are left out.
    """
    pool = FragmentPool(loop.SHARED_FRAGMENTS)
    last = pool.add([row_end])
    laid = lay_out(items, pool, overrides)
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
            [each.prefix for each in laid],
            [each.width for each in laid],
        )
    ]
    for begin in range(0, total, BLOCK_ROWS):
        cells = _cell_block(laid, int(places[-1]), slice(begin, min(begin + BLOCK_ROWS, total)))
        row = 0
        while row < len(cells):
            following = loop.write_rows(
                *constants,
                last,
                int(strip_spaces),
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


def _cell_block(laid: Sequence[ItemCells], width: int, rows: slice) -> Any:
    """Return the cells of some rows side by side."""
    block = np.empty((rows.stop - rows.start, width), np.int64)
    at = 0
    for each in laid:
        for cells in each.cells:
            block[:, at] = cells[rows]
            at += 1
    return block


def _buffers(items: Sequence[RowItem]) -> SliceBuffers:
    """Return the bytes that slices are of: the same for all columns."""
    for item in items:
        if isinstance(item.column, Slices):
            return item.column.buffers
        if isinstance(item.column, Headers):
            return item.column.keys.buffers
    none = np.zeros(0, np.uint8)
    return SliceBuffers(none, none, none)


def _headers(items: Sequence[RowItem]) -> Any:
    """Return start and length of key and value of each header."""
    for item in items:
        if isinstance(item.column, Headers):
            keys, values = item.column.keys, item.column.values
            return np.stack([keys.start, keys.length, values.start, values.length], axis=1)
    return np.zeros((0, 4), np.int64)
