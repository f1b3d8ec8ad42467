"""Kernels: the same answer as Python and compiled, whatever the amount of work."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.kernel import COMPILE_FROM, Kernel


def _sum(data: Any, out: Any) -> None:
    total = 0
    for i in range(len(data)):
        total = total * 31 + data[i]
    out[0] = total


def test_python_and_compiled_agree() -> None:
    kernel = Kernel(_sum)
    data = np.arange(200, 210, dtype=np.uint8)
    little, much = np.zeros(1, np.int64), np.zeros(1, np.int64)
    kernel(data, little, work=1)
    assert kernel._compiled is None
    kernel(data, much, work=COMPILE_FROM)
    assert kernel._compiled is not None
    assert little[0] == much[0] > 2**32


def test_once_compiled_it_stays_so() -> None:
    kernel = Kernel(_sum)
    out = np.zeros(1, np.int64)
    kernel(np.zeros(1, np.uint8), out, work=COMPILE_FROM)
    compiled = kernel.compiled
    kernel(np.ones(1, np.uint8), out, work=1)
    assert kernel.compiled is compiled
    assert out[0] == 1


def test_python_sees_no_numpy_scalars() -> None:
    seen: list[type] = []

    def look(data: Any, numbers: Any) -> None:
        seen.extend((type(data[0]), type(numbers[0])))

    Kernel(look)(np.zeros(1, np.uint8), np.zeros(1, np.int64), work=1)
    assert seen == [int, int]
