"""
CRC-32C and CRC-32, in Python and in kernels.

Source: RFC 3720, B.4 (the polynomial); `dissector.kernel.crc32c` (eight bytes at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.crc32c import update_crc, update_crc_by_table

Ints: TypeAlias = NDArray[np.int64]

SMALL_BYTES = 400
"""Payloads below this size are small: all their CRCs are checked in one kernel call."""

_CRC32C_POLYNOMIAL = 0x82F63B78
_CRC32_POLYNOMIAL = 0xEDB88320


def crc32c_function(total_bytes: int) -> Callable[[memoryview], int]:
    """Return a CRC-32C function; the library's only where `total_bytes` justifies its import."""
    return _python_crc32c if total_bytes <= _LIBRARY_MIN_BYTES else _library_crc32c()


_LIBRARY_MIN_BYTES = 32_768
"""Number of bytes with a checksum in Python as slow as the import of the library."""


def _python_crc32c(data: memoryview) -> int:
    return crc_by_table(data, 0, len(data), crc32c_table().data)


@cache
def _library_crc32c() -> Callable[[memoryview], int]:
    """Import the library's function, which releases the GIL for large inputs."""
    from crc32c import crc32c as function

    found: Callable[[memoryview], int] = function
    return found


@cache
def crc32c_table() -> Ints:
    """Return the table of `crc_by_table` for CRC-32C."""
    return _lookup_tables(_CRC32C_POLYNOMIAL)


@cache
def crc32_table() -> Ints:
    """Return the table of `crc_by_table` for CRC-32, as in zip files."""
    return _lookup_tables(_CRC32_POLYNOMIAL)


def _lookup_tables(polynomial: int) -> Ints:
    """Return eight tables of 256: the contribution of a byte that is followed by 0 to 7 others."""
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
def crc_by_table(source: U8, at: int, end: int, table: I64) -> int:
    """Return the CRC of some bytes; the table determines its polynomial."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        crc = update_crc_by_table(crc, source, at, table)
        at += 8
    return _finish(crc, source, at, end, table)


@device_function
def crc32c_of(source: U8, at: int, end: int, table: I64) -> int:
    """Return the CRC-32C of some bytes; `table` is `crc32c_table()`."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        crc = update_crc(crc, source, at, table)
        at += 8
    return _finish(crc, source, at, end, table)


@device_function
def _finish(crc: int, source: U8, at: int, end: int, table: I64) -> int:
    """Process the last, fewer than eight, bytes one by one."""
    while at < end:
        crc = table[(crc ^ source[at]) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF
