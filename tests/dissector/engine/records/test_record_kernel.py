"""Parts of the loop over records; the whole is tested in `test_record_decoder`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records.record_kernel import read_varint
from dissector.protocol.records.layout import zigzag

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64, st.binary(max_size=3))
def test_varints(number: int, rest: bytes) -> None:
    written = zigzag(number)
    # In Python the integer may exceed 64 bits: sums wrap it.
    assert read_varint(written + rest, 0, len(written + rest), 1) == (number, len(written))
    assert read_varint(written, 0, len(written) - 1, 1) == (0, -1)
