"""Reads primitives in kernels, as `wire` does in objects: integers, lengths, counts, tags."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import Rows
from dissector.protocol.program import KnownTag, Op


@device_function
def varint_at(data: U8, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint; the second number is its end, -1 if it is malformed."""
    if at < end and data[at] < 128:
        return data[at], at + 1
    value = 0
    shift = 0
    while shift <= 28 and at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at if value <= 0xFFFFFFFF else -1
    return 0, -1


@device_function
def int16_at(data: U8, at: int) -> int:
    """Read two bytes, which must be available."""
    value: int = data[at] << 8 | data[at + 1]
    return (value ^ 0x8000) - 0x8000


@device_function
def int32_at(data: U8, at: int) -> int:
    """Read four bytes, which must be available."""
    value: int = data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]
    return (value ^ 0x80000000) - 0x80000000


@device_function
def number_at(data: U8, at: int, size: int, signed: int) -> int:
    """Read a big-endian integer; its bytes must be available."""
    value = -1 if signed and data[at] >= 128 else 0
    for i in range(at, at + size):
        value = value << 8 | data[i]
    return value


@device_function
def length_at(data: U8, at: int, end: int, op: int) -> tuple[int, int]:
    """Read the length or count of an instruction; the second number is its end, -1 if malformed."""
    if op in (Op.BYTES_COMPACT, Op.ARRAY_COMPACT):
        length, at = varint_at(data, at, end)
        return length - 1, at
    if op == Op.BYTES16:
        return (int16_at(data, at), at + 2) if end - at >= 2 else (0, -1)
    return (int32_at(data, at), at + 4) if end - at >= 4 else (0, -1)


@device_function
def find_tag(tags: Rows[KnownTag], first: int, count: int, tag: int) -> int:
    """Return the instruction of a known tag of a section, -1 for an unknown one."""
    for row in range(first, first + count):
        if tags[row].tag == tag:
            return tags[row].step
    return -1
