"""Small payloads of gzip by a loop: what it takes is what zlib gives."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records.checksum import crc32_table
from dissector.engine.records.inline_gzip import USE_LIBRARY, decompress_gzip
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8

ROOM = 3000


@Kernel
def inflate(source: U8, at: int, end: int, crcs: I64, out: U8, to: int, limit: int) -> int:
    return decompress_gzip(source, at, end, crcs, out, to, limit)


def unpack(payload: bytes, room: int = ROOM) -> bytes | None:
    """Return what the loop gives, None if it does not take the payload."""
    out = memoryview(bytearray(ROOM + 10))
    source = memoryview(b"<" + payload + b">")
    stop = decompress_gzip(source, 1, len(payload) + 1, crc32_table().data, out, 3, room)
    assert not any(out[:3])
    assert not any(out[room:])
    return None if stop == USE_LIBRARY else bytes(out[3:stop])


def fixed(content: bytes, level: int = 9, flush: int | None = None) -> bytes:
    """Compress with the fixed codes; `flush`: how a first block is ended."""
    writer = zlib.compressobj(level, zlib.DEFLATED, 31, 8, zlib.Z_FIXED)
    half = len(content) // 2
    out = writer.compress(content[:half])
    if flush is not None:
        out += writer.flush(flush)
    return out + writer.compress(content[half:]) + writer.flush()


CONTENT = st.lists(
    st.binary(max_size=30)
    | st.builds(lambda a, n: a * n, st.binary(max_size=9), st.integers(0, 90))
).map(b"".join)
PAYLOADS = st.builds(
    fixed,
    CONTENT.filter(lambda content: len(content) < ROOM - 3),
    st.integers(0, 9),
    st.sampled_from([None, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH]),
)


@given(PAYLOADS)
def test_fixed_codes_and_stored_blocks_are_taken(payload: bytes) -> None:
    content = gzip.decompress(payload)
    assert unpack(payload) == content
    assert unpack(payload, 3 + len(content)) == content
    if content:
        assert unpack(payload, 2 + len(content)) is None


@given(PAYLOADS, st.data())
def test_damage_is_taken_only_if_zlib_takes_it(payload: bytes, data: st.DataObject) -> None:
    damaged = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    got = unpack(bytes(damaged))
    if got is not None:
        decoder = zlib.decompressobj(31)
        assert decoder.decompress(bytes(damaged)) == got
        assert decoder.eof
        assert not decoder.unused_data


@pytest.mark.parametrize("cut", range(60))
def test_what_is_cut_off_or_goes_on_is_not_taken(cut: int) -> None:
    payload = fixed(b"abc" * 9 + bytes(range(20)))
    assert unpack(payload[: max(0, len(payload) - 1 - cut)]) is None
    assert unpack(payload + payload[: cut + 1]) is None


@pytest.mark.parametrize("size", [0, 1, 3, 258, 259, 2900])
@pytest.mark.parametrize("distance", [1, 2, 3, 5, 300, 1400])
def test_repetitions_of_any_length_and_distance(size: int, distance: int) -> None:
    content = (np.arange(distance) * 37 % 251).astype(np.uint8).tobytes() * 3000
    assert unpack(fixed(content[:size])) == content[:size]


@pytest.mark.parametrize("symbol", [286, 287])
def test_lengths_and_distances_that_are_not_in_use(symbol: int) -> None:
    head, tail = bytes([31, 139, 8, 0, 0, 0, 0, 0, 0, 3]), bytes(8)
    code = f"{symbol - 280 + 192:08b}"
    bits = "11" + "0" + code[:] + "0" * 40
    body = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, 48, 8))
    assert unpack(head + body + tail) is None
    far = "11" + "0" + "00110000" + "0000001" + "11110" + "0" * 40
    body = bytes(int(far[at : at + 8][::-1], 2) for at in range(0, 48, 8))
    assert unpack(head + body + tail) is None


@given(PAYLOADS)
def test_compiled_it_gives_the_same(payload: bytes) -> None:
    out = np.zeros(ROOM, np.uint8)
    source = np.frombuffer(payload, np.uint8).copy()
    stop = inflate(source, 0, len(payload), crc32_table(), out, 3, ROOM)
    assert out[3:stop].tobytes() == unpack(payload)
