"""Functions of C libraries called by compiled code."""

from __future__ import annotations

import ctypes
from typing import Any

import lz4.block
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.kernel import Kernel
from dissector.kernel.native_call import NOT_CALLED, call_decompressor

FUNCTION = ctypes.CDLL(lz4.block._block.__file__).LZ4_decompress_safe
ADDRESS = ctypes.cast(FUNCTION, ctypes.c_void_p).value


def _unpack(
    function: int, source: Any, start: int, length: int, target: Any, at: int, room: int
) -> int:
    return call_decompressor(function, source, start, length, target, at, room)


KERNEL = Kernel(_unpack)
_ = KERNEL.compiled


@given(st.binary(max_size=300), st.integers(0, 9), st.integers(-3, 3), st.booleans())
def test_what_a_library_gives(content: bytes, before: int, more: int, torn: bool) -> None:
    packed = lz4.block.compress(content, store_size=False)
    packed = packed[: len(packed) - torn]
    source = np.frombuffer(bytes(before) + packed + b"\xff", np.uint8)
    target = np.full(400, 7, np.uint8)
    at, room = before + 2, max(0, len(content) + more)
    got = KERNEL(ADDRESS, source, before, len(packed), target, at, room, work=1)
    try:
        expected = lz4.block.decompress(packed, uncompressed_size=room)
    except lz4.block.LZ4BlockError:
        assert got < 0
    else:
        assert target[at : at + got].tobytes() == expected
    assert (target[:at] == 7).all()
    assert (target[at + room :] == 7).all()


def test_as_python_nothing_is_called() -> None:
    target = bytearray(9)
    assert _unpack(1, b"123", 0, 3, target, 0, 9) == NOT_CALLED
    assert not any(target)
