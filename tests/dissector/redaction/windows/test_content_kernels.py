"""Marks of many contents equal those of single ones."""

from __future__ import annotations

import numpy as np

from dissector.engine.records.checksum import crc32c_table
from dissector.engine.tables.exchange_table import Ints
from dissector.kernel.keccak import LANES, RATE
from dissector.protocol.records.batch import with_crc
from dissector.redaction.pseudonyms.distinct_contents import Bytes
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from dissector.redaction.windows import content_kernels
from dissector.redaction.windows.content_kernels import (
    Sponge,
    mark_contents,
    shorten_marks,
    write_crcs,
)
from tests.kernel_modes import both

NAMES = Pseudonyms(b"a key of the test")
SIZES = (0, 1, 7, 8, 9, 93, 94, 95, 96, 135, 136, 137, 230, 231, 366, 367, 1000)
"""Around the ends of blocks, behind a head of 41 bytes."""

mode = both(content_kernels)


def test_marks_are_those_of_single_contents() -> None:
    noise = np.random.default_rng(1).integers(0, 256, sum(SIZES), dtype=np.uint8)
    length = np.array(SIZES)
    at = np.cumsum(length) - length
    contents = _split(noise, at, length)
    half = int(at[len(SIZES) // 2])
    data, arena = noise[:half].copy(), noise[half:].copy()
    head = np.frombuffer(NAMES.content_head, np.uint8)
    sponge = Sponge._make((head, np.zeros(LANES, np.int64), np.zeros(RATE, np.uint8)))
    mark_contents(data, arena, at, length, sponge)
    expected = [NAMES.content(each) for each in contents]
    marked = np.concatenate((data, arena))
    assert _split(marked, at, length) == expected
    for mark_bytes in (4, 2, 0):
        shorten_marks(marked, at, length, mark_bytes)
        expected = [NAMES.content(each, mark_bytes) for each in contents]
        assert _split(marked, at, length) == expected


def test_checksums_are_those_of_single_batches() -> None:
    noise = np.random.default_rng(2).integers(0, 256, 300, dtype=np.uint8)
    start, end = np.array([0, 61, 200]), np.array([61, 190, 300])
    expected = [with_crc(noise[a:b].tobytes()) for a, b in zip(start, end, strict=True)]
    write_crcs(noise, start, end, crc32c_table())
    assert _split(noise, start, end - start) == expected


def _split(data: Bytes, at: Ints, length: Ints) -> list[bytes]:
    return [data[a : a + b].tobytes() for a, b in zip(at.tolist(), length.tolist(), strict=True)]
