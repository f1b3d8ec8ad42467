"""CRCs of pieces."""

from __future__ import annotations

import zlib
from typing import Any

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

NOISE = np.random.default_rng(1).integers(0, 256, 70_000, dtype=np.uint8)


def _crc32c(source: Any, at: int, end: int, table: Any) -> int:
    return crc32c_of(source, at, end, table)


def _crc32(source: Any, at: int, end: int, table: Any) -> int:
    return crc_by_table(source, at, end, table)


@pytest.mark.parametrize("work", [1, 10**9])
def test_pieces_of_any_length(work: int) -> None:
    crc32c, crc32 = Kernel(_crc32c), Kernel(_crc32)
    for end in range(3, 100):
        piece = NOISE[3:end].tobytes()
        assert crc32c(NOISE, 3, end, crc32c_table(), work=work) == library(piece)
        assert crc32(NOISE, 3, end, crc32_table(), work=work) == zlib.crc32(piece)


@pytest.mark.parametrize("total_bytes", [100, 70_000])
def test_pieces_one_by_one(total_bytes: int) -> None:
    function = crc32c_function(total_bytes)
    for end in (0, 7, 100):
        assert function(NOISE[:end].data) == library(NOISE[:end].tobytes())
