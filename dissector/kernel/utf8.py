"""Checks of UTF-8 inside kernels."""

from __future__ import annotations

from dissector.kernel.arrays import U8
from dissector.kernel.decorators import device_function


@device_function
def utf8_length(data: U8, at: int, end: int) -> int:
    """Return the length of a UTF-8 sequence by its first byte, above 0x7f; 0 if it is invalid."""
    lead = data[at]
    if lead < 0xC2 or lead > 0xF4 or at + 1 >= end:
        return 0
    second = data[at + 1]
    lowest = 0x80
    highest = 0xBF
    if lead == 0xE0:
        lowest = 0xA0  # no overlong forms
    elif lead == 0xED:
        highest = 0x9F  # no surrogates
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F  # U+10FFFF is the maximum
    if second < lowest or second > highest:
        return 0
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if at + size > end:
        return 0
    for i in range(at + 2, at + size):
        if data[i] & 0xC0 != 0x80:
            return 0
    return size


@device_function
def is_utf8(data: U8, at: int, end: int) -> int:
    """Return whether bytes are UTF-8 (1 or 0)."""
    seen = 0
    for i in range(at, end):
        seen |= data[i]
    while seen >= 0x80 and at < end:
        size = 1
        if data[at] >= 0x80:
            size = utf8_length(data, at, end)
            if size == 0:
                return 0
        at += size
    return 1
