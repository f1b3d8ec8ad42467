"""
Decompresses usual payloads in one library call.

`compression.decompress` reads any payload chunk by chunk and finds its problems. Nearly all
payloads are one valid gzip member, lz4 frame or zstd frame of modest size: these are decompressed
here at the speed of the library. All others fall back to `compression.decompress`.

Source: RFC 8878, 3.1.1 (zstd frames and blocks); the rest as of `compression`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from dissector.protocol.records.compression import decompress
from dissector.protocol.records.limits import Budget

_GZIP_WBITS = 31
_LZ4_CHUNK_BYTES = 1 << 17
"""Large enough for speed, small enough to stay in the processor's cache when it is copied."""
_LZ4_HEADER_BYTES = 7
_LZ4_UNUSUAL = "block_linked", "block_checksum", "content_checksum", "skippable"
_LZ4_END = b"\0\0\0\0"
_LZ4_STORED = 1 << 31
"""Set in the size of a block that is not compressed."""
_ZSTD_USUAL_RATIO = 16
_ZSTD_MIN_ROOM = 1 << 16
_ZSTD_MIN_BYTES = 9
_ZSTD_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_DECLARES = 0xE0
"""Flags of a frame; one of them is set where the frame declares its content size."""
_ZSTD_REPEATED = 2
_ZSTD_BLOCK_BYTES = 1 << 17
_ZSTD_WIDEST_WINDOW_LOG = 27
"""The library's limit when it reads in chunks; in a single call it does not enforce it."""


INVALID, NO_ROOM = -1, -2
"""Instead of the end of the output: the payload is invalid; its output is too large."""


class InlineDecompressor:
    """Decompresses payloads, reusing the libraries' contexts. For one thread at a time."""

    def __init__(self) -> None:
        self._ways: dict[int, _Decoder] = {1: _gzip}

    def decompress_into(
        self,
        number: int,
        payload: memoryview,
        budget: Budget,
        target: memoryview,
        at: int,
        magic: int = 2,
    ) -> int:
        """
        Write the decompressed payload, and return the end of the output.

        Args:
            number: The codec's number.
            payload: The compressed bytes.
            budget: The remaining limits; the output is deducted.
            target: Receives the output,
            at: from there on. More may be written beyond the returned end.
            magic: Of the batch or wrapper.

        Returns:
            The end; INVALID where `decompress` finds a problem in the payload; NO_ROOM.
        """
        decoder = self._ways.get(number) or self._way(number)
        if len(payload) and budget.output_bytes > 0:
            end = decoder(payload, budget, target, at)
            if end >= 0:
                budget.output_bytes -= end - at
                return end
        data, problem, _ = decompress(number, bytes(payload), budget, magic=magic)
        return INVALID if problem else _write(data, target, at)

    def _way(self, number: int) -> _Decoder:
        """Load the library of a codec at first use."""
        factories: dict[int, Callable[[], _Decoder]] = {3: _lz4_decoder, 4: _zstd_decoder}
        self._ways[number] = decoder = factories.get(number, lambda: _unknown_codec)()
        return decoder


_Decoder: TypeAlias = Callable[[memoryview, Budget, memoryview, int], int]
"""Writes the output and returns its end; negative if the payload is not a usual one."""


def _write(data: bytes, target: memoryview, at: int) -> int:
    """Write some bytes, if there is room, and return their end."""
    end = at + len(data)
    if end > len(target):
        return NO_ROOM
    target[at:end] = data
    return end


def _unknown_codec(payload: memoryview, budget: Budget, target: memoryview, at: int) -> int:
    return INVALID


def _lz4_decoder() -> _Decoder:
    """
    Return a decoder of one lz4 frame.

    The library creates and clears a context for each frame, which takes a quarter of the time of
    the work. Frames as producers write them are parsed here, and the library only decodes their
    blocks.
    """
    from lz4.block import LZ4BlockError
    from lz4.block import decompress as decompress_block

    decode_in_chunks = _lz4_chunk_decoder()

    def decode(payload: memoryview, budget: Budget, target: memoryview, at: int) -> int:
        max_block_bytes = _lz4_block_bytes(bytes(payload[:_LZ4_HEADER_BYTES]))
        limit = min(at + budget.output_bytes, len(target))
        begin, end, stop = _LZ4_HEADER_BYTES, at, len(payload) - 4
        while max_block_bytes and begin < stop:
            size = int.from_bytes(payload[begin : begin + 4], "little")
            begin += 4 + size
            if not 0 < size < _LZ4_STORED or begin > stop:
                break
            try:
                out = decompress_block(
                    payload[begin - size : begin], uncompressed_size=max_block_bytes
                )
            except LZ4BlockError:
                break
            written, end = end, end + len(out)
            if end > limit:
                break
            target[written:end] = out
        else:
            if max_block_bytes and begin == stop and payload[stop:] == _LZ4_END:
                return end
        return decode_in_chunks(payload, budget, target, at)

    return decode


