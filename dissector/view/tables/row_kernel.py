"""
The kernel that writes rows of text from columns.

A row is a fixed sequence of items: constant bytes, then the column's value. Repeated and rare
values were rendered by Python and are only copied: they are *fragments*. A cell below
`FIRST_FRAGMENT + FRAGMENT_COUNT` is the number of a fragment, counted from `FIRST_FRAGMENT`; all
others are written according to the kind of their column.
"""

from __future__ import annotations

from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8, Buffers
from dissector.kernel.digits import write_clock, write_date, write_digits, write_hex, write_padded
from dissector.kernel.json_strings import write_json_string
from dissector.kernel.memcpy import copy_bytes
from dissector.view.tables.text_arrays import HeaderSlices, RowArrays, TextArrays, TextUse
from dissector.view.tables.text_kernel import write_csv_cell, write_fragment

FIRST_FRAGMENT = NONE
FRAGMENT_COUNT = 2**40
_FIRST_VALUE = FIRST_FRAGMENT + FRAGMENT_COUNT

INTEGER, MILLISECONDS, THREE_PLACES, TIME = range(4)
JSON_TEXT, CSV_TEXT, JSON_HEADERS, HEADER_KEY, JSON_BYTES = range(4, 9)
"""
Kinds of cells.

An integer; nanoseconds as milliseconds, with as many decimals as the `repr` of the float, or with
three; nanoseconds since the epoch as a time in UTC; bytes as JSON or CSV; the headers of a record
as JSON; the key of a header, always text; bytes that are JSON already. Kinds after TIME have a
second cell: the length, or the number of headers.
"""

KEY, VALUE, HEX, NULL = range(4)
"""The first fragments, which are constant: `SHARED_FRAGMENTS`."""
SHARED_FRAGMENTS = (b'{"key": ', b', "value": ', b'{"hex": "', b"null")

MAX_EXACT_NS = 10**15
"""From here on the nanoseconds of MILLISECONDS are rendered by Python, as floats round them."""
MIN_DECIMAL_NS = 100
"""Below this, non-zero nanoseconds are rendered by Python: `repr` gives them an exponent."""

_NUMBER_BYTES = 40
"""Output bytes of a number at most."""
_QUOTES_BYTES = 48
"""Output bytes around a key and a value at most."""
MAX_ESCAPE_BYTES = 6
"""Output bytes of a single byte of text at most: a control character in JSON."""


@Kernel
def write_rows(
    rows: RowArrays,
    headers: HeaderSlices,
    buffers: Buffers,
    text: TextArrays,
    row_end: int,
    strip_spaces: int,
    first: int,
    used: TextUse,
) -> int:
    """
    Write rows until all are written, or no more fit; return the number of the next row.

    Args:
        rows: The rows.
        headers: The headers that they refer to.
        buffers: The bytes that slices refer to.
        text: The output.
        row_end: The fragment at the end of each row.
        strip_spaces: Whether spaces at the end of a row are stripped.
        first: The first row to write.
        used: Receives the number of bytes written.
    """
    items, cells = rows.items, rows.cells
    out, offsets = text.out, text.offsets
    at = 0
    used.bytes = 0
    for row in range(first, len(cells)):
        begin = at
        for i in range(len(items)):
            item = items[i]
            cell = cells[row, item.place]
            if cell < _FIRST_VALUE:
                number = cell - FIRST_FRAGMENT
                if at + offsets[number + 1] - offsets[number] > len(out):
                    return row
                at = write_fragment(number, text, at)
                continue
            kind, prefix = item.kind, item.prefix
            needed_bytes = offsets[prefix + 1] - offsets[prefix] + _NUMBER_BYTES + item.width
            extra = 0
            if kind >= JSON_TEXT:
                extra = cells[row, item.place + 1]
            if kind in (JSON_TEXT, CSV_TEXT):
                needed_bytes += MAX_ESCAPE_BYTES * extra
            elif kind == JSON_BYTES:
                needed_bytes += extra
            elif kind == JSON_HEADERS:
                for header in range(cell, cell + extra):
                    size = headers.key_length[header] + headers.value_length[header]
                    needed_bytes += MAX_ESCAPE_BYTES * size + _QUOTES_BYTES
            if at + needed_bytes > len(out):
                return row
            at = write_fragment(prefix, text, at)
            if kind in (JSON_TEXT, CSV_TEXT):
                at = _write_bytes(kind, buffers, cell, extra, text, at)
            elif kind == JSON_BYTES:
                at = _copy_slice(buffers, cell, extra, out, at)
            elif kind == JSON_HEADERS:
                out[at] = 91
                at += 1
                for header in range(cell, cell + extra):
                    if header > cell:
                        out[at] = 44
                        out[at + 1] = 32
                        at += 2
                    at = write_fragment(KEY, text, at)
                    start, length = headers.key[header], headers.key_length[header]
                    at = _write_bytes(HEADER_KEY, buffers, start, length, text, at)
                    at = write_fragment(VALUE, text, at)
                    start, length = headers.value[header], headers.value_length[header]
                    at = _write_bytes(JSON_TEXT, buffers, start, length, text, at)
                    out[at] = 125
                    at += 1
                out[at] = 93
                at += 1
            elif kind == TIME:
                at = _write_time(cell, out, at)
            else:
                end = _write_number(kind, cell, out, at)
                at = _right_align(out, at, end, item.width)
        if strip_spaces:
            while at > begin and out[at - 1] == 32:
                at -= 1
        if at + offsets[row_end + 1] - offsets[row_end] > len(out):
            return row
        at = write_fragment(row_end, text, at)
        used.bytes = at
    return len(cells)


