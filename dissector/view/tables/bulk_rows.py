"""
Rows of text from columns, in bulk.

Each distinct value is rendered once, by Python; a compiled kernel assembles the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    Slices,
    shared_buffers,
)
from dissector.kernel.json_strings import UNSAFE
from dissector.kernel.named_rows import dtype_of, table_of
from dissector.view.tables import row_kernel as loop
from dissector.view.tables.cell_layout import FragmentPool, ItemCells, RowItem, lay_out
from dissector.view.tables.row_formats import COLUMN_GAP, TIMES_NS, Table, csv_cell
from dissector.view.tables.text_arrays import (
    HeaderSlices,
    ItemLayout,
    RowArrays,
    TextArrays,
    TextUse,
)
from dissector.view.text.value_text import bytes_text, header_texts, json_text

BLOCK_ROWS = 8192
"""Rows formatted at a time, so that their cells stay in the CPU cache."""

OUT_BYTES = 1 << 20
"""Size of the output buffer; it grows if a single row needs more."""

Text: TypeAlias = bytes | memoryview
"""Lines as UTF-8, with line ends; a memoryview is overwritten when the next text is requested."""


def ndjson_rows(columns: Columns) -> Iterator[Text]:
    """Yield a line with a JSON object for each row, with line ends, many at a time."""
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
    return render_rows(items, "}\n")


def csv_rows(columns: Columns, names: Sequence[str]) -> Iterator[Text]:
    """
    Yield some columns as lines of CSV without the header, in the way of `ndjson_rows`.

    Null in the only column is `""`: readers skip blank lines.
    """
    kinds: dict[type, int] = {
        Milliseconds: loop.MILLISECONDS,
        Slices: loop.CSV_TEXT,
        JsonTexts: loop.CSV_TEXT,
    }
    render = _csv_value if len(names) > 1 else _only_csv_value
    items = []
    for at, name in enumerate(names):
        column = columns[name]
        if isinstance(column, Headers):
            column = _header_texts(column)
        items.append(RowItem("," if at else "", column, _item_kind(column, kinds), render))
    return render_rows(items, "\r\n")


def table_rows(columns: Columns, table: Table) -> Iterator[Text]:
    """
    Yield the lines of a text table, as `ndjson_rows` does.

    No column may hold bytes of records. Lines are not truncated to the width of a terminal.
    """
    kinds: dict[type, int] = {Milliseconds: loop.THREE_PLACES}
    items = []
    for at, name in enumerate(table.columns):
        column = columns[name]
        is_time = name.endswith(TIMES_NS) and isinstance(column, Integers)
        kind = loop.TIME if is_time else _item_kind(column, kinds)
        width = table.widths[at] if table.is_right_aligned[at] else 0
        items.append(
            RowItem(COLUMN_GAP if at else "", column, kind, partial(table.padded_cell, at), width)
        )
    return render_rows(items, "\n", strip_spaces=True)


def _item_kind(column: Column, kinds: Mapping[type, int]) -> int:
    return kinds.get(type(column), loop.INTEGER)


def text_columns(columns: Columns) -> Columns:
    """Return columns with the bytes and the headers of records as texts, for text tables."""
    return {name: _text_column(column) for name, column in columns.items()}


def _text_column(column: Column) -> Column:
    if isinstance(column, Headers):
        return _header_texts(column)
    if isinstance(column, Slices):
        texts = [bytes_text(column.value(row)) for row in range(len(column))]
        return Coded(np.arange(len(texts)), texts)
    return column


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


def _only_csv_value(value: Any) -> str:
    return _csv_value(value) or csv_cell("")


def render_rows(
    items: Sequence[RowItem], row_end: str, *, strip_spaces: bool = False
) -> Iterator[Text]:
    """
    Yield the text of rows, many at a time.

    Args:
        items: The items of every row.
        row_end: The end of every row.
        strip_spaces: Whether spaces before the row end are stripped.
    """
    writer = _RowWriter(items, row_end, strip_spaces=strip_spaces)
    end = len(items[0].column)
    for first in range(0, end, BLOCK_ROWS):
        yield from writer.texts(slice(first, min(first + BLOCK_ROWS, end)))


class _RowWriter:
    """Writes rows that are laid out once."""

    def __init__(self, items: Sequence[RowItem], row_end: str, *, strip_spaces: bool) -> None:
        pool = FragmentPool(loop.SHARED_FRAGMENTS)
        self._row_end = pool.add([row_end])
        self._strips = int(strip_spaces)
        self._items = lay_out(items, pool)
        self._fragments = pool.arrays()
        self._buffers = shared_buffers(each.column for each in items).for_kernels
        self._headers = _headers(items)
        places = np.cumsum([0, *(len(each.cells) for each in self._items)])
        self._width = int(places[-1])
        layouts = [
            ItemLayout(each.kind, place, each.prefix, each.width)
            for each, place in zip(self._items, places[:-1].tolist(), strict=True)
        ]
        self._layout = table_of(layouts, ItemLayout)
        self._out = np.empty(OUT_BYTES, np.uint8)

    def texts(self, rows: slice) -> Iterator[Text]:
        """Yield the text of some rows."""
        cells = _cell_block(self._items, self._width, rows)
        used = np.zeros((), dtype_of(TextUse))
        row = 0
        while row < len(cells):
            text = *self._fragments, UNSAFE, self._out
            next_row = loop.write_rows(
                RowArrays._make((self._layout, cells)),
                self._headers,
                self._buffers,
                TextArrays._make(text),
                self._row_end,
                self._strips,
                row,
                used,
            )
            if next_row == row:
                self._out = np.empty(2 * len(self._out), np.uint8)
            else:
                yield self._out.data[: int(used["bytes"])]
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


def _headers(items: Sequence[RowItem]) -> HeaderSlices:
    """Return the headers of records, common to all columns."""
    slices = [np.zeros(0, np.int64)] * 4
    for item in items:
        if isinstance(item.column, Headers):
            keys, values = item.column.keys, item.column.values
            slices = [keys.start, keys.length, values.start, values.length]
    return HeaderSlices._make(map(np.ascontiguousarray, slices))
