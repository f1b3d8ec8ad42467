from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import EncodeError
from dissector.protocol.records.layout import (
    BATCH,
    MESSAGE_0,
    MESSAGE_1,
    MIN_BATCH_LENGTH,
    MIN_MESSAGE_SIZE,
    Header,
    int64,
)


def test_sizes_equal_those_in_the_documentation() -> None:
    assert (BATCH.size, MESSAGE_0.size, MESSAGE_1.size) == (61, 18, 26)
    assert (MIN_BATCH_LENGTH, MIN_MESSAGE_SIZE) == (49, 14)


@pytest.mark.parametrize("header", [BATCH, MESSAGE_0, MESSAGE_1])
@given(data=st.binary(min_size=61, max_size=61))
def test_both_decoders_read_the_same_header(header: Header, data: bytes) -> None:
    data = data[: header.size]
    fields = header.construct.parse(data)
    assert tuple(fields.values()) == header.unpack_from(data)
    assert tuple(fields) == header.names
    assert header.construct.build(fields) == data
    assert header.pack(SimpleNamespace(**fields)) == data


def test_a_number_out_of_range_is_an_error_with_its_field() -> None:
    fields = dict.fromkeys(MESSAGE_0.names, 0) | {"attributes": 200}
    with pytest.raises(EncodeError, match="attributes"):
        MESSAGE_0.pack(SimpleNamespace(**fields))


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [(5, 5), (-5, -5), ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, -(1 << 63)), (-(1 << 64), 0)],
)
def test_sums_wrap_as_in_java(number: int, wrapped: int) -> None:
    assert int64(number) == wrapped
