"""Payloads of zstd within a loop: which are taken, and that they are what Python reads."""

from __future__ import annotations

from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records.inline_codecs import ZSTD
from dissector.protocol.records.compression import decompress
from tests.dissector.engine.records.test_inline_codecs import LARGE, by_library


def zstd(content: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(content)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_content_size": False},
        {"write_checksum": True},
        {"level": 19, "write_content_size": False, "write_checksum": True},
    ],
)
@pytest.mark.parametrize("content", [b"a", bytes(300_000), LARGE], ids=["one", "zeros", "words"])
def test_frames_of_zstd(options: dict[str, Any], content: bytes) -> None:
    payload = zstd(content, **options)
    assert by_library(payload, codec=ZSTD) == content
    assert by_library(payload, codec=ZSTD, room=3 + len(content)) == content
    assert by_library(payload, codec=ZSTD, room=2 + len(content)) is None
    for odd in (payload[:-1], payload + b"\0", payload * 2, payload[:4], b"", payload[1:]):
        assert by_library(odd, codec=ZSTD) is None


def test_frames_of_zstd_that_are_left_to_python() -> None:
    assert by_library(zstd(b""), codec=ZSTD) is None
    wide = zstandard.ZstdCompressionParameters(window_log=24, write_content_size=False)
    with_more = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    payload = with_more.compress(LARGE) + with_more.flush()
    assert by_library(payload, codec=ZSTD) is None
    assert decompress(ZSTD, payload) == (LARGE, None, "")
    words = zstandard.ZstdCompressionDict(LARGE[:5000], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    assert by_library(zstd(LARGE, dict_data=words), codec=ZSTD) is None


@given(st.integers(0, 40_000), st.integers(1, 255), st.booleans())
def test_frames_of_zstd_with_a_wrong_byte(at: int, more: int, summed: bool) -> None:
    payload = bytearray(zstd(LARGE[-120_000:], write_checksum=summed))
    payload[at * len(payload) // 40_001] ^= more
    got = by_library(bytes(payload), codec=ZSTD)
    if got is not None:
        assert (got, None, "") == decompress(ZSTD, bytes(payload))
