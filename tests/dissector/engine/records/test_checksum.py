"""CRCs of slices."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from crc32c import crc32c as library

from dissector.engine.records.checksum import (
    crc32_table,
    crc32c_function,
    crc32c_of,
    crc32c_table,
    crc_by_table,
)
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from tests.kernel_modes import MODES, running

NOISE = np.random.default_rng(1).integers(0, 256, 70_000, dtype=np.uint8)


@Kernel
def crc32c(source: U8, at: int, end: int, table: I64) -> int:
    return crc32c_of(source, at, end, table)


@Kernel
def crc32(source: U8, at: int, end: int, table: I64) -> int:
    return crc_by_table(source, at, end, table)


@pytest.mark.parametrize("mode", MODES)
def test_slices_of_any_length(mode: str) -> None:
    with running(mode, crc32c, crc32):
        for end in range(3, 100):
            piece = NOISE[3:end].tobytes()
            assert crc32c(NOISE, 3, end, crc32c_table()) == library(piece)
            assert crc32(NOISE, 3, end, crc32_table()) == zlib.crc32(piece)


@pytest.mark.parametrize("total_bytes", [100, 70_000])
def test_consecutive_slices(total_bytes: int) -> None:
    function = crc32c_function(total_bytes)
    for end in (0, 7, 100):
        assert function(NOISE[:end].data) == library(NOISE[:end].tobytes())
