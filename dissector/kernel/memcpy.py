"""Copies of bytes inside kernels: compiled, one call of memmove."""

from __future__ import annotations

from dissector.kernel.arrays import U8
from dissector.kernel.decorators import device_function


@device_function
def copy_bytes(target: U8, at: int, source: U8, start: int, length: int) -> None:
    """Copy bytes from one array to another; both ranges must be inside their arrays."""
    target[at : at + length] = source[start : start + length]
