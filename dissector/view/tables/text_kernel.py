"""Device functions that write bytes and numbers as text, for the kernels of rows and bodies."""

from __future__ import annotations

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.utf8 import utf8_length
from dissector.view.tables.text_arrays import TextArrays


@device_function
def write_fragment(number: int, text: TextArrays, at: int) -> int:
    """Copy a fragment and return its end."""
    start: int = text.offsets[number]
    length: int = text.offsets[number + 1] - start
    copy_bytes(text.out, at, text.pool, start, length)
    return at + length


@device_function
def write_csv_cell(data: U8, start: int, length: int, out: U8, at: int) -> int:
    """Write printable ASCII as a CSV cell; return its end, or -1 for other bytes."""
    begin = at
    needs_quotes = 0
    if length == 0:
        needs_quotes = 1
    # `row_formats.FORMULA_STARTS`: = + - @
    if length > 0 and (
        data[start] == 61 or data[start] == 43 or data[start] == 45 or data[start] == 64
    ):
        out[at] = 39
        at += 1
    for i in range(start, start + length):
        byte = data[i]
        if byte < 32 or byte > 126:
            return -1
        if byte == 34:
            out[at] = 34
            at += 1
        if byte == 34 or byte == 44:
            needs_quotes = 1
        out[at] = byte
        at += 1
    if needs_quotes == 0:
        return at
    for i in range(at - 1, begin - 1, -1):
        out[i + 1] = out[i]
    out[begin] = 34
    out[at + 1] = 34
    return at + 2


@Kernel
def find_non_ascii_text(
    starts: I64, lengths: I64, data: U8, carry_over: U8, arena: U8, found: U8
) -> None:
    """Mark the non-null texts that are UTF-8, but not all printable ASCII."""
    for i in range(len(starts)):
        start = starts[i]
        if start < 0:
            continue
        if start < len(data):
            found[i] = is_non_ascii_text(data, start, lengths[i])
        elif start < len(data) + len(carry_over):
            found[i] = is_non_ascii_text(carry_over, start - len(data), lengths[i])
        else:
            found[i] = is_non_ascii_text(arena, start - len(data) - len(carry_over), lengths[i])


@device_function
def is_non_ascii_text(data: U8, start: int, length: int) -> int:
    """Return whether bytes are UTF-8, but not all printable ASCII (1 or 0)."""
    end = start + length
    is_ascii = 1
    while start < end:
        byte = data[start]
        size = 1
        if byte < 32 or byte > 126:
            is_ascii = 0
            if byte > 127:
                size = utf8_length(data, start, end)
        if size == 0:
            return 0
        start += size
    return 1 - is_ascii
