"""
Payloads decompressed within a kernel, by a native library or by kernels of our own.

A library call from Python costs several microseconds, more than the decompression itself where
producers without linger write batches of a few records. Payloads that these kernels do not support
(large outputs, content checksums, unusual or invalid frames) are left to the libraries; for all
others the libraries give the same output. The lz4 and zstd libraries can be called from a kernel,
so all frames that common producers write are decompressed here.

Source: lz4_Block_format.md, lz4_Frame_format.md, xxhash_spec.md; format_description.txt of snappy;
xerial's framing as in `compression`.
"""

from __future__ import annotations

from dissector.engine.records.inline_gzip import USE_LIBRARY, decompress_gzip, uint32_le
from dissector.engine.records.inline_zstd import decompress_zstd
from dissector.engine.records.native_libraries import LZ4_FUNCTION, ZSTD_CONTEXT, ZSTD_FUNCTION
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.native_call import call_decompressor

__all__ = [
    "GZIP",
    "LZ4",
    "SMALL_PAYLOAD_BYTES",
    "SNAPPY",
    "USE_LIBRARY",
    "ZSTD",
    "decompress_inline",
]

ZSTD, LZ4, SNAPPY, GZIP = 4, 3, 2, 1

SMALL_PAYLOAD_BYTES = 2048
"""Compressed size up to which our own kernels decompress a payload."""

MAX_OUTPUT_BYTES = 1 << 15
"""
Output limit of our own kernels.

It is half of the smallest lz4 block limit: near a block's limit the library is stricter than we
are.
"""

MAX_LIBRARY_OUTPUT_BYTES = 1 << 21
"""Limit of one payload's output where a library is called from a kernel."""

_UNCOMPRESSED = 1 << 31
"""Flag in the size of an lz4 block that is not compressed."""

_UINT32_MAX = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME_4, _PRIME_5 = 0x27D4EB2F, 0x165667B1
_FRAME_MAGIC = 0x184D2204
_XERIAL_MAGIC = (0x82, 0x53, 0x4E, 0x41, 0x50, 0x50, 0x59, 0x00)
_XERIAL_HEADER_BYTES = 16
_MIN_BYTES_AFTER_LITERALS = 8
"""An lz4 block ends with literals; other literals must end at least this far from its end."""
_MIN_BYTES_AFTER_LENGTH = 5


@device_function
def decompress_inline(
    codec: int,
    source: U8,
    at: int,
    end: int,
    is_checked: int,
    crcs: I64,
    out: U8,
    to: int,
    limit: int,
    libraries: I64,
) -> int:
    """
    Decompress a payload into `out`.

    Args:
        codec: Number of the codec.
        source: The bytes that contain the payload.
        at: Where the payload begins.
        end: Where it ends.
        is_checked: Whether lz4's header checksum is verified: not in magic 0.
        crcs: The table of CRC-32.
        out: The output buffer.
        to: Where the output begins in it.
        limit: Where it has to end at the latest.
        libraries: Addresses of library functions: see `library_addresses`.

    Returns:
        Where the output ends, or USE_LIBRARY.
    """
    if codec == LZ4 and libraries[LZ4_FUNCTION]:
        limit = min(limit, to + MAX_LIBRARY_OUTPUT_BYTES)
        return _decompress_lz4(source, at, end, is_checked, out, to, limit, libraries[LZ4_FUNCTION])
    if codec == ZSTD:
        limit = min(limit, to + MAX_LIBRARY_OUTPUT_BYTES)
        function, context = libraries[ZSTD_FUNCTION], libraries[ZSTD_CONTEXT]
        return decompress_zstd(function, context, source, at, end, out, to, limit)
    if end - at > SMALL_PAYLOAD_BYTES or at >= end:
        return USE_LIBRARY
    limit = min(limit, to + MAX_OUTPUT_BYTES)
    if codec == LZ4:
        return _decompress_lz4(source, at, end, is_checked, out, to, limit, 0)
    if codec == SNAPPY:
        return _decompress_snappy(source, at, end, out, to, limit)
    if codec == GZIP:
        return decompress_gzip(source, at, end, crcs, out, to, limit)
    return USE_LIBRARY


