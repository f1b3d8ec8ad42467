"""Functions of C libraries called by compiled code."""

from __future__ import annotations

import ctypes

import lz4.block
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.kernel.native_call import NOT_CALLED
from tests.dissector.kernel import kernels
from tests.kernels import COMPILED, running

FUNCTION = ctypes.CDLL(lz4.block._block.__file__).LZ4_decompress_safe
ADDRESS = ctypes.cast(FUNCTION, ctypes.c_void_p).value


@given(st.binary(max_size=300), st.integers(0, 9), st.integers(-3, 3), st.booleans())
def test_what_a_library_gives(content: bytes, before: int, more: int, torn: bool) -> None:
    packed = lz4.block.compress(content, store_size=False)
    packed = packed[: len(packed) - torn]
    source = np.frombuffer(bytes(before) + packed + b"\xff", np.uint8)
    target = np.full(400, 7, np.uint8)
    at, room = before + 2, max(0, len(content) + more)
    with running(COMPILED, kernels.unpack):
        got = kernels.unpack(ADDRESS, source, before, len(packed), target, at, room)
    try:
        expected = lz4.block.decompress(packed, uncompressed_size=room)
    except lz4.block.LZ4BlockError:
        assert got < 0
    else:
        assert target[at : at + got].tobytes() == expected
    assert (target[:at] == 7).all()
    assert (target[at + room :] == 7).all()


def test_as_python_nothing_is_called() -> None:
    source, target = np.array([1, 2, 3], np.uint8), np.zeros(9, np.uint8)
    assert kernels.unpack.uncompiled(1, source, 0, 3, target, 0, 9) == NOT_CALLED
    assert not target.any()
