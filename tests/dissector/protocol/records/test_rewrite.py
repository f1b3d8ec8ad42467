from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import EncodeError
from dissector.protocol.records import (
    Record,
    RecordBatch,
    new_batch,
    new_message_set,
    parse_records,
    rewrite_batch,
)
from dissector.protocol.records.layout import BATCH
from tests.dissector.protocol.records.record_values import BATCHES

DATA = new_batch([Record(value=b"v")], codec="lz4", producer_id=4).to_bytes()
WRONG_CRC = DATA[:17] + bytes(4) + DATA[21:]


@given(
    BATCHES,
    st.fixed_dictionaries(
        {},
        optional={
            "base_offset": st.integers(0, 1 << 60),
            "partition_leader_epoch": st.integers(-1, 1 << 30),
            "producer_id": st.integers(-1, 1 << 60),
            "producer_epoch": st.integers(-1, 1 << 14),
            "base_sequence": st.integers(-1, 1 << 30),
        },
    ),
)
def test_only_requested_fields_change(batch: RecordBatch, changes: dict[str, int]) -> None:
    data = batch.to_bytes()
    new = rewrite_batch(data, **changes)
    old, out = parse_records(data)[0], parse_records(new)[0]
    assert isinstance(out, RecordBatch)
    assert out.problems == []
    assert new[BATCH.size :] == data[BATCH.size :]
    for name in BATCH.names:
        if name != "crc":
            assert getattr(out, name) == changes.get(name, getattr(old, name))
    assert rewrite_batch(parse_records(data)[0], **changes) == new


def test_a_rewrite_without_changes_is_the_identity() -> None:
    assert rewrite_batch(DATA) == DATA
    assert rewrite_batch(WRONG_CRC, producer_id=4) == WRONG_CRC


def test_a_wrong_crc_is_kept_until_its_bytes_change() -> None:
    assert not parse_records(rewrite_batch(WRONG_CRC, base_offset=9))[0].crc_ok
    assert parse_records(rewrite_batch(WRONG_CRC, producer_id=9))[0].crc_ok


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"", "batch_length"),
        (DATA[:-1], "batch_length"),
        (DATA + DATA, "batch_length"),
        (new_message_set([Record(value=bytes(80))])[0].to_bytes(), "magic"),
    ],
)
def test_bytes_other_than_a_batch_are_refused(data: bytes, path: str) -> None:
    with pytest.raises(EncodeError) as error:
        rewrite_batch(data, producer_id=1)
    assert error.value.path == path


def test_a_number_out_of_range_is_an_error_with_its_field() -> None:
    with pytest.raises(EncodeError, match="producer_epoch"):
        rewrite_batch(DATA, producer_epoch=1 << 15)
