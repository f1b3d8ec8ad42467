"""Sequences of blocks, also of damaged ones, stay inside of their bytes."""

from __future__ import annotations

from random import Random

import lz4.block
import numpy as np
import pytest

from dissector.redaction.compression import sequences
from dissector.redaction.compression.sequence_arrays import LZ4, SNAPPY
from dissector.redaction.compression.sequences import (
    fitted,
    raw_size,
    read_block,
    space_for,
    write_block,
)
from tests.kernel_modes import both

RAW = b"a text, " * 9 + bytes(range(40)) + b"x" * 700

mode = both(sequences)


def block_of(raw: bytes) -> bytes:
    return bytes(lz4.block.compress(raw, store_size=False))


def test_the_size_of_a_block() -> None:
    block = block_of(RAW)
    assert raw_size(np.frombuffer(block, np.uint8), space_for(len(block))) == len(RAW)


@pytest.mark.parametrize("block", [b"\xf0", b"\xf0\xff\xff", b"\x00\x01", b"\x0f\x01\x00\xff"])
def test_blocks_that_end_early(block: bytes) -> None:
    assert raw_size(np.frombuffer(block, np.uint8), space_for(len(block))) == -1


@pytest.mark.parametrize("seed", range(40))
def test_damaged_blocks_are_read_and_written_inside_of_their_bytes(seed: int) -> None:
    chance = Random(seed)
    damaged = bytearray(block_of(RAW))
    for _ in range(chance.randrange(1, 4)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    block, raw = np.frombuffer(bytes(damaged), np.uint8), np.frombuffer(RAW, np.uint8)
    for codec in (LZ4, SNAPPY):
        space = space_for(len(block))
        cost = read_block(codec, block, raw, space)
        out = np.zeros(max(cost, 9), np.uint8)
        assert write_block(codec, block, raw, space, 0, out) in (0, -1)


@pytest.mark.parametrize("codec", [LZ4, SNAPPY])
def test_blocks_grow_byte_by_byte(codec: int) -> None:
    least = next(size for size in range(len(RAW)) if fitted(codec, [RAW], size) is not None)
    found = [fitted(codec, [RAW], size) for size in range(least, len(RAW) + 4)]
    sizes = [least + at for at, each in enumerate(found) if each is not None]
    assert [len(each) for each in found if each is not None] == sizes
    assert len(sizes) > len(found) * 0.9


def test_nothing_fits_into_no_block() -> None:
    assert fitted(LZ4, [b""], 1) is None
    assert fitted(SNAPPY, [RAW], 3) is None