@device_function
def _decompress_lz4(
    source: U8, at: int, end: int, is_checked: int, out: U8, to: int, limit: int, library: int
) -> int:
    """Decompress an lz4 frame without content checksums."""
    if end - at < 15:
        return USE_LIBRARY
    if uint32_le(source, at) != _FRAME_MAGIC:
        return USE_LIBRARY
    flags = 0 | source[at + 4]
    descriptor = 0 | source[at + 5]
    # Version 1; blocks may be linked, and the content size may be present.
    if flags & 0xD7 != 0x40 or descriptor & 0x8F or descriptor < 0x40:
        return USE_LIBRARY
    begin = at + 4
    at += 6
    size = -1
    if flags & 8:
        if end - at < 17:
            return USE_LIBRARY
        size = uint32_le(source, at)
        if uint32_le(source, at + 4):
            return USE_LIBRARY
        at += 8
    if is_checked and _short_xxh32(source, begin, at) >> 8 & 255 != source[at]:
        return USE_LIBRARY
    # Linked blocks copy from earlier blocks, so only the first can be decompressed on its own.
    max_blocks = (end - at) if flags & 0x20 else 1
    max_bytes = 1 << (8 + (descriptor >> 3))
    first, at = to, at + 1
    to = _decompress_lz4_blocks(source, at, end, max_bytes, max_blocks, out, to, limit, library)
    return to if size < 0 or to - first == size else USE_LIBRARY


@device_function
def _decompress_lz4_blocks(
    source: U8,
    at: int,
    end: int,
    max_bytes: int,
    max_blocks: int,
    out: U8,
    to: int,
    limit: int,
    library: int,
) -> int:
    """Decompress the blocks of a frame, within its limits; return where the output ends."""
    blocks = 0
    while end - at >= 8 and blocks < max_blocks:
        block = uint32_le(source, at)
        size = block & (_UNCOMPRESSED - 1)
        at += 4
        if size == 0 or size > max_bytes or size > end - at - 4:
            return USE_LIBRARY
        if block & _UNCOMPRESSED:
            to = _copy_literals(source, at, size, out, to, limit)
        elif library:
            written = call_decompressor(
                library, source, at, size, out, to, min(max_bytes, limit - to)
            )
            to = to + written if written > 0 else USE_LIBRARY
        else:
            to = _decompress_lz4_block(source, at, at + size, out, to, limit)
        if to < 0:
            return USE_LIBRARY
        at += size
        blocks += 1
    return to if blocks and end - at == 4 and uint32_le(source, at) == 0 else USE_LIBRARY


@device_function
def _short_xxh32(source: U8, at: int, end: int) -> int:
    """Return XXH32 with seed 0 of fewer than 16 bytes."""
    value = (_PRIME_5 + end - at) & _UINT32_MAX
    while at + 4 <= end:
        value = (value + uint32_le(source, at) * _PRIME_3) & _UINT32_MAX
        value = ((value << 17 | value >> 15) & _UINT32_MAX) * _PRIME_4 & _UINT32_MAX
        at += 4
    while at < end:
        value = (value + source[at] * _PRIME_5) & _UINT32_MAX
        value = ((value << 11 | value >> 21) & _UINT32_MAX) * _PRIME_1 & _UINT32_MAX
        at += 1
    value = (value ^ value >> 15) * _PRIME_2 & _UINT32_MAX
    value = (value ^ value >> 13) * _PRIME_3 & _UINT32_MAX
    return value ^ value >> 16


@device_function
def _copy_literals(source: U8, at: int, size: int, out: U8, to: int, limit: int) -> int:
    """Copy bytes to the output; return where they end."""
    if size > limit - to:
        return USE_LIBRARY
    for i in range(size):
        out[to + i] = source[at + i]
    return to + size


