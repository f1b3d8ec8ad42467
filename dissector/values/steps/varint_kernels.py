"""Reads numbers of values in kernels; a position of -1 says that they are left to the decoder."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import NONE, U8
from dissector.values.value_limits import MAX_OUTPUT, MIN_OUTPUT, OUTPUT_PER_BYTE

MAX_TAIL_BYTE = 1
"""The tenth byte of a number of 64 bits, at most."""


@device_function
def zigzag_at(data: U8, at: int, end: int) -> tuple[int, int]:
    """Read a signed number of up to 64 bits, and the position behind it."""
    if at >= end:
        return 0, -1
    byte = data[at]
    sign = -(byte & 1)
    if byte < 0x80:
        return (byte >> 1) ^ sign, at + 1
    half = (byte & 0x7F) >> 1
    shift = 6
    while at + 1 < end and shift < 63:
        at += 1
        byte = data[at]
        if byte < 0x80:
            if shift == 62 and byte > MAX_TAIL_BYTE:
                return 0, -1
            return (half | byte << shift) ^ sign, at + 1
        half |= (byte & 0x7F) << shift
        shift += 7
    return 0, -1


@device_function
def varint_at(data: U8, at: int, end: int) -> tuple[int, int]:
    """Read a number of up to 10 bytes as 64 bits with a sign, and the position behind it."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    number = 0
    shift = 0
    while at < end and shift < 63:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    if at < end and data[at] < 0x80:
        return (number + NONE if data[at] & 1 else number), at + 1
    return 0, -1


@device_function
def little_endian_at(data: U8, at: int, size: int) -> int:
    """Read a number with a sign; its bytes must be available."""
    number = -1 if data[at + size - 1] >= 0x80 else 0
    for i in range(at + size - 1, at - 1, -1):
        number = number << 8 | data[i]
    return number


@device_function
def double_of_float(bits: int) -> int:
    """Return the bits of a float of 4 bytes as those of a double."""
    exponent = bits >> 23 & 0xFF
    fraction = bits & 0x7FFFFF
    double = 0
    if exponent == 0xFF:
        double = 0x7FF << 52 | fraction << 29
    elif exponent > 0 or fraction > 0:
        if exponent == 0:
            exponent = 1
            while fraction < 0x800000:
                fraction <<= 1
                exponent -= 1
        double = (exponent + 896) << 52 | (fraction & 0x7FFFFF) << 29
    return double + NONE if bits >> 31 & 1 else double


@device_function
def is_finite(bits: int) -> int:
    """Return whether a double is a number that JSON has (1 or 0)."""
    return 0 if bits >> 52 & 0x7FF == 0x7FF else 1


@device_function
def output_room(size: int) -> int:
    """Return the most output of a value of some bytes, as `Room` has it."""
    room: int = OUTPUT_PER_BYTE * size
    if room < MIN_OUTPUT:
        return MIN_OUTPUT
    return room if room < MAX_OUTPUT else MAX_OUTPUT
