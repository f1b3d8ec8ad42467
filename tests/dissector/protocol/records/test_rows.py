from __future__ import annotations

import dataclasses

import pytest

from dissector.protocol.records import (
    Record,
    Row,
    UnreadBatch,
    iter_records,
    new_batch,
    new_message_set,
    parse_records,
)


def test_rows_of_every_magic_in_order() -> None:
    new = new_batch(
        [Record(key=b"k", value=b"v", timestamp=9, headers=(("h", None),))],
        codec="lz4",
        base_offset=7,
        producer_id=5,
        producer_epoch=2,
        base_sequence=11,
        transactional=True,
    )
    old = new_message_set([Record(value=b"o", timestamp=4)], codec="gzip", magic=1)
    oldest = new_message_set([Record(value=b"p")], magic=0, base_offset=2)
    assert list(iter_records([new, *old, UnreadBatch(b"cut"), *oldest])) == [
        Row(7, 9, b"k", b"v", (("h", None),), 2, "lz4", 5, 2, 11, True, None),
        Row(0, 4, None, b"o", (), 1, "gzip", -1, -1, -1, False, None),
        Row(2, None, None, b"p", (), 0, "none", -1, -1, -1, False, None),
    ]


@pytest.mark.parametrize(
    ("base", "delta", "sequence"),
    [(0, 0, 0), (5, 3, 8), (-1, 3, -1), ((1 << 31) - 1, 0, (1 << 31) - 1), ((1 << 31) - 1, 1, 0)],
)
def test_sequences_follow_offset_deltas_and_wrap(base: int, delta: int, sequence: int) -> None:
    batch = dataclasses.replace(new_batch([]), base_sequence=base)
    (row,) = iter_records([batch.with_records([Record(offset_delta=delta)])])
    assert row.sequence == sequence


def test_control_records_have_their_type() -> None:
    batch = new_batch([Record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\7")], transactional=True)
    data = dataclasses.replace(batch, attributes=batch.attributes | 0x20).to_bytes()
    (row,) = iter_records(parse_records(data))
    assert (row.control, row.transactional) == ("COMMIT", True)