@device_function
def _copy_match(out: U8, first: int, to: int, offset: int, size: int, limit: int) -> int:
    """Copy from `offset` bytes back in the output, not before `first`; return the new end."""
    if offset == 0 or offset > to - first or size > limit - to:
        return USE_LIBRARY
    for i in range(to, to + size):
        out[i] = out[i - offset]
    return to + size


@device_function
def _decompress_lz4_block(source: U8, at: int, end: int, out: U8, to: int, limit: int) -> int:
    """Decompress a block: literals and matches in turn."""
    first = to
    while at < end:
        token = 0 | source[at]
        at += 1
        size = token >> 4
        more = 255 if size == 15 else 0
        while more == 255:
            if at >= end:
                return USE_LIBRARY
            more = 0 | source[at]
            size += more
            at += 1
        if size > end - at:
            return USE_LIBRARY
        to = _copy_literals(source, at, size, out, to, limit)
        at += size
        if to < 0 or at == end:
            return to
        if end - at < _MIN_BYTES_AFTER_LITERALS:
            return USE_LIBRARY
        offset = source[at] | (0 | source[at + 1]) << 8
        at += 2
        size = token & 15
        more = 255 if size == 15 else 0
        while more == 255:
            more = 0 | source[at]
            size += more
            at += 1
            if end - at < _MIN_BYTES_AFTER_LENGTH:
                return USE_LIBRARY
        to = _copy_match(out, first, to, offset, size + 4, limit)
        if to < 0:
            return to
    return USE_LIBRARY


@device_function
def _decompress_snappy(source: U8, at: int, end: int, out: U8, to: int, limit: int) -> int:
    """Decompress blocks in xerial's framing, or a single block."""
    if not _is_xerial(source, at, end):
        return _decompress_snappy_block(source, at, end, out, to, limit)
    at += _XERIAL_HEADER_BYTES
    while at < end:
        if end - at < 4 or source[at]:
            return USE_LIBRARY
        size = source[at + 1] * 65536 + source[at + 2] * 256 + source[at + 3]
        at += 4
        if size > end - at:
            return USE_LIBRARY
        to = _decompress_snappy_block(source, at, at + size, out, to, limit)
        if to < 0:
            return to
        at += size
    return to if at == end else USE_LIBRARY


@device_function
def _is_xerial(source: U8, at: int, end: int) -> bool:
    if end - at < 8:
        return False
    same = 0
    while same < 8 and source[at + same] == _XERIAL_MAGIC[same]:
        same += 1
    return same == 8


@device_function
def _decompress_snappy_block(source: U8, at: int, end: int, out: U8, to: int, limit: int) -> int:
    """Decompress a block: its size, then literals and copies in any order."""
    size = shift = 0
    byte = 128
    while byte >= 128:
        if at >= end or shift > 14:
            return USE_LIBRARY
        byte = 0 | source[at]
        size |= (byte & 127) << shift
        shift += 7
        at += 1
    if size == 0 or size > limit - to:
        return USE_LIBRARY
    first = to
    limit = to + size
    while at < end:
        tag = 0 | source[at]
        at += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                size_bytes = size - 60
                if size_bytes > 2 or size_bytes > end - at:
                    return USE_LIBRARY
                size = source[at] + 1
                if size_bytes == 2:
                    size += source[at + 1] * 256
                at += size_bytes
            if size > end - at:
                return USE_LIBRARY
            to = _copy_literals(source, at, size, out, to, limit)
            at += size
        elif tag & 3 == 1:
            if at >= end:
                return USE_LIBRARY
            offset = tag >> 5 << 8 | source[at]
            at += 1
            to = _copy_match(out, first, to, offset, 4 + (tag >> 2 & 7), limit)
        elif tag & 3 == 2:
            if end - at < 2:
                return USE_LIBRARY
            offset = source[at] | (0 | source[at + 1]) << 8
            at += 2
            to = _copy_match(out, first, to, offset, 1 + (tag >> 2), limit)
        else:
            return USE_LIBRARY
        if to < 0:
            return to
    return to if to == limit else USE_LIBRARY
