"""
The usual payload of a batch, decompressed in one library call.

`compression.decompress` reads whatever a producer may have written and says what is wrong with it,
piece by piece. Nearly all payloads are one sound gzip member, lz4 frame or zstd frame of modest
size: those are read here at the speed of the library. Whatever is otherwise is left to it.

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
_LZ4_PIECE = 1 << 17
"""Large enough to be quick, small enough to be near the processor when it is copied."""
_LZ4_HEADER_BYTES = 7
_LZ4_UNUSUAL = "block_linked", "block_checksum", "content_checksum", "skippable"
_LZ4_END = b"\0\0\0\0"
_LZ4_STORED = 1 << 31
"""Set in the size of a block that is not compressed."""
_ZSTD_USUAL_RATIO = 16
_ZSTD_LEAST_ROOM = 1 << 16
_ZSTD_LEAST = 9
_ZSTD_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_DECLARES = 0xE0
"""Flags of a frame of which one is set where it tells how much it gives."""
_ZSTD_REPEATED = 2
_ZSTD_BLOCK_BYTES = 1 << 17
_ZSTD_WIDEST_WINDOW_LOG = 27
"""The library's limit where it reads piece by piece; in one call it would forget it."""


INVALID, NO_ROOM = -1, -2
"""Instead of where output ends: something is wrong with the payload; it gives too much."""


class InlineDecompressor:
    """Decompresses payloads, with the libraries' contexts kept. For one thread at a time."""

    def __init__(self) -> None:
        self._ways: dict[int, _Way] = {1: _gzip}

    def decompress_into(
        self,
        number: int,
        payload: memoryview,
        budget: Budget,
        room: memoryview,
        at: int,
        magic: int = 2,
    ) -> int:
        """
        Write what a payload holds, and return where that ends.

        Args:
            number: The codec's number.
            payload: The compressed bytes.
            budget: What may still be given; the output is taken from it.
            room: Is written to,
            at: from there on. More may be written than in the end counts.
            magic: Of the batch or wrapper.

        Returns:
            The end; WRONG where `decompress` finds something wrong with the payload; NO_ROOM.
        """
        way = self._ways.get(number) or self._way(number)
        if len(payload) and budget.output_bytes > 0:
            end = way(payload, budget, room, at)
            if end >= 0:
                budget.output_bytes -= end - at
                return end
        data, problem = decompress(number, bytes(payload), budget, magic=magic)
        return INVALID if problem else _written(data, room, at)

    def _way(self, number: int) -> _Way:
        """Load a library when it is first needed."""
        makers: dict[int, Callable[[], _Way]] = {3: _lz4, 4: _zstd}
        self._ways[number] = way = makers.get(number, lambda: _no_way)()
        return way


_Way: TypeAlias = Callable[[memoryview, Budget, memoryview, int], int]
"""Writes the output and returns its end; something negative if the payload is not what is usual."""


def _written(data: bytes, room: memoryview, at: int) -> int:
    """Write some bytes, if there is room, and return where they end."""
    end = at + len(data)
    if end > len(room):
        return NO_ROOM
    room[at:end] = data
    return end


def _no_way(payload: memoryview, budget: Budget, room: memoryview, at: int) -> int:
    return INVALID


def _lz4() -> _Way:
    """
    Return what reads one lz4 frame.

    The library makes and clears a context for each frame, which takes as long as a quarter of the
    work. Frames as producers write them we take apart ourselves, and have it read the blocks.
    """
    from lz4.block import LZ4BlockError
    from lz4.block import decompress as decompress_block

    by_pieces = _lz4_by_pieces()

    def unpack(payload: memoryview, budget: Budget, room: memoryview, at: int) -> int:
        most = _lz4_block_bytes(bytes(payload[:_LZ4_HEADER_BYTES]))
        last = min(at + budget.output_bytes, len(room))
        begin, end, stop = _LZ4_HEADER_BYTES, at, len(payload) - 4
        while most and begin < stop:
            size = int.from_bytes(payload[begin : begin + 4], "little")
            begin += 4 + size
            if not 0 < size < _LZ4_STORED or begin > stop:
                break
            try:
                out = decompress_block(payload[begin - size : begin], uncompressed_size=most)
            except LZ4BlockError:
                break
            written, end = end, end + len(out)
            if end > last:
                break
            room[written:end] = out
        else:
            if most and begin == stop and payload[stop:] == _LZ4_END:
                return end
        return by_pieces(payload, budget, room, at)

    return unpack


@lru_cache(maxsize=64)
def _lz4_block_bytes(header: bytes) -> int:
    """Return the most that a block gives, if a frame is of small ones that need no other; or 0."""
    from lz4.frame import get_frame_info

    try:
        told = get_frame_info(header)
    except RuntimeError:  # it is wrong, or longer
        return 0
    unusual = any(told[name] for name in _LZ4_UNUSUAL)
    return 0 if unusual or told["block_size"] > _LZ4_PIECE else int(told["block_size"])


def _lz4_by_pieces() -> _Way:
    """Return what reads one lz4 frame of any kind."""
    from lz4.frame import (
        create_decompression_context,
        decompress_chunk,
        reset_decompression_context,
    )

    context: Any = create_decompression_context()

    def unpack(payload: memoryview, budget: Budget, room: memoryview, at: int) -> int:
        last = at + budget.output_bytes  # its ratio never meets a limit
        if last > len(room):
            last = len(room)
        try:
            while True:
                out, used, ended = decompress_chunk(context, payload, max_length=_LZ4_PIECE)
                end = at + len(out)
                if end > last:
                    break
                room[at:end] = out
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

    return unpack


def _zstd() -> _Way:
    """Return what reads one zstd frame."""
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    decompress_frame = ZstdDecompressor().decompress

    def unpack(payload: memoryview, budget: Budget, room: memoryview, at: int) -> int:
        size = len(payload)
        most = min(_zstd_most(payload, size), budget.output_for(size))
        if not most:
            return INVALID
        usual = max(_ZSTD_LEAST_ROOM, _ZSTD_USUAL_RATIO * size)
        try:
            # A declared size is believed by the library: it makes room for so much at once, and
            # looks at nothing where it is 0.
            if payload[4] & _ZSTD_DECLARES:
                declared = frame_content_size(payload)
                if declared == 0 or declared > most:
                    return INVALID
            if usual < most:
                try:
                    return _written(decompress_frame(payload, max_output_size=usual), room, at)
                except ZstdError:
                    pass  # perhaps there was too little room
            return _written(decompress_frame(payload, max_output_size=most), room, at)
        except ZstdError:
            return INVALID

    return unpack


def _zstd_most(payload: memoryview, size: int) -> int:
    """
    Return how much a payload can give if it is just one zstd frame; 0 if it is not.

    The library would pass over what follows the frame.
    """
    if size < _ZSTD_LEAST:
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


def _gzip(payload: memoryview, budget: Budget, room: memoryview, at: int) -> int:
    """Read one gzip member."""
    decoder = zlib.decompressobj(_GZIP_WBITS)
    try:
        # Its ratio never meets a limit.
        out = decoder.decompress(payload, budget.output_bytes)
    except zlib.error:
        return INVALID
    return _written(out, room, at) if decoder.eof and not decoder.unused_data else INVALID
