"""Kernels: the same answer as Python and compiled, whatever the amount of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dissector.kernel import Kernel, variants
from dissector.kernel.call import COMPILE_FROM, LOAD_FROM
from tests.dissector.kernel import kernels

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


def both(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [Kernel(function).uncompiled, Kernel(function).compiled]


TOTAL = both(kernels.total)


@given(st.data(), st.sampled_from(DTYPES), st.integers(-(2**40), 2**40))
@settings(deadline=None)
def test_python_and_compiled_agree(data: st.DataObject, dtype: str, start: int) -> None:
    numbers = st.integers(-(2**50), 2**50) if dtype == "int64" else None
    array = data.draw(arrays(dtype, st.integers(0, 20), elements=numbers))
    array.flags.writeable = data.draw(st.booleans())
    expected = start + 31 * int(array.astype(np.int64).sum())
    assert [total(array, start) for total in TOTAL] == [expected, expected]


def test_results() -> None:
    for least in both(kernels.least):
        assert least(np.array([5, -3, 4], np.int32)) == -3
        assert least(np.array([5, 3, 4], np.uint8)) == 3
        assert least(np.array([5, 2**63 - 1, -(2**63)])) == -(2**63)
    for is_even in both(kernels.is_even):
        assert is_even(10) == 1
        assert is_even(7) == 0
    for named in both(kernels.named):
        assert named() == 35


def test_what_is_written() -> None:
    for fill in both(kernels.fill):
        out = np.zeros(3, np.int32)
        assert fill(out, -5) is None
        assert out.tolist() == [-5, -4, -3]
    for place in both(kernels.place):
        rows = np.zeros((2, 3), np.int64)
        assert place(rows, 1, 2) == 2
        assert rows.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_other_types_from_call_to_call() -> None:
    total = Kernel(kernels.total).compiled
    for dtype in [np.uint8, np.int64, np.uint8, np.bool_, np.int64]:
        assert total(np.ones(2, dtype), 1) == 63
    memory = np.ones(2, np.uint8).view(np.recarray)
    assert total(memory, np.int32(1)) == 63


def test_arguments_stay_while_they_are_used() -> None:
    fill = Kernel(kernels.fill).compiled
    for size in range(50):
        fill(np.zeros(size, np.int64), 1)


@pytest.mark.parametrize("way", [0, 1])
def test_wrong_arguments_are_refused(way: int) -> None:
    total = both(kernels.total)[way]
    for wrong in ((np.zeros(6, np.uint8)[::2], 1), (np.zeros(6, np.uint8),), (3, 4)):
        with pytest.raises(TypeError):
            total(*wrong)


def test_more_arguments_than_it_takes_are_refused() -> None:
    total = Kernel(kernels.total).compiled
    data = np.zeros(3, np.uint8)
    for _ in range(2):
        with pytest.raises(TypeError, match="takes 2 arguments"):
            total(data, 1, 2)
        assert total(data, 1) == 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """List whether compiling was allowed each time a compiled kernel was asked for; it is not."""
    done: list[bool] = []

    def variant(function: Any, types: Any, compiling: bool) -> Any:
        done.append(compiling)
        return (lambda *_: -1) if compiling else None

    monkeypatch.setattr(variants, "variant", variant)
    return done


def test_little_work_asks_for_nothing(asked: list[bool]) -> None:
    total = Kernel(kernels.total)
    for _ in range(3):
        assert total(np.ones(1, np.uint8), 1, work=LOAD_FROM // 4) == 32
    assert asked == []


def test_the_work_of_all_calls_counts(asked: list[bool]) -> None:
    total = Kernel(kernels.total)
    answers = [total(np.ones(1, np.uint8), 1, work=COMPILE_FROM // 4) for _ in range(5)]
    assert answers == [32, 32, 32, -1, -1]
    assert asked == [False, True]


def test_once_compiled_it_stays_so(asked: list[bool]) -> None:
    total = Kernel(kernels.total)
    data = np.ones(1, np.uint8)
    assert [total(data, 1, work=work) for work in (0, COMPILE_FROM, 0)] == [32, -1, -1]
    assert total.uncompiled(data, 1) == 32
    assert asked == [True]


def test_what_is_asked_for_compiled_stays_so(asked: list[bool]) -> None:
    total = Kernel(kernels.total)
    assert total.compiled
    assert total(np.ones(1, np.uint8), 1, work=0) == -1


def test_python_sees_no_numpy_scalars() -> None:
    seen: list[type] = []

    def look(data: Any, numbers: Any) -> None:
        seen.extend((type(data[0]), type(numbers[0])))

    Kernel(look)(np.zeros(1, np.uint8), np.zeros(1, np.int64), work=1)
    assert seen == [int, int]


def test_a_kernel_is_ready_once_it_would_run_compiled() -> None:
    total = Kernel(kernels.total)
    array = np.arange(4)
    assert not total.ready(array, 1, work=LOAD_FROM - 1)
    assert total.ready(array, 1, work=COMPILE_FROM)
    assert total(array, 1, work=0) == 1 + 31 * 6
    assert total(array.astype(np.int32), 1, work=0) == 1 + 31 * 6
