"""Bytes are copied equally in Python and compiled, and nothing else changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.dissector.kernel import sample_kernels
from tests.kernel_modes import both

mode = both(sample_kernels)


@given(data=st.data(), source=st.binary(max_size=300))
def test_copies_bytes(data: st.DataObject, source: bytes) -> None:
    start = data.draw(st.integers(0, len(source)))
    length = data.draw(st.integers(0, len(source) - start))
    at = data.draw(st.integers(0, 40))
    target = np.full(400, 7, np.uint8)
    assert (
        sample_kernels.move(target, at, np.array(bytearray(source)), start, length) == at + length
    )
    expected = b"\7" * at + source[start : start + length] + b"\7" * (400 - at - length)
    assert target.tobytes() == expected
