"""Numbers as they stand in bytes, and sums as Java makes them, for kernels."""

from __future__ import annotations

from typing import Any

from dissector.kernel import device_function

_WORD = 0xFFFFFFFF
_SIGN = 0x80000000


@device_function
def signed(source: Any, at: int, size: int) -> int:
    """Read a big-endian number."""
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
    """Add two numbers of 64 bits as Java does, past the end to the other end."""
    low = (a & _WORD) + (b & _WORD)
    high = (a >> 32) + (b >> 32) + (low >> 32)
    high = ((high & _WORD) ^ _SIGN) - _SIGN
    return high << 32 | (low & _WORD)
