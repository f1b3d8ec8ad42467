"""
Rows of text from columns, in bulk: the same bytes as by `dissector.view.tables.row_formats`.

Each distinct value is rendered once, by the functions that also render row by row; a compiled
kernel assembles the rows.
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
from dissector.kernel.arrays import Buffers
from dissector.view.tables import row_kernel as loop
from dissector.view.tables.cell_layout import FragmentPool, ItemCells, RowItem, lay_out
from dissector.view.tables.row_formats import COLUMN_GAP, Table, csv_cell
from dissector.view.tables.text_arrays import RowArrays, TextArrays
from dissector.view.tables.text_kernel import UNSAFE
from dissector.view.text.value_text import bytes_text, header_texts, json_text

BLOCK_ROWS = 8192
"""Rows formatted at a time, so that their cells stay in the CPU cache."""

OUT_BYTES = 1 << 20
"""Size of the output buffer; it grows if a single row needs more."""

_NO_OVERRIDES: Mapping[int, str] = {}


def ndjson_rows(
    columns: Columns, overrides: Mapping[int, str] = _NO_OVERRIDES
) -> Iterator[memoryview]:
    """
    Yield the lines of `ndjson_lines`, with line ends, as UTF-8, many at a time.

    Each yielded value is overwritten by the next one.

    Args:
        columns: The rows.
        overrides: Lines, without line ends, that replace some rows.
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
    Yield the lines of `csv_lines` without the header, in the same way as `ndjson_rows`.

    Args:
        columns: The rows; bytes of records are written as by `record_text`.
        names: The columns to write.
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
    Yield the lines of a text table, as `ndjson_rows` does.

    No column may hold bytes of records. Lines are not truncated to the width of a terminal.
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
    rows_with_headers = np.flatnonzero(column.count)
    codes = np.zeros(len(column), np.int64)
    codes[rows_with_headers] = np.arange(1, len(rows_with_headers) + 1)
    return Coded(
        codes, [[], *(header_texts(column.value(row)) for row in rows_with_headers.tolist())]
    )


def _json_value(value: Any) -> str:
    """Return `json_text`, with shortcuts for numbers and for texts that need no escapes."""
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

    Each yielded value is overwritten by the next one.

    Args:
        items: The items of every row.
        row_end: The end of every row.
        overrides: Texts that replace all items of some rows.
        strip_spaces: Whether spaces before the row end are stripped.
    """
    pool = FragmentPool(loop.SHARED_FRAGMENTS)
    row_end_fragment = pool.add([row_end])
    item_cells = lay_out(items, pool, overrides)
    texts, offsets = pool.arrays()
    slices, headers = _buffers(items), _headers(items)
    bytes_of_window = slices.data, slices.carry_over, slices.arena
    buffers = Buffers._make(bytes_of_window)
    places = np.cumsum([0, *(len(each.cells) for each in item_cells)])
    total = len(items[0].column)
    out = np.empty(OUT_BYTES, np.uint8)
    used = np.zeros(1, np.int64)
    constants = [
        np.array(values, np.int64)
        for values in (
            [each.kind for each in item_cells],
            places[:-1],
            [each.prefix for each in item_cells],
            [each.width for each in item_cells],
        )
    ]
    for begin in range(0, total, BLOCK_ROWS):
        cells = _cell_block(
            item_cells, int(places[-1]), slice(begin, min(begin + BLOCK_ROWS, total))
        )
        row = 0
        while row < len(cells):
            rows = RowArrays._make((*constants, cells, headers))
            text = texts, offsets, UNSAFE, out
            next_row = loop.write_rows(
                rows,
                buffers,
                TextArrays._make(text),
                row_end_fragment,
                int(strip_spaces),
                row,
                used,
            )
            if next_row == row:
                out = np.empty(2 * len(out), np.uint8)
            else:
                yield out.data[: int(used[0])]
            row = next_row


def _cell_block(item_cells: Sequence[ItemCells], width: int, rows: slice) -> Any:
    """Return the cells of some rows side by side."""
    block = np.empty((rows.stop - rows.start, width), np.int64)
    at = 0
    for each in item_cells:
        for cells in each.cells:
            block[:, at] = cells[rows]
            at += 1
    return block


def _buffers(items: Sequence[RowItem]) -> SliceBuffers:
    """Return the buffers of the slices, common to all columns."""
    for item in items:
        if isinstance(item.column, Slices):
            return item.column.buffers
        if isinstance(item.column, Headers):
            return item.column.keys.buffers
    no_bytes = np.zeros(0, np.uint8)
    return SliceBuffers(no_bytes, no_bytes, no_bytes)


def _headers(items: Sequence[RowItem]) -> Any:
    """Return start and length of key and value of each header."""
    for item in items:
        if isinstance(item.column, Headers):
            keys, values = item.column.keys, item.column.values
            return np.stack([keys.start, keys.length, values.start, values.length], axis=1)
    return np.zeros((0, 4), np.int64)
