"""Writes single values as JSON: device functions of the kernels that write bodies."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.view.json.json_constants import Fragment
from dissector.view.tables.text_arrays import TextArrays
from dissector.view.tables.text_kernel import write_digits, write_fragment, write_hex, write_padded

_MAX_NEGATED = 9_000_000_000_000_000_000


@device_function
def write_integer(value: int, out: U8, at: int) -> int:
    """Write a number and return its end."""
    if value < 0:
        out[at] = 45
        at += 1
        if value < -_MAX_NEGATED:  # the smallest int64 can't be negated
            out[at] = 57
            return write_padded(-(value + _MAX_NEGATED), 18, out, at + 1)
        value = -value
    return write_digits(value, out, at)


@device_function
def write_quoted_hex(source: U8, start: int, length: int, text: TextArrays, at: int) -> int:
    """Write bytes as a hex string, null for a negative length; return where that ends."""
    if length < 0:
        return write_fragment(Fragment.NULL, text, at)
    out = text.out
    out[at] = 34
    at = write_hex(source, start, length, out, at + 1)
    out[at] = 34
    return at + 1


@device_function
def write_boolean(byte: int, text: TextArrays, at: int) -> int:
    """Write a boolean, or the number of a byte that is neither 0 nor 1; return its end."""
    if byte > 1:
        return write_digits(0 | byte, text.out, at)
    return write_fragment(Fragment.FALSE + byte, text, at)


@device_function
def write_uuid(source: U8, at: int, out: U8, to: int) -> int:
    """Write a uuid in its canonical form and return its end."""
    out[to] = 34
    to += 1
    for i in range(5):
        size = 4 if i == 0 else 6 if i == 4 else 2
        to = write_hex(source, at, size, out, to)
        at += size
        out[to] = 45 if i < 4 else 34
        to += 1
    return to
