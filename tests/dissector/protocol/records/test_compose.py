from __future__ import annotations

import pytest

from dissector.errors import EncodeError
from dissector.protocol.records import (
    LegacyRecord,
    Record,
    build_records,
    iter_records,
    new_batch,
    new_message_set,
    parse_records,
)

RECORDS = [
    Record(key=b"a", value=b"1", timestamp=1000, headers=(("h", b"x"),), offset=70),
    Record(key=None, value=None, timestamp=900, offset=75),
]


def test_a_batch_has_the_offsets_and_times_of_a_producer() -> None:
    batch = new_batch(RECORDS, codec="zstd", producer_id=3, producer_epoch=1, base_sequence=8)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1000)
    assert (batch.last_offset_delta, batch.records_count) == (1, 2)
    assert [(r.offset_delta, r.timestamp_delta) for r in batch.records] == [(0, 0), (1, -100)]
    rows = list(iter_records(parse_records(batch.to_bytes())))
    assert [(r.offset, r.timestamp_ms, r.headers, r.sequence) for r in rows] == [
        (0, 1000, (("h", b"x"),), 8),
        (1, 900, (), 9),
    ]


def test_an_empty_batch() -> None:
    (batch,) = parse_records(new_batch([], codec="gzip").to_bytes())
    assert (batch.records, batch.problems) == ([], [])


def test_message_sets_are_converted_to_batches_and_back() -> None:
    old = [LegacyRecord(magic=0, value=b"x"), LegacyRecord(timestamp=7, value=b"y")]
    batch = new_batch(old)
    assert [r.timestamp for r in batch.records] == [-1, 7]
    for magic, times in ((0, [None, None]), (1, [-1, 7])):
        data = build_records(new_message_set(batch.records, magic=magic, base_offset=3))
        rows = list(iter_records(parse_records(data)))
        assert [(r.offset, r.timestamp_ms, r.value) for r in rows] == [
            (3, times[0], b"x"),
            (4, times[1], b"y"),
        ]


@pytest.mark.parametrize(("codec", "messages"), [("none", 2), ("gzip", 1)])
def test_a_compressed_set_is_wrapped(codec: str, messages: int) -> None:
    assert len(new_message_set(RECORDS, codec=codec)) == messages
    assert new_message_set([], codec=codec) == []


def test_the_wrapper_of_magic_1_has_the_offset_of_its_last_message() -> None:
    (wrapper,) = new_message_set(RECORDS, codec="snappy", base_offset=40)
    assert (wrapper.offset, wrapper.timestamp) == (41, 1000)


def test_unknown_codecs_and_magics() -> None:
    with pytest.raises(EncodeError, match="codec 'brotli' is unknown"):
        new_batch([], codec="brotli")
    with pytest.raises(EncodeError, match="codec 'brotli' is unknown"):
        new_message_set([], codec="brotli")
    with pytest.raises(EncodeError, match="magic 2 has no message sets"):
        new_message_set([], magic=2)
