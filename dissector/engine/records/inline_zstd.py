"""
zstd payloads decompressed within a kernel by the library itself, if each is one ordinary frame.

Everything unusual or invalid is left to Python.

Source: RFC 8878, 3.1.1.
"""

from __future__ import annotations

from dissector.engine.records.inline_gzip import USE_LIBRARY
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.native_call import call_decompressor_with_context

_MAGIC = (0x28, 0xB5, 0x2F, 0xFD)
_MIN_BYTES = 9
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_SINGLE_SEGMENT = 0x20
_UNSUPPORTED_FLAGS = 0x0B
"""Flags of a dictionary id and the reserved flag."""
_HAS_CHECKSUM = 4
_MAX_WINDOW_DESCRIPTOR = (23 - 10) << 3
"""Window descriptor of 8 MiB, which all decoders should support."""
_RLE_BLOCK = 2


@device_function
def decompress_zstd(
    function: int, context: int, source: U8, at: int, end: int, out: U8, to: int, limit: int
) -> int:
    """
    Decompress a payload into `out`.

    Args:
        function: Address of the library's function; 0 if it is not available.
        context: Address of its decompression context.
        source: The bytes that contain the payload.
        at: Where the payload begins.
        end: Where it ends.
        out: The output buffer.
        to: Where the output begins in it.
        limit: Where it has to end at the latest.

    Returns:
        Where the output ends, or USE_LIBRARY.
    """
    if function == 0 or limit <= to or not _is_one_frame(source, at, end):
        return USE_LIBRARY
    written = call_decompressor_with_context(
        function, context, source, at, end - at, out, to, limit - to
    )
    return to + written if 0 < written <= limit - to else USE_LIBRARY


@device_function
def _is_one_frame(source: U8, at: int, end: int) -> int:
    """Return 1 if the bytes are exactly one frame; the library would accept several."""
    if end - at < _MIN_BYTES:
        return 0
    for i in range(4):
        if source[at + i] != _MAGIC[i]:
            return 0
    flags = 0 | source[at + 4]
    if flags & _UNSUPPORTED_FLAGS:
        return 0
    if flags & _SINGLE_SEGMENT:
        at += 5 + max(1, _CONTENT_SIZE_BYTES[flags >> 6])
    else:
        if source[at + 5] > _MAX_WINDOW_DESCRIPTOR:
            return 0
        at += 6 + _CONTENT_SIZE_BYTES[flags >> 6]
    last = 0
    while not last and at + 3 <= end:
        block_header = source[at] + 256 * source[at + 1] + 65536 * source[at + 2]
        last = block_header & 1
        at += 3 + (1 if block_header & 6 == _RLE_BLOCK else block_header >> 3)
    return 1 if last and at + (flags & _HAS_CHECKSUM) == end else 0
