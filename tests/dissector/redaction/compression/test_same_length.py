"""Replacements are compressed to exactly the length of the original."""

from __future__ import annotations

import gzip
from random import Random

import pytest

from dissector.protocol.records.compression import CODEC_IDS, compress, decompress
from dissector.redaction.compression import same_length as same_length_module
from dissector.redaction.compression import sequences
from dissector.redaction.compression.padded import zstd_of_length
from dissector.redaction.compression.same_length import SameLength, same_length
from tests.corpus import fast_and_long
from tests.kernel_modes import both

CODECS = ("gzip", "snappy", "lz4", "zstd")

mode = both(sequences)


def contents(chance: Random, words: int) -> tuple[bytes, bytes]:
    """Return contents of records and their replacements."""
    old, new = bytearray(), bytearray()
    for number in range(words):
        size = chance.randrange(200)
        text = bytes(chance.choices(range(97, 123), k=size))
        word = text if chance.random() < 0.7 else b"value-%d " % number * chance.randrange(1, 9)
        mark = bytes(chance.choices(range(97, 123), k=min(8, len(word))))
        old += b"\x10\0\0" + word
        new += b"\x10\0\0" + mark + b"x" * (len(word) - len(mark))
    return bytes(old), bytes(new)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", fast_and_long(range(25), range(25, 300)))
def test_the_length_is_the_same(codec: str, seed: int) -> None:
    chance = Random(seed)
    old, new = contents(chance, chance.randrange(3, 60))
    if seed % 10 == 0:
        old, new = old * 30, new * 30  # more than a block of lz4 and snappy
    number = CODEC_IDS[codec]
    compressed = compress(number, old)
    found = same_length(number, new, compressed)
    if found is None:
        # Only if even the records without marks are needed.
        assert len(compress(number, new)) > len(compressed) - 16
        return
    assert len(found) == len(compressed)
    assert decompress(number, found).data == new


@pytest.mark.parametrize("missing", range(20))
def test_zstd_is_padded_by_any_number_of_bytes(missing: int) -> None:
    raw = b"x" * 5000
    least = compress(CODEC_IDS["zstd"], raw)
    shortest = next(size for size in range(len(least) + 1) if zstd_of_length(raw, bytes(size)))
    found = zstd_of_length(raw, bytes(shortest + missing))
    assert found is not None
    assert len(found) == shortest + missing
    assert decompress(CODEC_IDS["zstd"], found).data == raw


@pytest.mark.parametrize("missing", [1, 2, 50])
def test_gzip_is_padded_by_a_comment(missing: int) -> None:
    raw = b"x" * 5000
    found = same_length(CODEC_IDS["gzip"], raw, bytes(len(gzip.compress(raw, 9)) + missing))
    assert found is not None
    assert gzip.decompress(found) == raw


@pytest.mark.parametrize("codec", CODECS)
def test_too_large_contents_are_refused(codec: str) -> None:
    chance = Random(1)
    noise = bytes(chance.randrange(256) for _ in range(1000))
    number = CODEC_IDS[codec]
    assert same_length(number, noise, compress(number, bytes(1000))) is None


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(20))
def test_damaged_data_is_refused(codec: str, seed: int) -> None:
    chance = Random(seed)
    old, new = contents(chance, 9)
    number = CODEC_IDS[codec]
    damaged = bytearray(compress(number, old))
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    found = same_length(number, new, bytes(damaged[: chance.randrange(1, len(damaged))]))
    assert found is None or decompress(number, found).data == new


@pytest.mark.parametrize("codec", CODECS)
def test_what_comes_again_is_compressed_once(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = contents(Random(3), 9)
    number, found, calls = CODEC_IDS[codec], SameLength(), []
    compressed = compress(number, old)

    def counting(*case: object) -> bytes | None:
        calls.append(case)
        return same_length(*case)  # type: ignore[arg-type]

    monkeypatch.setattr(same_length_module, "same_length", counting)
    monkeypatch.setattr(same_length_module, "_KEPT_BYTES", 3 * (len(new) + 2 * len(compressed)))
    assert {found.find(number, new, compressed) for _ in range(3)} == {
        same_length(number, new, compressed)
    }
    assert len(calls) == 1
    for at in range(3):
        found.find(number, new, compressed + bytes(at + 1))
    found.find(number, new, compressed)
    assert len(calls) == 5
