from __future__ import annotations

import lz4.frame
import pytest

from dissector.protocol.records.lz4_header import (
    corrected_header,
    with_legacy_checksum,
    xxh32_short,
)


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32_gives_the_published_values(data: bytes, value: int) -> None:
    assert xxh32_short(data) == value


@pytest.mark.parametrize("store_size", [False, True])
def test_corrected_header_equals_that_of_the_library(store_size: bool) -> None:
    frame = lz4.frame.compress(b"some bytes", store_size=store_size)
    size = 15 if store_size else 7
    wrong = frame[: size - 1] + bytes((frame[size - 1] ^ 0xFF,)) + frame[size:]
    assert corrected_header(wrong) == (frame[:size], size)


def test_header_of_maximum_length() -> None:
    flags = bytes((0x69, 0x40))  # version 1, independent blocks, content size, dictionary id
    frame = b"\x04\x22\x4d\x18" + flags + bytes(12) + b"\xff"
    header, size = corrected_header(frame)
    assert (len(header), size) == (19, 19)


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18\x68\x40", b"no frame at all"])
def test_other_bytes_are_not_corrected(data: bytes) -> None:
    assert corrected_header(data) == (b"", 0)


def test_broken_checksum_is_refused_and_can_be_corrected() -> None:
    frame = lz4.frame.compress(b"some bytes", store_size=False)
    old = with_legacy_checksum(frame)
    assert old[:6] + old[7:] == frame[:6] + frame[7:]
    with pytest.raises(RuntimeError, match="headerChecksum"):
        lz4.frame.decompress(old)
    header, size = corrected_header(old)
    assert lz4.frame.decompress(header + old[size:]) == b"some bytes"
