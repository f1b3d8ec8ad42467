"""Copied bytes are the same in Python and compiled, and nothing beside them changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.kernel import Kernel
from dissector.kernel.memcpy import copy_bytes


def _move(target: Any, at: int, source: Any, start: int, length: int) -> int:
    copy_bytes(target, at, source, start, length)
    return at + length


KERNEL = Kernel(_move)


@pytest.mark.parametrize("work", [1, 10**9])
@given(data=st.data(), source=st.binary(max_size=300))
def test_copies_bytes(work: int, data: st.DataObject, source: bytes) -> None:
    start = data.draw(st.integers(0, len(source)))
    length = data.draw(st.integers(0, len(source) - start))
    at = data.draw(st.integers(0, 40))
    target = np.full(400, 7, np.uint8)
    kernel = Kernel(_move) if work == 1 else KERNEL
    assert kernel(target, at, np.array(bytearray(source)), start, length, work=work) == at + length
    expected = b"\7" * at + source[start : start + length] + b"\7" * (400 - at - length)
    assert target.tobytes() == expected
