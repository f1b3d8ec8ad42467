"""Integers in bytes, and their sums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.tape.number_kernels import signed, wrapped_sum
from dissector.protocol.records.layout import int64

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64, INT64)
def test_sums_wrap_as_in_java(a: int, b: int) -> None:
    assert wrapped_sum(a, b) == int64(a + b)


@given(st.binary(min_size=1, max_size=8), st.binary(max_size=2))
def test_numbers_are_big_endian(number: bytes, before: bytes) -> None:
    found = signed(before + number, len(before), len(number))
    assert found == int.from_bytes(number, "big", signed=True)
