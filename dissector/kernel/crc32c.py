"""
CRC-32C inside kernels, with the processor's instruction if available.

The table-driven form takes at least three times as long.

Source: Intel, "slicing-by-8" (Kounavis and Berry, 2005); Intel's manual, CRC32.
"""

from __future__ import annotations

from dissector.kernel.arrays import I64, U8
from dissector.kernel.decorators import device_function


@device_function
def update_crc_by_table(crc: int, source: U8, at: int, table: I64) -> int:
    """
    Return a CRC after eight more bytes.

    Args:
        crc: The CRC so far, its bits not yet inverted.
        source: An array of uint8.
        at: Index of the first of the eight bytes.
        table: Eight tables of 256: the contribution of a byte that 0 to 7 others follow.
    """
    crc ^= source[at] | source[at + 1] * 256 | source[at + 2] * 65536
    crc ^= source[at + 3] * 16777216
    return int(
        table[1792 + (crc & 255)]
        ^ table[1536 + (crc >> 8 & 255)]
        ^ table[1280 + (crc >> 16 & 255)]
        ^ table[1024 + (crc >> 24)]
        ^ table[768 + source[at + 4]]
        ^ table[512 + source[at + 5]]
        ^ table[256 + source[at + 6]]
        ^ table[0 + source[at + 7]]
    )


@device_function
def has_crc_instruction() -> bool:
    """Return whether the processor computes CRC-32C; as Python, it can't be called."""
    return False


@device_function
def update_crc_by_instruction(crc: int, source: U8, at: int) -> int:
    """Return a CRC after eight more bytes, if `has_crc_instruction`."""
    return crc


@device_function
def update_crc(crc: int, source: U8, at: int, table: I64) -> int:
    """Return a CRC-32C after eight more bytes; see `update_crc_by_table`."""
    if has_crc_instruction():
        return update_crc_by_instruction(crc, source, at)
    return update_crc_by_table(crc, source, at, table)
