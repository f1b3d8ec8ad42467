from __future__ import annotations

import gzip
import struct
import tracemalloc

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import EncodeError
from dissector.protocol.records.compression import (
    CODEC_IDS,
    CODECS,
    codec_name,
    compress,
    decompress,
)
from dissector.protocol.records.limits import Budget, Limits

REAL = [number for number in CODECS if number]
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
SIZES = (0, 1, 31, 32 * 1024, 64 * 1024 + 1, 3_000_000)
KIB = 1024


def sample(size: int) -> bytes:
    """Moderately compressible bytes."""
    return b"".join(
        struct.pack(">I", n * 2654435761 % 2**32) + b"same" for n in range(size // 8 + 1)
    )[:size]


def limited(size: int) -> Budget:
    return Budget(Limits(max_decompressed_bytes=size))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("number", CODECS)
@pytest.mark.parametrize("size", SIZES)
def test_round_trip(number: int, size: int) -> None:
    data = sample(size)
    assert decompress(number, compress(number, data)) == (data, None, "")


@pytest.mark.parametrize("number", REAL)
@pytest.mark.parametrize("magic", [0, 1])
def test_round_trip_of_old_magics(number: int, magic: int) -> None:
    data = sample(100_000)
    assert decompress(number, compress(number, data, magic=magic), magic=magic) == (data, None, "")


@pytest.mark.parametrize("number", REAL)
def test_several_streams_in_one(number: int) -> None:
    data = b"".join(compress(number, part) for part in (b"one ", b"", sample(70_000), b" end"))
    assert decompress(number, data) == (b"one " + sample(70_000) + b" end", None, "")


@given(number=st.sampled_from(sorted(CODECS)), data=st.binary(max_size=2000))
def test_any_bytes_round_trip(number: int, data: bytes) -> None:
    assert decompress(number, compress(number, data)).data == data


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("snappy", snappy.compress(b"hello")),
        ("snappy", XERIAL + struct.pack(">i", 7) + snappy.compress(b"hello")),
        ("lz4", lz4.frame.compress(b"hello", content_checksum=True, block_checksum=True)),
        ("lz4", lz4.frame.compress(b"hello", block_linked=True)),
        ("zstd", zstandard.ZstdCompressor().compress(b"hello")),
        ("zstd", zstandard.ZstdCompressor(write_checksum=True, level=19).compress(b"hello")),
        ("zstd", b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(b"hello")),
    ],
)
def test_streams_of_other_encoders(name: str, data: bytes) -> None:
    assert decompress(CODEC_IDS[name], data) == (b"hello", None, "")


def test_many_lz4_blocks_and_snappy_chunks() -> None:
    data = sample(8 << 20)
    for name in ("lz4", "snappy"):
        number = CODEC_IDS[name]
        assert decompress(number, compress(number, data)).data == data


def test_output_equals_that_of_java() -> None:
    assert compress(CODEC_IDS["snappy"], b"x" * 40_000).startswith(XERIAL)
    info = lz4.frame.get_frame_info(compress(CODEC_IDS["lz4"], b"x"))
    assert (info["block_size"], info["block_linked"], info["content_size"]) == (65536, False, 0)
    zstd = compress(CODEC_IDS["zstd"], b"x")
    assert zstandard.get_frame_parameters(zstd).content_size == zstandard.CONTENTSIZE_UNKNOWN


def test_only_magic_0_accepts_a_wrong_lz4_header_checksum() -> None:
    lz4_id = CODEC_IDS["lz4"]
    old = compress(lz4_id, b"hello", magic=0)
    assert old != compress(lz4_id, b"hello")
    assert decompress(lz4_id, old, magic=0) == (b"hello", None, "")
    assert decompress(lz4_id, old + old, magic=0) == (b"hellohello", None, "")
    assert decompress(lz4_id, compress(lz4_id, b"hello"), magic=0) == (b"hello", None, "")
    assert decompress(lz4_id, old, magic=1) == (b"", "lz4: headerChecksum_invalid", "")


