"""
Reads of integers from bytes, as device functions of kernels.

They multiply instead of shifting: Numba makes a shifted byte unsigned, and an unsigned number
combined with a signed one a float.
"""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8


@device_function
def high_half(data: U8, at: int) -> int:
    """Return the upper four bits of a byte."""
    return int(data[at] // 16)


@device_function
def u16(data: U8, at: int) -> int:
    """Return two bytes as a big-endian integer."""
    return int(data[at] * 0x100 + data[at + 1])


@device_function
def u32(data: U8, at: int) -> int:
    """Return four bytes as a big-endian integer."""
    return int(data[at] * 0x1000000 + data[at + 1] * 0x10000 + data[at + 2] * 0x100 + data[at + 3])


@device_function
def u32_little(data: U8, at: int) -> int:
    """Return four bytes as a little-endian integer."""
    return int(data[at + 3] * 0x1000000 + data[at + 2] * 0x10000 + data[at + 1] * 0x100 + data[at])


@device_function
def u32_of(data: U8, at: int, big: int) -> int:
    """Return four bytes as an integer, big-endian if `big`, else little-endian."""
    return u32(data, at) if big else u32_little(data, at)


@device_function
def signed16(data: U8, at: int) -> int:
    """Return two bytes, highest first, as two's complement."""
    return int((u16(data, at) ^ 0x8000) - 0x8000)


@device_function
def signed32(data: U8, at: int) -> int:
    """Return four bytes, highest first, as two's complement."""
    return int((u32(data, at) ^ 0x80000000) - 0x80000000)
