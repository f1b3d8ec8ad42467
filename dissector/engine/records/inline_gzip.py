"""
Small payloads of gzip, decompressed by a loop: those whose blocks have the fixed codes, or none.

So zlib writes what is so short that codes of its own would not pay. Blocks with codes of their own
are left to the library, and all that is odd or wrong.

Source: RFC 1951 (deflate), 3.2; RFC 1952 (gzip), 2.3.
"""

from __future__ import annotations

from typing import Any

from dissector.engine.records.checksum import checksum
from dissector.kernel import device_function

NOT_TAKEN = -1

_HEAD = (0x1F, 0x8B, 8, 0)
"""Deflate, and nothing but the bytes that all headers have."""
_HEAD_BYTES = 10
_TAIL_BYTES = 8

_STORED, _FIXED = 0, 1
_END = 256
_LITERALS = 256
_FIRST_LENGTH = 257
_LENGTHS, _DISTANCES = 286, 30
_MOST_BITS = 32
"""What a length and its distance take at most: 8, 5, 5 and 13, and one for good measure."""


@device_function
def unpack_gzip(source: Any, at: int, end: int, crcs: Any, out: Any, to: int, room: int) -> int:
    """
    Write what a payload holds.

    Args:
        source: The bytes.
        at: Where the payload begins.
        end: Where it ends.
        crcs: The table of CRC-32.
        out: Is written to,
        to: from there on,
        room: up to there.

    Returns:
        Where the output ends, or NOT_TAKEN.
    """
    if end - at < _HEAD_BYTES + _TAIL_BYTES:
        return NOT_TAKEN
    for i in range(4):
        if source[at + i] != _HEAD[i]:
            return NOT_TAKEN
    tail = end - _TAIL_BYTES
    stop = _inflate(source, at + _HEAD_BYTES, tail, out, to, room)
    if stop < 0 or checksum(out, to, stop, crcs) != little(source, tail):
        return NOT_TAKEN
    return stop if little(source, tail + 4) == stop - to else NOT_TAKEN


@device_function
def little(source: Any, at: int) -> int:
    """Read an unsigned little-endian number of four bytes."""
    value = 0
    for i in range(4):
        value |= (0 | source[at + i]) << 8 * i
    return value


@device_function
def _inflate(source: Any, at: int, end: int, out: Any, to: int, room: int) -> int:
    """Read all blocks, which end where the payload ends."""
    first = to
    bits = count = last = 0
    while not last:
        while count <= _MOST_BITS and at < end:
            bits |= (0 | source[at]) << count
            count += 8
            at += 1
        if count < 3:
            return NOT_TAKEN
        last, kind = bits & 1, bits >> 1 & 3
        bits >>= 3
        count -= 3
        if kind == _STORED:
            at -= count >> 3
            bits = count = 0
            if end - at < 4:
                return NOT_TAKEN
            sizes = little(source, at)
            size = sizes & 0xFFFF
            at += 4
            if size ^ sizes >> 16 != 0xFFFF or size > end - at or size > room - to:
                return NOT_TAKEN
            for i in range(size):
                out[to + i] = source[at + i]
            at += size
            to += size
            continue
        if kind != _FIXED:
            return NOT_TAKEN
        symbol = 0
        while symbol != _END:
            while count <= _MOST_BITS and at < end:
                bits |= (0 | source[at]) << count
                count += 8
                at += 1
            code = _reversed(bits & 255)
            if code < 48:
                symbol = _LITERALS + (code >> 1)
                used = 7
            elif code < 200:
                symbol = code - 48 if code < 192 else code + 88
                used = 8
            else:
                symbol = (code << 1 | bits >> 8 & 1) - 256
                used = 9
            if symbol >= _LENGTHS:
                return NOT_TAKEN
            if symbol < _LITERALS:
                if to == room:
                    return NOT_TAKEN
                out[to] = symbol
                to += 1
            elif symbol > _END:
                more = symbol - 261 >> 2 if 265 <= symbol < 285 else 0
                length = _length(symbol) + (bits >> used & (1 << more) - 1)
                used += more
                code = _reversed(bits >> used & 31) >> 3
                used += 5
                if code >= _DISTANCES:
                    return NOT_TAKEN
                more = (code >> 1) - 1 if code > 3 else 0
                distance = code + 1 if code < 4 else ((2 | code & 1) << more) + 1
                distance += bits >> used & (1 << more) - 1
                used += more
                if distance > to - first or length > room - to:
                    return NOT_TAKEN
                for i in range(to, to + length):
                    out[i] = out[i - distance]
                to += length
            if used > count:
                return NOT_TAKEN
            bits >>= used
            count -= used
    return to if at - (count >> 3) == end else NOT_TAKEN


@device_function
def _length(symbol: int) -> int:
    """Return the least length that a symbol stands for."""
    if symbol < 265:
        return symbol - _FIRST_LENGTH + 3
    if symbol == 285:
        return 258
    return ((symbol - 265 & 3 | 4) << (symbol - 261 >> 2)) + 3


@device_function
def _reversed(byte: int) -> int:
    """Return the bits of a byte, the last one first."""
    byte = (byte & 0x55) << 1 | byte >> 1 & 0x55
    byte = (byte & 0x33) << 2 | byte >> 2 & 0x33
    return (byte & 0x0F) << 4 | byte >> 4
