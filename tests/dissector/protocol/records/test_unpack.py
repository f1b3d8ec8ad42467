"""Payloads decompressed in one call have the same output as in chunks."""

from __future__ import annotations

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records import compression
from dissector.protocol.records.compression import CODEC_IDS, compress, decompress
from dissector.protocol.records.limits import Budget, Limits
from dissector.protocol.records.unpack import unpack

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ALLOWED = 9 << 20


def by_chunks(number: int, payload: bytes, budget: Budget) -> bytes | None:
    """Return the output of the chunked reader; None for a problem."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "unpack", lambda *arguments: None)
        out, problem, _ = decompress(number, payload, budget)
    return None if problem else out


TEXT = st.binary(max_size=60).flatmap(lambda piece: st.integers(0, 90).map(lambda n: piece * n))


@st.composite
def payloads(draw: st.DrawFn) -> tuple[int, bytes]:
    """A codec and compressed bytes, possibly in two streams, possibly damaged."""
    number = draw(st.integers(0, 5))
    data = compress(number, draw(TEXT)) if number < 5 else b"x"
    damaged = bytearray(data * draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(0, 2))):
        if damaged:
            damaged[draw(st.integers(0, len(damaged) - 1))] ^= draw(st.integers(1, 255))
    return number, bytes(damaged[: draw(st.integers(0, len(damaged)))] or damaged)


@given(st.lists(payloads(), max_size=6), st.integers(1, 3000))
def test_the_same_as_chunk_by_chunk(these: list[tuple[int, bytes]], allowed: int) -> None:
    limits = Limits(max_decompressed_bytes=allowed, free_bytes=allowed)
    for number, data in these:
        expected = by_chunks(number, data, Budget(limits))
        assert unpack(number, memoryview(data), allowed) in (expected, None)
        ours, theirs = Budget(limits), Budget(limits)
        out, problem, _ = decompress(number, data, ours)
        assert (None if problem else out) == by_chunks(number, data, theirs)
        assert ours.output_bytes == theirs.output_bytes


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_large_and_very_small(codec: str) -> None:
    number = CODEC_IDS[codec]
    for content in (b"a", bytes(30 << 10), bytes(range(256)) * 100, bytes(8 << 20)):
        payload = memoryview(compress(number, content))
        is_one_block = codec != "snappy" or len(content) < 1 << 15
        assert unpack(number, payload, ALLOWED) == (content if is_one_block else None)
        assert unpack(number, payload, len(content)) == (content if is_one_block else None)
        assert unpack(number, payload, len(content) - 1) is None
        assert unpack(number, memoryview(bytes(payload) * 2), ALLOWED) is None
        assert unpack(number, payload[:-1], ALLOWED) is None
    assert unpack(number, memoryview(b""), ALLOWED) is None


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        ("snappy", snappy.compress(b"abc" * 900)),
        ("lz4", lz4.frame.compress(b"abc" * 900)),
        ("lz4", lz4.frame.compress(b"abc" * 900, content_checksum=True, block_checksum=True)),
        ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress(b"abc" * 900)),
        ("zstd", zstandard.compress(b"abc" * 60)),  # its size in one byte
    ],
)
def test_output_of_other_encoders(codec: str, payload: bytes) -> None:
    number = CODEC_IDS[codec]
    assert unpack(number, memoryview(payload), ALLOWED) == decompress(number, payload).data


def test_bombs_are_stopped_at_the_limit() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(50 << 20))
    assert unpack(ZSTD, memoryview(bomb), ALLOWED) is None
    declared = zstandard.ZstdCompressor().compress(bytes(50 << 20))
    assert unpack(ZSTD, memoryview(declared), ALLOWED) is None
    for number in (GZIP, SNAPPY, LZ4):
        assert unpack(number, memoryview(compress(number, bytes(50 << 20))), ALLOWED) is None


def test_declared_sizes_and_windows_are_not_trusted() -> None:
    payload = bytearray(zstandard.ZstdCompressor(write_content_size=False).compress(b"a" * 100))
    # Windows of 128 MiB are left to the chunked reader, which refuses wider ones.
    for window_log, is_left, is_refused in (
        (26, False, False),
        (27, True, False),
        (31, True, True),
    ):
        payload[5] = window_log - 10 << 3
        assert (unpack(ZSTD, memoryview(payload), ALLOWED) is None) is is_left
        assert bool(decompress(ZSTD, bytes(payload)).problem) is is_refused
    block = b"\xff\xff\x7f" + b"x" * 1000
    assert unpack(SNAPPY, memoryview(block), ALLOWED) is None


@given(st.integers(0, 10**9), st.integers(1, 255), st.booleans())
def test_lz4_frames_of_many_blocks(at: int, flip: int, cut: bool) -> None:
    """Damaged or truncated at any position."""
    whole = compress(LZ4, b"".join(b"%d" % number for number in range(40_000)))
    damaged = bytearray(whole)
    damaged[at % len(whole)] ^= flip
    payload = whole[: at % len(whole)] if cut else bytes(damaged)
    expected = by_chunks(LZ4, payload, Budget(Limits()))
    assert unpack(LZ4, memoryview(payload), 512 << 20) == expected
