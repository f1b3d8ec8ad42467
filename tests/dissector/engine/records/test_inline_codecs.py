"""Small payloads decompressed by loops: what they take is what the libraries give."""

from __future__ import annotations

import random

import lz4.frame
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records.checksum import crc32_table
from dissector.engine.records.inline_codecs import (
    GZIP,
    LZ4,
    SMALL_PAYLOAD_BYTES,
    SNAPPY,
    USE_LIBRARY,
    ZSTD,
    decompress_inline,
)
from dissector.engine.records.native_libraries import library_addresses, no_libraries
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from dissector.protocol.records.compression import compress, decompress

ROOM = 3000


def unpack(number: int, payload: bytes, magic: int = 2, room: int = ROOM) -> bytes | None:
    """Return what the loop gives, None if it does not take the payload."""
    out = memoryview(bytearray(ROOM + 10))
    source = memoryview(b"<" + payload + b">")
    crcs = crc32_table().data
    none, end = no_libraries(), len(payload) + 1
    stop = decompress_inline(number, source, 1, end, magic > 0, crcs, out, 3, room, none)
    assert not any(out[:3])
    assert not any(out[room:])
    return None if stop == USE_LIBRARY else bytes(out[3:stop])


CONTENT = st.lists(
    st.binary(max_size=30)
    | st.builds(lambda a, n: a * n, st.binary(max_size=9), st.integers(0, 40))
).map(b"".join)


@st.composite
def damaged(
    draw: st.DrawFn,
    kinds: tuple[tuple[int, int], ...] = ((SNAPPY, 2), (LZ4, 2), (LZ4, 0), (GZIP, 2), (ZSTD, 2)),
) -> tuple[int, int, bytes]:
    """Codec, magic, and a payload, perhaps with damage or another one behind it."""
    number, magic = draw(st.sampled_from(kinds))
    payload = compress(number, draw(CONTENT), magic=magic)
    if draw(st.booleans()):
        payload += compress(number, draw(CONTENT), magic=magic)
    data = bytearray(payload)
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    return number, magic, bytes(data[: draw(st.integers(0, len(data)))] or data)


@given(damaged())
def test_what_is_taken_is_what_the_libraries_give(given: tuple[int, int, bytes]) -> None:
    number, magic, payload = given
    got = unpack(number, payload, magic)
    if got is not None:
        assert (got, None, "") == decompress(number, payload, magic=magic)


@pytest.mark.parametrize(("number", "magic"), [(SNAPPY, 2), (LZ4, 2), (LZ4, 0)])
@pytest.mark.parametrize(
    "content",
    [b"a", b"abc" * 20, bytes(1000), bytes(range(256)) * 4, b"x" * 300 + bytes(range(200))],
)
def test_what_producers_write_is_taken(number: int, magic: int, content: bytes) -> None:
    payload = compress(number, content, magic=magic)
    assert unpack(number, payload, magic) == content
    assert unpack(number, payload, magic, room=3 + len(content)) == content
    assert unpack(number, payload, magic, room=2 + len(content)) is None


def test_a_raw_block_and_a_declared_size_are_taken() -> None:
    framed = compress(SNAPPY, b"raw" * 9)
    assert unpack(SNAPPY, framed[20:]) == b"raw" * 9
    sized = lz4.frame.compress(b"sized" * 9)
    assert unpack(LZ4, sized) == b"sized" * 9


@Kernel
def unpack_by_library(
    codec: int, source: U8, end: int, is_checked: int, crcs: I64, out: U8, room: int, shown: I64
) -> int:
    return decompress_inline(codec, source, 1, end, is_checked, crcs, out, 3, room, shown)


def by_library(
    payload: bytes, magic: int = 2, room: int = 1 << 20, codec: int = LZ4
) -> bytes | None:
    """Return what the loop gives that calls the library of lz4 or zstd."""
    out = np.zeros((1 << 20) + 10, np.uint8)
    source = np.frombuffer(b"<" + payload + b">", np.uint8)
    end, shown = len(payload) + 1, library_addresses(lz4=True, zstd=True)
    if not (shown.all() and unpack_by_library.is_compiled):
        pytest.skip("the libraries of lz4 and zstd do not show their functions here")
    stop = unpack_by_library(codec, source, end, int(magic > 0), crc32_table(), out, room, shown)
    assert not out[:3].any()
    assert not out[room:].any()
    return None if stop == USE_LIBRARY else out[3:stop].tobytes()


@given(damaged(((LZ4, 2), (LZ4, 0), (ZSTD, 2))))
def test_what_the_libraries_take_within_the_loop(given: tuple[int, int, bytes]) -> None:
    number, magic, payload = given
    got = by_library(payload, magic, codec=number)
    if got is not None:
        assert (got, None, "") == decompress(number, payload, magic=magic)


LARGE = b"".join(b"%d some words" % n for n in range(20_000)) + random.Random(3).randbytes(99_000)


@pytest.mark.parametrize("block_size", [0, 4, 5])
@pytest.mark.parametrize("linked", [True, False])
def test_frames_of_many_blocks(block_size: int, linked: bool) -> None:
    payload = lz4.frame.compress(LARGE, block_size=block_size, block_linked=linked)
    alone = not linked
    assert by_library(payload) == (LARGE if alone else None)
    assert by_library(payload, room=3 + len(LARGE)) == (LARGE if alone else None)
    assert by_library(payload, room=2 + len(LARGE)) is None
    assert by_library(payload[:-1]) is None
    assert by_library(payload[:-4]) is None
    assert by_library(payload + b"\0") is None
    assert by_library(payload[:-4] + payload[-4:] * 2) is None


@given(st.integers(15, 40_000), st.integers(1, 255))
def test_frames_of_many_blocks_with_a_wrong_byte(at: int, more: int) -> None:
    payload = bytearray(lz4.frame.compress(LARGE, block_linked=False))
    payload[at * len(payload) // 40_001] ^= more
    got = by_library(bytes(payload))
    if got is not None:
        assert (got, None, "") == decompress(LZ4, bytes(payload))


def test_what_is_not_small_or_has_checksums_is_not_taken() -> None:
    assert unpack(LZ4, lz4.frame.compress(b"abc", content_checksum=True)) is None
    assert unpack(LZ4, lz4.frame.compress(b"abc", block_checksum=True)) is None
    assert unpack(SNAPPY, compress(SNAPPY, bytes(SMALL_PAYLOAD_BYTES * 30))) is None
    assert unpack(GZIP, compress(GZIP, b"abc")) == b"abc"
    assert unpack(GZIP, compress(GZIP, str(3**900).encode())) is None  # its codes are its own
    assert unpack(ZSTD, compress(ZSTD, b"abc")) is None
    assert unpack(LZ4, b"") is None
