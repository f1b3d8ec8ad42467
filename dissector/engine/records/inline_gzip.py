"""
Small gzip payloads decompressed by a kernel: those of stored blocks and blocks with fixed codes.

zlib writes such blocks where the data is too short for dynamic Huffman codes to pay off. Dynamic
blocks, and everything unusual or invalid, are left to the library.

Source: RFC 1951 (deflate), 3.2; RFC 1952 (gzip), 2.3.
"""

from __future__ import annotations

from dissector.engine.records.checksum import crc_by_table
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8

USE_LIBRARY = -1
"""Result of a payload that the kernel does not decompress."""

_HEADER = (0x1F, 0x8B, 8, 0)
"""Magic, method deflate, and no flags: the header has no optional fields."""
_HEADER_BYTES = 10
_TRAILER_BYTES = 8

_STORED, _FIXED = 0, 1
_END_OF_BLOCK = 256
_LITERAL_CODES = 256
_FIRST_LENGTH_CODE = 257
_LENGTH_CODES_END, _DISTANCE_CODES = 286, 30
_MAX_SYMBOL_BITS = 32
"""Bits of a length and its distance at most: 8, 5, 5 and 13, and one spare bit."""


@device_function
def decompress_gzip(source: U8, at: int, end: int, crcs: I64, out: U8, to: int, limit: int) -> int:
    """
    Decompress a payload into `out`.

    Args:
        source: The bytes that contain the payload.
        at: Where the payload begins.
        end: Where it ends.
        crcs: The table of CRC-32.
        out: The output buffer.
        to: Where the output begins in it.
        limit: Where it has to end at the latest.

    Returns:
        Where the output ends, or USE_LIBRARY.
    """
    if end - at < _HEADER_BYTES + _TRAILER_BYTES:
        return USE_LIBRARY
    for i in range(4):
        if source[at + i] != _HEADER[i]:
            return USE_LIBRARY
    trailer = end - _TRAILER_BYTES
    stop = _inflate(source, at + _HEADER_BYTES, trailer, out, to, limit)
    if stop < 0 or crc_by_table(out, to, stop, crcs) != uint32_le(source, trailer):
        return USE_LIBRARY
    return stop if uint32_le(source, trailer + 4) == stop - to else USE_LIBRARY


@device_function
def uint32_le(source: U8, at: int) -> int:
    """Read an unsigned little-endian 32-bit integer."""
    value = 0
    for i in range(4):
        value |= (0 | source[at + i]) << 8 * i
    return value


@device_function
def _inflate(source: U8, at: int, end: int, out: U8, to: int, limit: int) -> int:
    """Decompress all blocks; the last must end at `end`."""
    first = to
    bits = count = last = 0
    while not last:
        while count <= _MAX_SYMBOL_BITS and at < end:
            bits |= (0 | source[at]) << count
            count += 8
            at += 1
        if count < 3:
            return USE_LIBRARY
        last, kind = bits & 1, bits >> 1 & 3
        bits >>= 3
        count -= 3
        if kind == _STORED:
            at -= count >> 3
            bits = count = 0
            if end - at < 4:
                return USE_LIBRARY
            sizes = uint32_le(source, at)
            size = sizes & 0xFFFF
            at += 4
            if size ^ sizes >> 16 != 0xFFFF or size > end - at or size > limit - to:
                return USE_LIBRARY
            for i in range(size):
                out[to + i] = source[at + i]
            at += size
            to += size
            continue
        if kind != _FIXED:
            return USE_LIBRARY
        symbol = 0
        while symbol != _END_OF_BLOCK:
            while count <= _MAX_SYMBOL_BITS and at < end:
                bits |= (0 | source[at]) << count
                count += 8
                at += 1
            code = _reverse_bits(bits & 255)
            if code < 48:
                symbol = _LITERAL_CODES + (code >> 1)
                bits_used = 7
            elif code < 200:
                symbol = code - 48 if code < 192 else code + 88
                bits_used = 8
            else:
                symbol = (code << 1 | bits >> 8 & 1) - 256
                bits_used = 9
            if symbol >= _LENGTH_CODES_END:
                return USE_LIBRARY
            if symbol < _LITERAL_CODES:
                if to == limit:
                    return USE_LIBRARY
                out[to] = symbol
                to += 1
            elif symbol > _END_OF_BLOCK:
                extra_bits = symbol - 261 >> 2 if 265 <= symbol < 285 else 0
                length = _base_length(symbol) + (bits >> bits_used & (1 << extra_bits) - 1)
                bits_used += extra_bits
                code = _reverse_bits(bits >> bits_used & 31) >> 3
                bits_used += 5
                if code >= _DISTANCE_CODES:
                    return USE_LIBRARY
                extra_bits = (code >> 1) - 1 if code > 3 else 0
                distance = code + 1 if code < 4 else ((2 | code & 1) << extra_bits) + 1
                distance += bits >> bits_used & (1 << extra_bits) - 1
                bits_used += extra_bits
                if distance > to - first or length > limit - to:
                    return USE_LIBRARY
                for i in range(to, to + length):
                    out[i] = out[i - distance]
                to += length
            if bits_used > count:
                return USE_LIBRARY
            bits >>= bits_used
            count -= bits_used
    return to if at - (count >> 3) == end else USE_LIBRARY


@device_function
def _base_length(symbol: int) -> int:
    """Return the base length of a length symbol, without its extra bits."""
    if symbol < 265:
        return symbol - _FIRST_LENGTH_CODE + 3
    if symbol == 285:
        return 258
    return ((symbol - 265 & 3 | 4) << (symbol - 261 >> 2)) + 3


@device_function
def _reverse_bits(byte: int) -> int:
    """Return a byte with its bits in reverse order."""
    byte = (byte & 0x55) << 1 | byte >> 1 & 0x55
    byte = (byte & 0x33) << 2 | byte >> 2 & 0x33
    return (byte & 0x0F) << 4 | byte >> 4
