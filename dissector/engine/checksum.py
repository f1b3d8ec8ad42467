"""
CRC-32C and CRC-32 of many pieces at once, and in kernels.

A call of the library takes a tenth of a microsecond and as much again to cut the piece out; from
some hundred bytes on it is the fastest there is. Small pieces, of which there may be very many, go
through a loop of our own.

Source: Intel, "slicing-by-8" (Kounavis and Berry, 2005); RFC 3720, B.4 (the polynomial).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import Kernel, part

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

SMALL_BYTES = 400
"""What is smaller is small, and so is a batch of so little: best all done at once."""

_CASTAGNOLI = 0x82F63B78
_POLYNOMIAL_OF_ZIP = 0xEDB88320


def crc32c(data: Bytes, held: Bytes, start: Ints, end: Ints) -> Ints:
    """
    Return the CRC-32C of pieces.

    Args:
        data: The bytes of a window.
        held: More bytes; their addresses go on where those of `data` end.
        start: Address of each piece.
        end: Where it ends, in the same bytes.
    """
    return _of_pieces(data, held, start, end, crc32c_table(), checker)


def crc32(data: Bytes, held: Bytes, start: Ints, end: Ints) -> Ints:
    """Return the CRC-32 of pieces, as zip files have it; see `crc32c`."""
    return _of_pieces(data, held, start, end, crc32_table(), lambda total_bytes: zlib.crc32)


def _of_pieces(
    data: Bytes,
    held: Bytes,
    start: Ints,
    end: Ints,
    table: Ints,
    function_for: Callable[[int], Callable[[memoryview], int]],
) -> Ints:
    length = end - start
    out = np.zeros(len(start), np.int64)
    if len(start) and int(length.max()) < 2 * SMALL_BYTES:
        arguments = data, held, start, end, table, out
        work = int(length.sum()) // 8
        if _small.ready(*arguments, work=work):
            _small(*arguments, work=work)
            return out
    here, there, beyond = data.data, held.data, len(data)
    function = function_for(int(length.sum()))
    return np.array(
        [
            function(here[begin:stop] if begin < beyond else there[begin - beyond : stop - beyond])
            for begin, stop in zip(start.tolist(), end.tolist(), strict=True)
        ],
        np.int64,
    )


def checker(total_bytes: int) -> Callable[[memoryview], int]:
    """Return what gives the CRC-32C of a piece, where there is so much to check."""
    return _own if total_bytes <= _LITTLE_BYTES else _library()


_LITTLE_BYTES = 32_768
"""To check so much in Python is as much work as to import the library."""


def _own(piece: memoryview) -> int:
    return checksum(piece, 0, len(piece), crc32c_table().data)


@cache
def _library() -> Callable[[memoryview], int]:
    """Import the library's function, which lets go of the GIL for large pieces."""
    from crc32c import crc32c as function

    found: Callable[[memoryview], int] = function
    return found


@cache
def crc32c_table() -> Ints:
    """Return the table with which `checksum` gives the CRC-32C."""
    return _table(_CASTAGNOLI)


@cache
def crc32_table() -> Ints:
    """Return the table with which `checksum` gives the CRC-32 of zip files."""
    return _table(_POLYNOMIAL_OF_ZIP)


def _table(polynomial: int) -> Ints:
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


@part
def checksum(source: Any, at: int, end: int, table: Any) -> int:
    """Return the CRC of one piece, of the kind that the table is for."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        crc ^= source[at] | source[at + 1] * 256 | source[at + 2] * 65536
        crc ^= source[at + 3] * 16777216
        crc = (
            table[1792 + (crc & 255)]
            ^ table[1536 + (crc >> 8 & 255)]
            ^ table[1280 + (crc >> 16 & 255)]
            ^ table[1024 + (crc >> 24)]
            ^ table[768 + source[at + 4]]
            ^ table[512 + source[at + 5]]
            ^ table[256 + source[at + 6]]
            ^ table[0 + source[at + 7]]
        )
        at += 8
    while at < end:
        crc = table[(crc ^ source[at]) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF


@Kernel
def _small(data: Any, held: Any, start: Any, end: Any, table: Any, out: Any) -> None:
    """Do all pieces."""
    beyond = len(data)
    for i in range(len(start)):
        begin = start[i]
        if begin < beyond:
            out[i] = checksum(data, begin, end[i], table)
        else:
            out[i] = checksum(held, begin - beyond, end[i] - beyond, table)