@pytest.mark.parametrize("number", REAL)
def test_truncated_input_gives_its_data_and_a_problem(number: int) -> None:
    data = sample(300_000)
    packed = compress(number, data)
    for cut in (1, 2, 3, 10, len(packed) // 2, len(packed) - 1):
        out, problem, _ = decompress(number, packed[:cut])
        assert problem
        assert data.startswith(out)


def test_a_snappy_block_beyond_the_data_says_what_is_left() -> None:
    found = decompress(CODEC_IDS["snappy"], XERIAL + struct.pack(">i", 9) + b"abcd")
    assert found.problem == "snappy block of 9 bytes, 4 left"


def test_an_lz4_frame_of_only_a_header() -> None:
    header = compress(CODEC_IDS["lz4"], b"hello", magic=0)[:7]
    assert decompress(CODEC_IDS["lz4"], header, magic=0) == (b"", "lz4 frame ends early", "")


@pytest.mark.parametrize("number", REAL)
def test_bytes_behind_the_end_are_a_problem_but_the_data_is_kept(number: int) -> None:
    out, problem, _ = decompress(number, compress(number, b"hello") + b"junk")
    assert out == b"hello"
    assert problem


@pytest.mark.parametrize("number", REAL)
@given(data=st.binary(max_size=300))
def test_hostile_input_gives_problems_only(number: int, data: bytes) -> None:
    for hostile in (data, compress(number, b"some data")[:-4] + data, XERIAL + data):
        assert isinstance(decompress(number, hostile, limited(1 << 20)).data, bytes)


@pytest.mark.parametrize("number", REAL)
def test_empty_input_is_a_problem(number: int) -> None:
    assert decompress(number, b"").problem == f"no {codec_name(number)} data"


ZSTD_RUNS = (
    b"\x28\xb5\x2f\xfd\x00\x58"  # magic, no sizes, window of 2 MiB
    + (struct.pack("<I", 131072 << 3 | 2)[:3] + b"A") * 2000
    + (struct.pack("<I", 131072 << 3 | 3)[:3] + b"A")
)
"""A zstd frame of 8 kB whose blocks say "128 KiB of A": 250 MiB."""

BOMBS = {
    "gzip": gzip.compress(bytes(64 << 20)),
    "snappy": compress(CODEC_IDS["snappy"], bytes(64 << 20)),
    "lz4": compress(CODEC_IDS["lz4"], bytes(64 << 20)),
    "zstd": ZSTD_RUNS,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stops_at_the_limit(name: str) -> None:
    budget = limited(1 << 20)
    tracemalloc.start()
    out, problem, _ = decompress(CODEC_IDS[name], BOMBS[name], budget)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out == b""
    assert problem == f"{name} data of {len(BOMBS[name])} bytes gives more than {1 << 20}"
    assert budget.output_bytes == 0
    # The limit, and one piece more: a zstd window of 1 KiB gives at most 32 MiB.
    assert peak < (80 << 20 if name == "zstd" else 8 << 20)


def test_a_ratio_beyond_the_limit_stops() -> None:
    budget = Budget(Limits(max_ratio=100, free_bytes=1000))
    out, problem, _ = decompress(CODEC_IDS["gzip"], gzip.compress(bytes(1 << 20)), budget)
    assert out == b""
    assert problem is not None
    assert "gives more than" in problem


def test_a_valid_batch_of_equal_values_is_not_a_bomb() -> None:
    data = bytes(20 << 20)
    for number in REAL:
        assert decompress(number, compress(number, data)).data == data


@pytest.mark.parametrize("size", [0xFFFFFFFF, 1 << 20])
def test_a_false_snappy_size_allocates_no_memory(size: int) -> None:
    declared = bytes(size >> 7 * i & 0x7F | (0x80 if size >> 7 * (i + 1) else 0) for i in range(5))
    tracemalloc.start()
    out, problem, _ = decompress(CODEC_IDS["snappy"], declared.rstrip(b"\0") + b"x" * 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out == b""
    assert problem is not None
    assert f"declares a size of {size}" in problem
    assert peak < 100 * KIB


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (1, gzip.compress(b"")),
        (2, b"\x00\x00\x00\x01\x00"),
        (3, lz4.frame.compress(b"")),
        (4, zstandard.compress(b"")),
        (4, b"\x50\x2a\x4d\x18\x00\x00\x00\x00"),
    ],
)
def test_many_small_streams_take_linear_time(number: int, unit: bytes) -> None:
    data = (XERIAL if number == 2 else b"") + unit * 40_000
    assert decompress(number, data) == (b"", None, "")


def test_unknown_codec() -> None:
    assert codec_name(0x1D) == "codec 5"
    assert decompress(5, b"abc") == (b"", "codec 5 is unknown", "")
    with pytest.raises(EncodeError, match="codec 6 is unknown"):
        compress(6, b"")
