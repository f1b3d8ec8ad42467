"""Big-endian integers, and sums with Java's overflow, for kernels."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8

_WORD = 0xFFFFFFFF
_SIGN = 0x80000000


@device_function
def signed(source: U8, at: int, size: int) -> int:
    """Read a big-endian integer with a sign."""
    value = 0
    if source[at] >= 128:
        for i in range(size):
            value = value << 8 | (255 - source[at + i])
        return -value - 1
    for i in range(size):
        value = value << 8 | source[at + i]
    return value


@device_function
def wrapped_sum(a: int, b: int) -> int:
    """Add two 64-bit integers with Java's overflow."""
    low = (a & _WORD) + (b & _WORD)
    high = (a >> 32) + (b >> 32) + (low >> 32)
    high = ((high & _WORD) ^ _SIGN) - _SIGN
    return high << 32 | (low & _WORD)
