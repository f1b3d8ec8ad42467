"""Kernels give the same results in Python and compiled."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.kernel.call import CHECKED
from tests.dissector.kernel import sample_kernels
from tests.kernel_modes import COMPILED, MODES, both, running

mode = both(sample_kernels)

int40s = st.integers(-(2**31), 2**31)


def wrapped(number: int) -> int:
    """Return a number wrapped to 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


@given(int40s, int40s | st.integers(-40, 40))
def test_operators_give_the_results_of_python(a: int, b: int) -> None:
    out = np.zeros(24, np.int64)
    sample_kernels.arithmetic(out, a, b)
    expected = [a + b, a - b, a * b, a & b, a | b, a ^ b, -a, ~b, a << (b & 31), a >> (b & 31)]
    expected += [a < b <= 9, min(a, b, 5), max(a, b, -5), a or b, a and b, not a]
    expected += [3 if a > b else 4, a in (2, 3, 5) or b in (11, 13), -(2**63), bool(a) + 7]
    expected += [a // b, a % b] if b else [0, 0]
    expected += [1 << (b & 62), (0, 2, 4, 8)[b & 3]]
    assert out.tolist() == [wrapped(int(each)) for each in expected]


def test_a_function_takes_columns_of_any_type() -> None:
    small, numbers, large = np.array([200, 200], np.uint8), np.array([-5], np.int32), np.array([3])
    assert sample_kernels.sums(small, numbers, large) == 407_000 - 4 + 3
    assert sample_kernels.sums(np.array([True, False]), numbers, large) == 8_000 - 4 + 3


def test_tables_have_rows() -> None:
    table, cube = np.zeros((2, 3), np.int8), np.zeros((2, 2, 1), np.int64)
    rows = np.zeros((2, 3), np.int64)
    assert sample_kernels.walk(table, cube, rows) == 0
    assert table.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert cube.tolist() == [[[0], [0]], [[3], [12]]]
    assert rows.tolist() == [[0, 6, 0], [0, 0, 0]]


def test_a_group_of_arrays_is_one_argument(mode: str) -> None:
    numbers, table = np.array([1, 2, 4]), np.zeros((3, 3), np.int64)
    numbers.setflags(write=False)
    sums = sample_kernels.Sums(numbers, table, np.array([True, False, True]))
    assert sample_kernels.add_rows(sums, 3) == 1 + 4 + 1
    assert table.tolist() == [[1, 2, 4], [0, 0, 0], [1, 2, 4]]
    if mode == COMPILED:
        with pytest.raises(TypeError, match=r"add_rows: sums\.table takes 2 dimensions"):
            sample_kernels.add_rows(sums._replace(table=np.zeros((3, 3), np.int32)), 3)


def test_a_variable_may_refer_to_either_array() -> None:
    first, second = np.array([1, 2], np.uint8), np.array([3], np.uint8)
    assert [sample_kernels.choose(first, second, at) for at in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(4, np.int32)[::2],
        np.zeros((2, 2), np.int32),
        np.zeros(2, np.int64),
        np.zeros(2, ">i4"),
        [0, 0],
        None,
    ],
)
def test_arrays_of_other_types_are_refused(array: object) -> None:
    with running(COMPILED, sample_kernels.fill), pytest.raises(TypeError, match="fill: out"):
        sample_kernels.fill(array, 1)


def test_read_only_arrays_are_refused() -> None:
    out = np.zeros(2, np.int32)
    out.flags.writeable = False
    with running(COMPILED, sample_kernels.fill), pytest.raises(TypeError, match="read-only"):
        sample_kernels.fill(out, 1)
    with running(COMPILED, sample_kernels.sums):
        assert sample_kernels.sums(np.zeros(0, np.uint8), out, np.zeros(0, np.int64)) == 7001


def test_numbers_have_64_bits() -> None:
    with running(COMPILED, sample_kernels.fill), pytest.raises(OverflowError):
        sample_kernels.fill(np.zeros(1, np.int32), 2**63)


def test_non_contiguous_columns_are_refused_in_python() -> None:
    with running(MODES[0], sample_kernels.fill), pytest.raises(TypeError, match="contiguous"):
        sample_kernels.fill(np.zeros(4, np.int32)[::2], 1)


@pytest.mark.skipif(not os.environ.get(CHECKED), reason="only checked kernels check indices")
@pytest.mark.parametrize("at", [-1, 3, 2**40])
def test_checked_kernels_refuse_an_index_outside_the_array(at: int) -> None:
    with (
        running(COMPILED, sample_kernels.far),
        pytest.raises(IndexError, match=r"kernels\.far: .* line"),
    ):
        sample_kernels.far(np.zeros(3, np.int64), at)
