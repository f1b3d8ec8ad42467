"""Writes single values as JSON: device functions of the kernels that write bodies."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.digits import write_digits, write_hex
from dissector.view.json.json_constants import Fragment
from dissector.view.tables.text_arrays import TextArrays
from dissector.view.tables.text_kernel import write_fragment


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
