"""Packed columns hold the same numbers in less memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.tables.column_types import Coded, Columns, Integers
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.packed_columns import (
    PackedInts,
    pack_columns,
    unpack_column,
    unpack_columns,
)

NUMBERS = st.one_of(
    st.sampled_from([NONE, NONE + 1, 2**63 - 1]), st.integers(-5, 300), st.integers(NONE, 2**63 - 1)
)


@given(numbers=st.lists(NUMBERS))
def test_unpacked_numbers_are_the_same(numbers: list[int]) -> None:
    columns: Columns = {"connection": Integers(np.array(numbers, np.int64))}
    packed = pack_columns(columns)
    kept = unpack_columns(packed)["connection"]
    assert isinstance(kept, Integers)
    assert kept.values.tolist() == numbers
    values = [None if number == NONE else number for number in numbers]
    assert [packed["connection"].value(row) for row in range(len(numbers))] == values


def test_some_rows_are_unpacked() -> None:
    packed = pack_columns({"api": Coded(np.array([1, 0, NONE, 1]), "ab")})["api"]
    some = unpack_column(packed, np.array([3, 2]))
    assert [some.value(0), some.value(1)] == ["b", None]


def test_equal_numbers_take_no_memory() -> None:
    packed = PackedInts.of(np.full(1000, 5))
    assert packed.numbers.strides == (0,)
    assert [packed[0], packed[999]] == [5, 5]
    assert PackedInts.of(np.arange(1000)).numbers.itemsize == 2
