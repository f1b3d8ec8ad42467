"""
Decompresses ordinary payloads in one library call.

Nearly all payloads are one valid gzip member, lz4 frame, zstd frame or snappy stream of one block:
their output is a call of the library away. `compression.decompress` reads all others chunk by
chunk, and finds their problems.

Source: RFC 8878, 3.1.1 (zstd frames and blocks); the rest as of `compression`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

GZIP_WBITS = 31
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_START = struct.Struct(">8s8xI")
"""Magic, two versions, and the size of the first block."""
_SNAPPY_MAX_RATIO = 22
"""The longest copy of snappy is 64 bytes for 3."""
_LZ4_CHUNK_BYTES = 1 << 17
"""Large enough for speed, small enough to stay in the processor's cache when copied."""
_ZSTD_USUAL_RATIO = 16
_ZSTD_MIN_ROOM = 1 << 16
_ZSTD_MIN_BYTES = 9
_ZSTD_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_SINGLE_SEGMENT = 0x20
_ZSTD_DECLARES = 0xE0
"""Flags of a frame; one of them is set if the frame declares its content size."""
_ZSTD_HAS_CHECKSUM = 4
_ZSTD_RLE_BLOCK = 2
_ZSTD_BLOCK_BYTES = 1 << 17
_ZSTD_WIDEST_WINDOW_LOG = 27
"""The library's limit for chunked reading; it does not apply to a single call."""

_idle_lz4: list[Any] = []
"""Idle contexts of lz4: a new one costs more than the work of a small batch.

A context stopped by an error or a limit is dropped.
"""
_idle_zstd: list[Any] = []
"""Idle decompressors of zstd."""


def unpack(number: int, payload: memoryview, allowed: int) -> bytes | None:
    """
    Return the output of a payload; None if it is not an ordinary one, not valid, or too large.

    Args:
        number: The codec's number.
        payload: The compressed bytes.
        allowed: Maximum number of output bytes.
    """
    decoder = _DECODERS.get(number)
    return decoder(payload, allowed) if decoder and payload and allowed > 0 else None


@cache
def _library(name: str) -> Any:
    """Return a module; an import statement takes up to a fifth of the time of a small payload."""
    return import_module(name)


def _gzip(payload: memoryview, allowed: int) -> bytes | None:
    """Decompress one gzip member."""
    decoder = zlib.decompressobj(GZIP_WBITS)
    try:
        out = decoder.decompress(payload, allowed)
    except zlib.error:
        return None
    return out if decoder.eof and not decoder.unused_data else None


def _snappy(payload: memoryview, allowed: int) -> bytes | None:
    """Decompress a raw block, or a framed stream of one block."""
    snappy = _library("snappy")
    if payload[0] == XERIAL_MAGIC[0] and payload[:8] == XERIAL_MAGIC:
        if len(payload) <= _XERIAL_START.size:
            return None
        _, size = _XERIAL_START.unpack_from(payload)
        if size != len(payload) - _XERIAL_START.size:
            return None
        payload = payload[_XERIAL_START.size :]
    # The library allocates the size that the block declares.
    declared = snappy_size(payload)
    if not 0 <= declared <= allowed or declared > _SNAPPY_MAX_RATIO * len(payload):
        return None
    try:
        return bytes(snappy.uncompress(payload))
    except snappy.UncompressError:
        return None


def snappy_size(block: memoryview) -> int:
    """Return the size that a raw snappy block declares, a varint of 32 bits; -1 without one."""
    size = shift = 0
    for byte in bytes(block[:5]):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    return -1


def _lz4(payload: memoryview, allowed: int) -> bytes | None:
    """Decompress one lz4 frame."""
    lz4 = _library("lz4.frame")
    context = _idle_lz4.pop() if _idle_lz4 else lz4.create_decompression_context()
    chunks: list[bytes] = []
    ended = False
    try:
        while not ended:
            out, used, ended = lz4.decompress_chunk(context, payload, max_length=_LZ4_CHUNK_BYTES)
            allowed -= len(out)
            if allowed < 0 or not (used or out):
                return None
            chunks.append(out)
            payload = payload[used:]
    except RuntimeError:
        return None
    _idle_lz4.append(context)
    if payload:
        return None
    return out if len(chunks) == 1 else b"".join(chunks)


def _zstd(payload: memoryview, allowed: int) -> bytes | None:
    """Decompress one zstd frame."""
    max_bytes = min(_zstd_max_bytes(payload), allowed)
    if max_bytes <= 0:
        return None
    zstd = _library("zstandard")
    # The library trusts a declared size: it allocates that much at once, and reads nothing for 0.
    try:
        if payload[4] & _ZSTD_DECLARES and not 0 < zstd.frame_content_size(payload) <= max_bytes:
            return None
    except zstd.ZstdError:
        return None
    context = _idle_zstd.pop() if _idle_zstd else zstd.ZstdDecompressor()
    # The library allocates the room that it is allowed, so the output is first taken for usual.
    usual_bytes = max(_ZSTD_MIN_ROOM, _ZSTD_USUAL_RATIO * len(payload))
    for room in (usual_bytes, max_bytes) if usual_bytes < max_bytes else (max_bytes,):
        try:
            out = context.decompress(payload, max_output_size=room)
        except zstd.ZstdError:
            continue
        _idle_zstd.append(context)
        return bytes(out)
    return None


def _zstd_max_bytes(payload: memoryview) -> int:
    """
    Return the maximum output size of a payload of one frame; 0 if it is not.

    The library would ignore bytes after the frame.
    """
    size = len(payload)
    if size < _ZSTD_MIN_BYTES:
        return 0
    flags = payload[4]
    at = 5 + _ZSTD_ID_BYTES[flags & 3] + _ZSTD_CONTENT_SIZE_BYTES[flags >> 6]
    if flags & _ZSTD_SINGLE_SEGMENT:
        at += flags < 0x40
    else:
        at += 1
        if 10 + (payload[5] >> 3) >= _ZSTD_WIDEST_WINDOW_LOG:
            return 0
    blocks = last = 0
    while not last and at + 3 <= size:
        head = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        last = head & 1
        at += 3 + (1 if head & 6 == _ZSTD_RLE_BLOCK else head >> 3)
        blocks += 1
    at += flags & _ZSTD_HAS_CHECKSUM  # the checksum has four bytes
    return blocks * _ZSTD_BLOCK_BYTES if last and at == size else 0


_Decoder: TypeAlias = Callable[[memoryview, int], bytes | None]

_DECODERS: dict[int, _Decoder] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