@device_function
def _write_number(kind: int, value: int, out: U8, at: int) -> int:
    """Write a number and return its end."""
    if value < 0:
        out[at] = 45
        at += 1
        value = -value
    if kind == INTEGER:
        return write_digits(value, out, at)
    if kind == THREE_PLACES:
        value = (value + 500) // 1000
        whole = value // 1000
        fraction = (value - whole * 1000) * 1000
    else:
        whole = value // 1000000
        fraction = value - whole * 1000000
    at = write_digits(whole, out, at)
    out[at] = 46
    write_padded(fraction, 6, out, at + 1)
    if kind == THREE_PLACES:
        return at + 4
    end = at + 7
    while out[end - 1] == 48 and end > at + 2:
        end -= 1
    return end


@device_function
def _right_align(out: U8, at: int, end: int, width: int) -> int:
    """Move the bytes written since `at` to the right, to fill the width; return where they end."""
    space = at + width - end
    if space <= 0:
        return end
    for i in range(end - 1, at - 1, -1):
        out[i + space] = out[i]
    for i in range(at, at + space):
        out[i] = 32
    return end + space


@device_function
def _write_time(time_ns: int, out: U8, at: int) -> int:
    """Write a time of the years 1 to 9999 as `2023-11-14 22:13:20.000000001Z`."""
    second = time_ns // 1000000000
    days = second // 86400
    out[write_date(days, out, at)] = 32
    out[write_clock(second - days * 86400, out, at + 11)] = 46
    out[write_padded(time_ns - second * 1000000000, 9, out, at + 20)] = 90
    return at + 30


@device_function
def _write_bytes(
    kind: int, buffers: Buffers, start: int, length: int, text: TextArrays, at: int
) -> int:
    """Write bytes from any of the three buffers, and return where they end."""
    if start < 0:
        return write_fragment(NULL, text, at)
    if start < len(buffers.data):
        return _write_text(kind, buffers.data, start, length, text, at)
    start -= len(buffers.data)
    if start < len(buffers.carry_over):
        return _write_text(kind, buffers.carry_over, start, length, text, at)
    return _write_text(kind, buffers.arena, start - len(buffers.carry_over), length, text, at)


@device_function
def _copy_slice(buffers: Buffers, start: int, length: int, out: U8, at: int) -> int:
    """Copy bytes from any of the three buffers, and return where they end."""
    data, carry_over = buffers.data, buffers.carry_over
    if start < len(data):
        copy_bytes(out, at, data, start, length)
    elif start - len(data) < len(carry_over):
        copy_bytes(out, at, carry_over, start - len(data), length)
    else:
        copy_bytes(out, at, buffers.arena, start - len(data) - len(carry_over), length)
    return at + length


@device_function
def _write_text(kind: int, source: U8, start: int, length: int, text: TextArrays, at: int) -> int:
    """Write bytes as text if they are valid as such, else as hex; return their end."""
    out = text.out
    if kind == CSV_TEXT:
        end = write_csv_cell(source, start, length, out, at)
        if end >= 0:
            return end
        out[at] = 48
        out[at + 1] = 120
        return write_hex(source, start, length, out, at + 2)
    lenient = 1 if kind == HEADER_KEY else 0
    end = write_json_string(source, start, length, lenient, text.unsafe, out, at)
    if end >= 0:
        return end
    at = write_hex(source, start, length, out, write_fragment(HEX, text, at))
    out[at] = 34
    out[at + 1] = 125
    return at + 2
