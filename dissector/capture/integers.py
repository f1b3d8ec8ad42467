"""
Numbers out of bytes, for kernels: parts that know nothing else.

They multiply where one would shift: Numba makes a shifted byte an unsigned number, and a float of
that and a signed one.
"""

from __future__ import annotations

from typing import Any

from dissector.kernel import device_function


@device_function
def high_half(data: Any, at: int) -> int:
    """Return the upper four bits of a byte."""
    return int(data[at] // 16)


@device_function
def u16(data: Any, at: int) -> int:
    """Return two bytes, highest first."""
    return int(data[at] * 0x100 + data[at + 1])


@device_function
def u32(data: Any, at: int) -> int:
    """Return four bytes, highest first."""
    return int(data[at] * 0x1000000 + data[at + 1] * 0x10000 + data[at + 2] * 0x100 + data[at + 3])


@device_function
def u32_low(data: Any, at: int) -> int:
    """Return four bytes, lowest first."""
    return int(data[at + 3] * 0x1000000 + data[at + 2] * 0x10000 + data[at + 1] * 0x100 + data[at])


@device_function
def u32_of(data: Any, at: int, big: int) -> int:
    """Return four bytes, highest first if `big`, else lowest."""
    return u32(data, at) if big else u32_low(data, at)
