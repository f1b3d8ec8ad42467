"""
Gzip and zstd of a given length: where they are shorter, a part that readers skip is added.

Source: RFC 1952 (the comment of gzip's header); RFC 8878, 3.1.1 (dictionary ids, empty blocks,
skippable frames of zstd).
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

from dissector.protocol.records.unpack import GZIP_WBITS

_GZIP_HEADER_BYTES = 10
_GZIP_FLAGS_AT, _GZIP_HAS_COMMENT = 3, 0x10
_ZSTD_LEVELS = (3, 19, 12, 6, 1)
"""That of most clients first: 19 takes five times as long and more, and is seldom needed."""
_ZSTD_SKIPPABLE = b"\x50\x2a\x4d\x18"
_ZSTD_SKIPPABLE_BYTES = 8
_ZSTD_DESCRIPTOR_AT = 4
_EMPTY_BLOCK = bytes(3)
_ZSTD_PADDING = {
    0: (0, 0),
    1: (1, 0),
    2: (2, 0),
    3: (0, 1),
    4: (4, 0),
    5: (2, 1),
    6: (0, 2),
    7: (4, 1),
}
"""Missing bytes -> bytes of a dictionary id 0 (none), and number of empty blocks."""


def gzip_of_length(raw: bytes, old: bytes) -> bytes | None:
    """Return gzip with the length of another one; None if it is longer."""
    encoder = zlib.compressobj(9, zlib.DEFLATED, GZIP_WBITS, 9)
    new = encoder.compress(raw) + encoder.flush()
    missing = len(old) - len(new)
    if missing <= 0:
        return None if missing else new
    head = bytearray(new[:_GZIP_HEADER_BYTES])
    head[_GZIP_FLAGS_AT] |= _GZIP_HAS_COMMENT
    return bytes(head) + b"x" * (missing - 1) + b"\0" + new[_GZIP_HEADER_BYTES:]


def zstd_of_length(raw: bytes, old: bytes) -> bytes | None:
    """Return zstd with the length of another one; None if it is longer."""
    for level in _ZSTD_LEVELS:
        new: bytes = _zstd_compressor(level).compress(raw)
        if len(new) <= len(old):
            return _padded_zstd(new, len(old) - len(new))
    return None


@cache
def _zstd_compressor(level: int) -> Any:
    """Return a compressor; a new one costs more than the work of a small batch."""
    import zstandard

    return zstandard.ZstdCompressor(level=level, write_content_size=False)


def _padded_zstd(frame: bytes, missing: int) -> bytes:
    if missing >= _ZSTD_SKIPPABLE_BYTES:
        size = missing - _ZSTD_SKIPPABLE_BYTES
        return frame + _ZSTD_SKIPPABLE + size.to_bytes(4, "little") + bytes(size)
    id_bytes, blocks = _ZSTD_PADDING[missing]
    descriptor = frame[_ZSTD_DESCRIPTOR_AT]
    # Without a content size the header is the descriptor and the window.
    end = _ZSTD_DESCRIPTOR_AT + 2
    head = bytearray(frame[:end])
    head[_ZSTD_DESCRIPTOR_AT] = descriptor | {0: 0, 1: 1, 2: 2, 4: 3}[id_bytes]
    return bytes(head) + bytes(id_bytes) + _EMPTY_BLOCK * blocks + frame[end:]
