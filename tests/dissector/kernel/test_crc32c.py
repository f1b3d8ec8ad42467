"""CRC steps by tables and by the processor's instruction are equal."""

from __future__ import annotations

import numpy as np
import pytest
from crc32c import crc32c

from dissector.engine.records.checksum import crc32c_table
from dissector.kernel import Kernel
from tests.dissector.kernel import sample_kernels
from tests.kernel_modes import both

NOISE = np.random.default_rng(1).integers(0, 256, 256, dtype=np.uint8)

mode = both(sample_kernels)


@pytest.mark.parametrize("kernel", [sample_kernels.advance, sample_kernels.advance_by_table])
def test_the_crc_equals_that_of_the_library(kernel: Kernel) -> None:
    for at in range(16):
        for end in range(at, 240, 8):
            expected = crc32c(NOISE[at:end].tobytes())
            assert kernel(NOISE, at, end, crc32c_table()) == expected
