"""Writes texts as strings of JSON that are safe to print, inside kernels."""

from __future__ import annotations

import numpy as np

from dissector.kernel.arrays import U8
from dissector.kernel.decorators import device_function
from dissector.kernel.utf8 import utf8_length

UNSAFE = np.array([not 0x20 <= byte < 0x7F or byte in b'"\\' for byte in range(256)], np.uint8)
"""For each byte, whether JSON may need an escape for it, or for the sequence that it begins."""


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
def write_code_escape(code: int, out: U8, at: int) -> int:
    r"""Write `\u0000` with the code point's digits, and return its end."""
    out[at] = 92
    out[at + 1] = 117
    for i in range(4):
        digit = code >> (12 - 4 * i) & 15
        out[at + 2 + i] = 48 + digit if digit < 10 else 87 + digit
    return at + 6


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
