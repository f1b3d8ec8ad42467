"""CRCs of many pieces at once."""

from __future__ import annotations

import zlib

import numpy as np
from crc32c import crc32c as library

from dissector.engine import checksum
from dissector.engine.checksum import SMALL_BYTES, crc32_table, crc32c
from tests.dissector.engine.modes import both

mode = both(checksum)

PIECES = 500


def test_it_is_that_of_the_library() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 70_000, dtype=np.uint8)
    data, held = noise[:30_000], noise[30_000:]
    start = np.concatenate([np.arange(PIECES // 2) * 7, 30_000 + np.arange(PIECES // 2) * 11])
    for longest in (SMALL_BYTES, 4 * SMALL_BYTES):
        length = np.arange(PIECES) * longest // PIECES
        expected = [library(noise[s : s + n].tobytes()) for s, n in zip(start, length, strict=True)]
        assert crc32c(data, held, start, start + length).tolist() == expected


def test_the_other_table_is_that_of_zip_files() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 100, dtype=np.uint8).data
    for end in range(100):
        assert checksum.checksum(noise, 3, end, crc32_table().data) == zlib.crc32(noise[3:end])
