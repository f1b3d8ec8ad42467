"""Payloads decompressed in one call."""

from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.compression import CODEC_IDS, compress, decompress
from dissector.protocol.records.limits import Budget, Limits
from dissector.protocol.records.unpack import INVALID, NO_ROOM, InlineDecompressor

ROOM = memoryview(bytearray(9 << 20))


def unpack(unpacker: InlineDecompressor, number: int, data: bytes, budget: Budget) -> bytes | int:
    """Return the output, or why there is none."""
    end = unpacker.decompress_into(number, memoryview(data), budget, ROOM, 5)
    return end if end < 0 else bytes(ROOM[5:end])


TEXT = st.binary(max_size=60).flatmap(lambda piece: st.integers(0, 90).map(lambda n: piece * n))


@st.composite
def payloads(draw: st.DrawFn) -> tuple[int, bytes]:
    """A codec and what it made of some bytes, perhaps twice, perhaps with damage."""
    number = draw(st.integers(0, 5))
    data = compress(number, draw(TEXT)) if number < 5 else b"x"
    damaged = bytearray(data * draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(0, 2))):
        if damaged:
            damaged[draw(st.integers(0, len(damaged) - 1))] ^= draw(st.integers(1, 255))
    return number, bytes(damaged[: draw(st.integers(0, len(damaged)))] or damaged)


@given(st.lists(payloads(), max_size=6), st.integers(1, 3000))
def test_it_is_what_decompress_gives(these: list[tuple[int, bytes]], most: int) -> None:
    limits = Limits(max_decompressed_bytes=most, free_bytes=most)
    unpacker = InlineDecompressor()
    for number, data in these:
        ours, theirs = Budget(limits), Budget(limits)
        out = unpack(unpacker, number, data, ours)
        expected = decompress(number, data, theirs)
        assert out == (INVALID if expected.problem else expected.data)
        assert ours.output_bytes == theirs.output_bytes


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_large_and_very_small(codec: str) -> None:
    number = CODEC_IDS[codec]
    for content in (b"", b"a", bytes(8 << 20), bytes(range(256)) * 4096):
        payload = compress(number, content)
        assert unpack(InlineDecompressor(), number, payload, Budget(Limits())) == content
    payload = compress(number, bytes(9 << 20))
    assert unpack(InlineDecompressor(), number, payload, Budget(Limits())) == NO_ROOM


def test_bombs_are_stopped_at_the_limit() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(50 << 20))
    assert unpack(InlineDecompressor(), 4, bomb, Budget(Limits())) == INVALID
    declared = zstandard.ZstdCompressor().compress(bytes(50 << 20))
    assert unpack(InlineDecompressor(), 4, declared, Budget(Limits())) == INVALID


def test_declared_sizes_and_windows_are_not_believed() -> None:
    payload = bytearray(zstandard.ZstdCompressor(write_content_size=False).compress(b"a" * 100))
    payload[5] = 31 << 3  # a window of 2 GiB
    assert unpack(InlineDecompressor(), 4, bytes(payload), Budget(Limits())) == INVALID
    assert decompress(4, bytes(payload)).problem


@given(st.integers(0, 10**9), st.integers(1, 255), st.booleans())
def test_lz4_frames_of_many_blocks_are_right_to_the_last(at: int, flip: int, cut: bool) -> None:
    """Wherever they are damaged or end."""
    whole = compress(3, b"".join(b"%d" % number for number in range(40_000)))
    damaged = bytearray(whole)
    damaged[at % len(whole)] ^= flip
    payload = whole[: at % len(whole)] if cut else bytes(damaged)
    expected = decompress(3, payload, Budget(Limits()))
    out = unpack(InlineDecompressor(), 3, payload, Budget(Limits()))
    assert out == (INVALID if expected.problem else expected.data)