@lru_cache(maxsize=64)
def _lz4_block_bytes(header: bytes) -> int:
    """Return the maximal block size of a frame of small independent blocks; else 0."""
    from lz4.frame import get_frame_info

    try:
        info = get_frame_info(header)
    except RuntimeError:  # the header is invalid, or longer
        return 0
    unusual = any(info[name] for name in _LZ4_UNUSUAL)
    return 0 if unusual or info["block_size"] > _LZ4_CHUNK_BYTES else int(info["block_size"])


def _lz4_chunk_decoder() -> _Decoder:
    """Return a decoder of one lz4 frame of any kind."""
    from lz4.frame import (
        create_decompression_context,
        decompress_chunk,
        reset_decompression_context,
    )

    context: Any = create_decompression_context()

    def decode(payload: memoryview, budget: Budget, target: memoryview, at: int) -> int:
        limit = at + budget.output_bytes  # lz4's ratio never exceeds the limit
        if limit > len(target):
            limit = len(target)
        try:
            while True:
                out, used, ended = decompress_chunk(context, payload, max_length=_LZ4_CHUNK_BYTES)
                end = at + len(out)
                if end > limit:
                    break
                target[at:end] = out
                if ended and used == len(payload):
                    return end
                if ended or not (used or out):
                    break
                at = end
                payload = payload[used:]
        except RuntimeError:
            pass
        reset_decompression_context(context)
        return INVALID

    return decode


def _zstd_decoder() -> _Decoder:
    """Return a decoder of one zstd frame."""
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    decompress_frame = ZstdDecompressor().decompress

    def decode(payload: memoryview, budget: Budget, target: memoryview, at: int) -> int:
        size = len(payload)
        max_bytes = min(_zstd_max_bytes(payload, size), budget.output_for(size))
        if not max_bytes:
            return INVALID
        usual_bytes = max(_ZSTD_MIN_ROOM, _ZSTD_USUAL_RATIO * size)
        try:
            # The library trusts a declared size: it allocates that much at once, and reads nothing
            # where it is 0.
            if payload[4] & _ZSTD_DECLARES:
                declared = frame_content_size(payload)
                if declared == 0 or declared > max_bytes:
                    return INVALID
            if usual_bytes < max_bytes:
                try:
                    return _write(
                        decompress_frame(payload, max_output_size=usual_bytes), target, at
                    )
                except ZstdError:
                    pass  # the output may be larger than usual
            return _write(decompress_frame(payload, max_output_size=max_bytes), target, at)
        except ZstdError:
            return INVALID

    return decode


def _zstd_max_bytes(payload: memoryview, size: int) -> int:
    """
    Return how large the output of a payload can be if it is one zstd frame; 0 if it is not.

    The library would ignore bytes after the frame.
    """
    if size < _ZSTD_MIN_BYTES:
        return 0
    flags = payload[4]
    single_segment = flags & 0x20
    at = 5 + _ZSTD_ID_BYTES[flags & 3] + _ZSTD_CONTENT_SIZE_BYTES[flags >> 6]
    if single_segment:
        at += flags < 0x40
    else:
        at += 1
        if 10 + (payload[5] >> 3) >= _ZSTD_WIDEST_WINDOW_LOG:
            return 0
    blocks = last = 0
    while not last and at + 3 <= size:
        head = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        last = head & 1
        at += 3 + (1 if head & 6 == _ZSTD_REPEATED else head >> 3)
        blocks += 1
    at += flags & 4  # the checksum takes four bytes
    return blocks * _ZSTD_BLOCK_BYTES if last and at == size else 0


def _gzip(payload: memoryview, budget: Budget, target: memoryview, at: int) -> int:
    """Decompress one gzip member."""
    decoder = zlib.decompressobj(_GZIP_WBITS)
    try:
        # gzip's ratio never exceeds the limit.
        out = decoder.decompress(payload, budget.output_bytes)
    except zlib.error:
        return INVALID
    return _write(out, target, at) if decoder.eof and not decoder.unused_data else INVALID
