"""Kernels to machine code: calls, results, and what is refused."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dissector.kernel.arguments import ArrayType
from dissector.kernel.compiler import OTHER_TYPES, compile_kernel
from dissector.kernel.machine import load
from tests.dissector.kernel import kernels

BYTES, INT64 = ArrayType("|u1", 1), ArrayType("<i8", 1)


def test_what_returns_and_what_does_not() -> None:
    assert compile_kernel(kernels.named, ()).returns
    assert compile_kernel(kernels.is_even, (None,)).returns
    assert not compile_kernel(kernels.fill, (INT64, None)).returns


def test_the_words_of_a_call() -> None:
    code = load(compile_kernel(kernels.total, (BYTES, None)).code)
    data = np.array([1, 0, 2], np.uint8)
    result = (ctypes.c_int64 * 1)()

    def status(given: Any, *expected: Any) -> int:
        types = (ctypes.c_int64 * 2)(*map(id, expected))
        address = ctypes.addressof(types)
        return code(result, struct.pack("=4q", address, id(given), id(None), 5))

    bytes_ = np.dtype(np.uint8)
    assert status(data, np.ndarray, bytes_) == 0
    assert result[0] == 5 + 3 * 31
    for wrong in (7, None, b"bytes", data.view(np.int8), data.reshape(1, 3), data[::2]):
        assert status(wrong, np.ndarray, bytes_) == OTHER_TYPES
    assert status(data, np.recarray, bytes_) == OTHER_TYPES


@pytest.mark.parametrize(
    ("function", "types", "why"),
    [
        (kernels.allocating, (None,), "allocating"),
        (kernels.halved, (None,), "is a float64"),
        (kernels.halved, (ArrayType("<f8", 1),), "halved"),
        (kernels.halving, (INT64,), "is a float64"),
        (kernels.pair, (None,), "returns UniTuple"),
        (kernels.texts, (), "TEXT"),
        (kernels.recursive, (None,), "odd calls even, which calls it"),
    ],
)
def test_what_kernels_may_not_do(function: Callable[..., Any], types: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        compile_kernel(function, types)
