"""Steps as arrays, and integers in their bytes."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.templates import step_arrays as arrays_module
from replay.templates.step_arrays import StepArrays, number_at, put_number
from tests.replay.support.produce_messages import arrays_of, plan_of


@given(st.integers(1, 8), st.data())
def test_integers_are_read_back(size: int, data: st.DataObject) -> None:
    edge = 1 << 8 * size - 1
    value = data.draw(st.integers(-edge, edge - 1))
    room = bytearray(size + 2)
    put_number(room, 1, value, size)
    assert room == b"\0" + value.to_bytes(size, "big", signed=True) + b"\0"
    assert number_at(room, 1, size) == value


def test_frames_are_stored_back_to_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays_module, "MAPPED_BYTES", 3)
    found = arrays_of([(b"0009ask", b"resp"), (b"0009more", b"")], (3, -1))
    assert found.frames.tobytes() == b"0009askresp0009more"
    found.release_read(4)
    assert found.frames.tobytes() == b"0009askresp0009more"
    assert found.positions.tolist() == [0, 11]
    assert found.sizes.tolist() == [7, 8]
    assert found.shapes.tolist() == [3, -1]
    assert found.dependency_ends.tolist() == [0, 0, 0]


def test_step_arrays_share_memory_with_their_owner() -> None:
    is_done = bytearray(1)
    found = StepArrays(plan_of([(b"0009", b"")]), is_done, array("q", [5]))
    found.is_done[0] = 1
    assert is_done == b"\1"
    assert found.due_ns.tolist() == [5]


def test_kernels_accept_the_array_types() -> None:
    found = arrays_of([(b"0009", b"")])
    for each in vars(found).values():
        if isinstance(each, np.ndarray):
            assert each.dtype in (np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64))
            assert each.dtype is np.dtype(each.dtype.name)
    empty = arrays_of([])
    assert len(empty.frames) == len(empty.positions) == 0
