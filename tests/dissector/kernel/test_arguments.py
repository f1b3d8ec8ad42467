"""Arguments: what Python and compiled code take, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dissector.kernel.arguments import ArrayType, to_native, to_python, type_of


def test_python_sees_memoryviews() -> None:
    seen = to_python(np.arange(3, dtype=np.int32))
    assert isinstance(seen, memoryview)
    assert seen.tolist() == [0, 1, 2]
    assert to_python(7) == 7
    assert type(to_python(np.int64(7))) is int
    with pytest.raises(TypeError):
        to_python([7])


def test_truth_values_are_bytes_to_python() -> None:
    array = np.array([True, False])
    to_python(array)[1] = 1
    assert array.tolist() == [True, True]


def test_a_plain_array_is_taken_as_it_is() -> None:
    array = np.zeros((2, 3), np.int64)
    assert to_native(array) is array
    assert type_of(array) == ArrayType("<i8", 2)
    assert type_of(to_native(np.int32(5))) is None


def test_arrays_of_other_classes_and_dtype_objects_are_made_plain() -> None:
    array = np.zeros(3, np.int64)
    odd: Any = np.dtype(np.int64, metadata={"a": 1})
    for other in (array.view(np.recarray), array.view(np.longlong), array.view(odd)):
        made = to_native(other)
        assert type(made) is np.ndarray
        assert made.dtype is np.dtype(np.int64)
        assert np.shares_memory(made, array)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), np.int64(4), np.uint8(4), True])
def test_whole_numbers(number: Any) -> None:
    assert to_native(number) == number
    assert type(to_native(number)) is int or number is True


@pytest.mark.parametrize(
    "wrong",
    [
        2**63,
        1.5,
        None,
        b"bytes",
        [1],
        np.zeros(3, ">i8"),
        np.zeros(3, np.complex128),
        np.array(["text"]),
        np.array([None]),
        np.array(3),
        np.zeros(3, [("a", "i4")]),
    ],
)
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        to_native(wrong)


def test_arrays_with_gaps_are_refused_by_both() -> None:
    for wrong in (np.zeros(6, np.int64)[::2], np.zeros((2, 3), np.int64).T):
        for take in (to_native, to_python):
            with pytest.raises(TypeError, match="C-contiguous"):
                take(wrong)


def test_an_array_at_an_odd_place_in_memory_is_refused() -> None:
    array = np.frombuffer(bytes(17), np.int64, 1, offset=1)
    at_odd = array if not array.flags.aligned else np.frombuffer(bytes(18), np.int64, 1, offset=2)
    with pytest.raises(TypeError):
        to_native(at_odd)
