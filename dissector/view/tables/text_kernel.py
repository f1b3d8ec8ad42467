"""Device functions that write bytes and numbers as text, for the kernels of rows and bodies."""

from __future__ import annotations

import numpy as np

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.utf8 import utf8_length
from dissector.view.tables.text_arrays import TextArrays

UNSAFE = np.array([not 0x20 <= byte < 0x7F or byte in b'"\\' for byte in range(256)], np.uint8)
"""For each byte, whether JSON may need an escape for it, or for the sequence that it begins."""


@device_function
def write_fragment(number: int, text: TextArrays, at: int) -> int:
    """Copy a fragment and return its end."""
    start: int = text.offsets[number]
    length: int = text.offsets[number + 1] - start
    copy_bytes(text.out, at, text.pool, start, length)
    return at + length


@device_function
def write_digits(value: int, out: U8, at: int) -> int:
    """Write a number that is not negative and return its end."""
    size = 1
    bound = 10
    while size < 19 and value >= bound:
        size += 1
        bound *= 10
    write_padded(value, size, out, at)
    return at + size


@device_function
def write_padded(value: int, size: int, out: U8, at: int) -> int:
    """Write a number with `size` digits, including leading zeros; return its end."""
    to = at + size
    while to > at + 1:
        to -= 2
        quotient = value // 100
        two = value - quotient * 100
        ten = two * 103 >> 10
        out[to] = 48 + ten
        out[to + 1] = 48 + two - ten * 10
        value = quotient
    if to > at:
        out[at] = 48 + value
    return at + size


@device_function
def terminal_control(data: U8, at: int, size: int) -> int:
    """Return the code point of a UTF-8 sequence that terminals interpret; 0 for any other."""
    code: int
    if size == 4:
        return 0
    if size == 2:
        code = (data[at] & 0x1F) << 6 | data[at + 1] & 0x3F
        return code if code <= 0x9F or code == 0x61C else 0
    code = (data[at] & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | data[at + 2] & 0x3F
    is_direction_mark = code == 0x200E or code == 0x200F
    if is_direction_mark or (0x2028 <= code <= 0x202E) or (0x2066 <= code <= 0x2069):
        return code
    return 0


@device_function
def write_code_escape(code: int, out: U8, at: int) -> int:
    r"""Write `\u0000` with the code point's digits, and return its end."""
    out[at] = 92
    out[at + 1] = 117
    for i in range(4):
        digit = code >> (12 - 4 * i) & 15
        out[at + 2 + i] = 48 + digit if digit < 10 else 87 + digit
    return at + 6


@device_function
def write_byte_escape(byte: int, out: U8, at: int) -> int:
    """Write the JSON escape of a byte below 0x80 and return its end."""
    letter = 0
    if byte == 34 or byte == 92:
        letter = byte
    elif byte == 8:
        letter = 98
    elif byte == 9:
        letter = 116
    elif byte == 10:
        letter = 110
    elif byte == 12:
        letter = 102
    elif byte == 13:
        letter = 114
    if letter == 0:
        return write_code_escape(byte, out, at)
    out[at] = 92
    out[at + 1] = letter
    return at + 2


@device_function
def write_json_string(
    data: U8, start: int, length: int, lenient: int, unsafe: U8, out: U8, at: int
) -> int:
    r"""
    Write text as a JSON string; return its end, or -1 if it is not UTF-8.

    Args:
        data: The bytes that contain the text.
        start: Begin of the text.
        length: Its bytes.
        lenient: Whether bytes that are not UTF-8 are written as surrogates, `\udcff`.
        unsafe: For each byte, whether it may need an escape.
        out: The output buffer.
        at: Begin of the output.
    """
    out[at] = 34
    at += 1
    end = start + length
    while start < end:
        byte = data[start]
        if unsafe[byte] == 0:
            out[at] = byte
            at += 1
            start += 1
            continue
        if byte < 0x80:
            at = write_byte_escape(byte, out, at)
            start += 1
            continue
        size = utf8_length(data, start, end)
        if size == 0:
            if lenient == 0:
                return -1
            at = write_code_escape(0xDC00 + byte, out, at)
            start += 1
            continue
        code = terminal_control(data, start, size)
        if code > 0:
            at = write_code_escape(code, out, at)
        else:
            for i in range(size):
                out[at + i] = data[start + i]
            at += size
        start += size
    out[at] = 34
    return at + 1


@device_function
def write_hex(data: U8, start: int, length: int, out: U8, at: int) -> int:
    """Write bytes as hex and return where they end."""
    for i in range(start, start + length):
        byte = data[i]
        high = byte >> 4
        low = byte & 15
        out[at] = 48 + high if high < 10 else 87 + high
        out[at + 1] = 48 + low if low < 10 else 87 + low
        at += 2
    return at


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
