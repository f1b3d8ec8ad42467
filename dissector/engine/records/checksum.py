"""
CRC-32C and CRC-32, of pieces one by one and in kernels.

Source: RFC 3720, B.4 (the polynomial); `dissector.kernel.crc32c` (eight bytes at
a time).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import device_function
from dissector.kernel.crc32c import update_crc, update_crc_by_table

Ints: TypeAlias = NDArray[np.int64]

SMALL_BYTES = 400
"""What is smaller is small, and so is a batch of so little: best all done at once."""

_CRC32C_POLYNOMIAL = 0x82F63B78
_CRC32_POLYNOMIAL = 0xEDB88320


def crc32c_function(total_bytes: int) -> Callable[[memoryview], int]:
    """Return what gives the CRC-32C of a piece, where there is so much to check."""
    return _python_crc32c if total_bytes <= _LIBRARY_MIN_BYTES else _library_crc32c()


_LIBRARY_MIN_BYTES = 32_768
"""To check so much in Python is as much work as to import the library."""


def _python_crc32c(piece: memoryview) -> int:
    return crc_by_table(piece, 0, len(piece), crc32c_table().data)


@cache
def _library_crc32c() -> Callable[[memoryview], int]:
    """Import the library's function, which lets go of the GIL for large pieces."""
    from crc32c import crc32c as function

    found: Callable[[memoryview], int] = function
    return found


@cache
def crc32c_table() -> Ints:
    """Return the table with which `crc_by_table` gives the CRC-32C."""
    return _lookup_tables(_CRC32C_POLYNOMIAL)


@cache
def crc32_table() -> Ints:
    """Return the table with which `crc_by_table` gives the CRC-32 of zip files."""
    return _lookup_tables(_CRC32_POLYNOMIAL)


def _lookup_tables(polynomial: int) -> Ints:
    """Return eight tables of 256: what a byte adds that 0 to 7 others follow."""
    table = np.zeros(8 * 256, np.int64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table[byte] = value
    for at in range(256, len(table)):
        before = int(table[at - 256])
        table[at] = before >> 8 ^ int(table[before & 255])
    return table


@device_function
def crc_by_table(source: Any, at: int, end: int, table: Any) -> int:
    """Return the CRC of one piece, of the kind that the table is for."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        crc = update_crc_by_table(crc, source, at, table)
        at += 8
    return _finish(crc, source, at, end, table)


@device_function
def crc32c_of(source: Any, at: int, end: int, table: Any) -> int:
    """Return the CRC-32C of one piece; the table is the one for it."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        crc = update_crc(crc, source, at, table)
        at += 8
    return _finish(crc, source, at, end, table)


@device_function
def _finish(crc: int, source: Any, at: int, end: int, table: Any) -> int:
    """Take the last bytes one by one."""
    while at < end:
        crc = table[(crc ^ source[at]) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF
