"""
The codecs of record batches and message sets.

`unpack` decompresses ordinary payloads. For all others each codec is a generator of chunks of
bounded size, so that output is counted while it is produced and a declared length is never trusted.
Libraries are imported at first use.

Source: KIP-57 (lz4 frames), KIP-110 (zstd), https://kafka.apache.org/documentation/#recordbatch
(codec bits); xerial's snappy framing as in snappy-java, SnappyCodec and SnappyOutputStream.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dissector.errors import DecodeError, EncodeError, ProblemKind
from dissector.protocol.records.limits import DEFAULT, Budget
from dissector.protocol.records.lz4_header import (
    LONGEST_HEADER,
    corrected_header,
    with_legacy_checksum,
)
from dissector.protocol.records.unpack import GZIP_WBITS, XERIAL_MAGIC, snappy_size, unpack

CODEC_MASK = 0x07
_MAX_CHUNK_BYTES = 1 << 20
"""Maximum size of chunks from decoders with a limit."""
_FIRST_WINDOW = 256
_LAST_WINDOW = 1 << 16
_ZSTD_MAX_RATIO = 32768
"""A zstd block of one repeated byte is 4 bytes for 128 KiB: the highest possible ratio."""
_XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
_XERIAL_BLOCK = 32 * 1024


class Decompressed(NamedTuple):
    """
    The result of decompression.

    Attributes:
        data: The output, up to the error in the input; empty when a limit was exceeded.
        problem: The error, or None.
        kind: `limit` if a limit was exceeded.
    """

    data: bytes
    problem: str | None
    kind: ProblemKind = ""


class CompressionCodec(NamedTuple):
    """
    One row of the table of codecs.

    Attributes:
        name: As in Kafka's `compression.type`.
        decompress_chunks: (input, output allowed, magic) -> chunks of output; raises `DecodeError`.
        compress: (input, magic) -> the output of Kafka's Java client, except for the level.
    """

    name: str
    decompress_chunks: Callable[[memoryview, int, int], Iterator[bytes]]
    compress: Callable[[bytes, int], bytes]


def _identity_chunks(data: memoryview, allowed: int, magic: int) -> Iterator[bytes]:
    yield bytes(data)


def _identity(data: bytes, magic: int) -> bytes:
    return data


def _gzip_chunks(data: memoryview, allowed: int, magic: int) -> Iterator[bytes]:
    # The decoder returns its unused input as a copy, so it gets its input in windows that grow with
    # each member: many small members in one field then still cost linear time.
    at = 0
    while at < len(data):
        decoder = zlib.decompressobj(GZIP_WBITS)
        window = _FIRST_WINDOW
        while not decoder.eof:
            chunk: bytes | memoryview = data[at : at + window]
            if not chunk:
                raise DecodeError("gzip data ends early", position=at)
            at += len(chunk)
            window = min(window * 2, _LAST_WINDOW)
            while chunk and not decoder.eof:
                try:
                    yield decoder.decompress(chunk, _MAX_CHUNK_BYTES)
                except zlib.error as error:
                    message = str(error).rpartition(": ")[2]
                    raise DecodeError(f"gzip: {message}", position=at) from None
                chunk = decoder.unconsumed_tail
        at -= len(decoder.unused_data)


def _gzip_compress(data: bytes, magic: int) -> bytes:
    encoder = zlib.compressobj(wbits=GZIP_WBITS)
    return encoder.compress(data) + encoder.flush()


def _snappy_chunks(data: memoryview, allowed: int, magic: int) -> Iterator[bytes]:
    import snappy

    try:
        for block in _snappy_blocks(data):
            size = snappy_size(block)
            if size < 0:
                raise DecodeError("snappy block has no size")
            # The longest copy is 64 bytes for 3: a block can't hold more.
            if size > allowed or size * 3 > len(block) * 64:
                raise DecodeError(f"snappy block of {len(block)} bytes declares a size of {size}")
            yield snappy.decompress(bytes(block))
    except snappy.UncompressError:
        raise DecodeError("snappy: invalid block") from None


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of xerial's framing; without framing all data is one block."""
    if data[:8] != XERIAL_MAGIC:
        yield data
        return
    at = 0
    while at < len(data):
        if data[at : at + 8] == XERIAL_MAGIC:  # also where two streams were put together
            at += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size > len(data) - at:
            remaining = max(len(data) - at, 0)
            raise DecodeError(f"snappy block of {size} bytes, {remaining} left", position=at)
        yield data[at : at + size]
        at += size
    if at > len(data):
        raise DecodeError("snappy header ends early", position=len(data))


def _snappy_compress(data: bytes, magic: int) -> bytes:
    import snappy

    out = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = snappy.compress(data[at : at + _XERIAL_BLOCK])
        out += (len(block).to_bytes(4, "big"), block)
    return b"".join(out)


def _lz4_chunks(data: memoryview, allowed: int, magic: int) -> Iterator[bytes]:
    import lz4.frame

    at = 0
    more = False
    ended = True
    context = lz4.frame.create_decompression_context()
    while at < len(data) or more:
        try:
            if ended and magic == 0:
                header, used = corrected_header(data[at : at + LONGEST_HEADER])
                lz4.frame.decompress_chunk(context, header)
                at += used
            out, used, ended = lz4.frame.decompress_chunk(
                context, data[at:], max_length=_MAX_CHUNK_BYTES
            )
        except RuntimeError as error:
            raise DecodeError(f"lz4: {str(error).rpartition('ERROR_')[2]}", position=at) from None
        at += used
        more = len(out) == _MAX_CHUNK_BYTES and not ended
        yield out
        if not (used or out or ended):
            break
    if not ended:
        raise DecodeError("lz4 frame ends early", position=at)


def _lz4_compress(data: bytes, magic: int) -> bytes:
    import lz4.frame

    frame: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return with_legacy_checksum(frame) if magic == 0 else frame


def _zstd_chunks(data: memoryview, allowed: int, magic: int) -> Iterator[bytes]:
    import zstandard

    # This decoder takes no limit, so the input window bounds a chunk: its largest possible output
    # is not more than the total that is allowed (or 32 MiB). It grows as gzip's does.
    widest = max(1024, min(allowed // _ZSTD_MAX_RATIO, _LAST_WINDOW))
    source = zstandard.ZstdDecompressor()
    at = 0
    while at < len(data):
        decoder = source.decompressobj()
        window = _FIRST_WINDOW
        while not decoder.eof:
            chunk = data[at : at + window]
            if not chunk:
                raise DecodeError("zstd frame ends early", position=at)
            at += len(chunk)
            window = min(window * 2, widest)
            try:
                yield decoder.decompress(chunk)
            except zstandard.ZstdError as error:
                raise DecodeError(
                    str(error).replace(" decompressor error", ""), position=at
                ) from None
        at -= len(decoder.unused_data)


def _zstd_compress(data: bytes, magic: int) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


CODECS: dict[int, CompressionCodec] = {
    0: CompressionCodec("none", _identity_chunks, _identity),
    1: CompressionCodec("gzip", _gzip_chunks, _gzip_compress),
    2: CompressionCodec("snappy", _snappy_chunks, _snappy_compress),
    3: CompressionCodec("lz4", _lz4_chunks, _lz4_compress),
    4: CompressionCodec("zstd", _zstd_chunks, _zstd_compress),
}
"""Every codec by its number in the low three bits of the attributes."""

CODEC_IDS = {codec.name: number for number, codec in CODECS.items()}


def codec_name(attributes: int) -> str:
    """Return the name of the codec in attributes: `codec 5` for an unknown number."""
    number = attributes & CODEC_MASK
    codec = CODECS.get(number)
    return codec.name if codec else f"codec {number}"


def decompress(
    number: int, data: bytes | memoryview, budget: Budget | None = None, *, magic: int = 2
) -> Decompressed:
    """
    Decompress the payload of a batch, or the value of a wrapper message.

    Args:
        number: The codec's number.
        data: The compressed bytes: any number of gzip members, lz4 frames, zstd frames, or snappy,
            framed or raw.
        budget: The remaining limits; the output is deducted.
        magic: Of the batch: with 0 the header checksum of lz4 is not checked.
    """
    codec = CODECS.get(number)
    if codec is None:
        return Decompressed(b"", f"codec {number} is unknown")
    if not data and number:
        return Decompressed(b"", f"no {codec.name} data")
    budget = budget or Budget(DEFAULT)
    allowed = budget.output_for(len(data))
    whole = unpack(number, memoryview(data), allowed)
    if whole is not None:
        budget.output_bytes -= len(whole)
        return Decompressed(whole, None)
    chunks: list[bytes] = []
    size = 0
    problem = None
    try:
        for chunk in codec.decompress_chunks(memoryview(data), allowed, magic):
            size += len(chunk)
            if size > allowed:
                budget.output_bytes -= allowed
                message = f"{codec.name} data of {len(data)} bytes gives more than {allowed}"
                return Decompressed(b"", message, "limit")
            chunks.append(chunk)
    except DecodeError as error:
        problem = error.what
    budget.output_bytes -= size
    return Decompressed(chunks[0] if len(chunks) == 1 else b"".join(chunks), problem)


def compress(number: int, data: bytes, *, magic: int = 2) -> bytes:
    """
    Compress as Kafka's Java client does: snappy framed, lz4 in blocks of 64 KiB.

    Raises:
        EncodeError: The codec does not exist.
    """
    codec = CODECS.get(number)
    if codec is None:
        raise EncodeError(f"codec {number} is unknown", "attributes")
    return codec.compress(data, magic)
