"""Parts of the kernel of one payload; the whole is tested in `test_record`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records import payload_kernel
from dissector.protocol.records.layout import zigzag
from dissector.protocol.records.payload_kernel import read_varint
from dissector.protocol.records.record import Record, read_records, write_records
from tests.kernel_modes import COMPILED, PYTHON, running

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64, st.binary(max_size=3))
def test_varints(number: int, rest: bytes) -> None:
    written = zigzag(number)
    # In Python the integer may exceed 64 bits: sums wrap it.
    assert read_varint(written + rest, 0, len(written + rest), 1) == (number, len(written))
    assert read_varint(written, 0, len(written) - 1, 1) == (0, -1)


HEADERS = tuple((f"h{number}", b"v" * number) for number in range(5))
RECORDS = [Record(offset_delta=number, headers=HEADERS[: number % 6]) for number in range(40)]


@pytest.mark.parametrize("at_once", [1, 3, 4096])
@pytest.mark.parametrize("mode", [COMPILED, PYTHON])
def test_records_are_read_some_at_a_time(
    mode: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_kernel, "_ROWS_AT_ONCE", at_once)
    data = write_records(RECORDS)
    with running(mode, payload_kernel.read_payload):
        found, stopped = read_records(data + b"\x0d", len(RECORDS) + 3, 0, 0, None)
    assert [record[:6] for record in found] == [record[:6] for record in RECORDS]
    assert stopped == len(data)
