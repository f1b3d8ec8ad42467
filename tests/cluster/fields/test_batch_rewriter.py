"""Record batches rewritten for the target, and matched between both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.fields.batch_rewriter import (
    MatchedRun,
    Producer,
    batch_headers,
    count_records,
    match_records,
    rewrite_batches,
    to_record_batch,
)
from cluster.fields.refusal import RewriteError
from dissector.protocol.records import (
    LegacyRecord,
    Record,
    RecordBatch,
    new_batch,
    new_message_set,
    parse_records,
)


def _batch(values: list[bytes], base: int = 0, codec: str = "none", producer: int = -1) -> bytes:
    records = [Record(0, 0, i, None, value, (), base + i, 0) for i, value in enumerate(values)]
    return new_batch(records, codec=codec, base_offset=base, producer_id=producer).to_bytes()


def _set(values: list[bytes], codec: str = "none", magic: int = 1) -> bytes:
    records = [
        LegacyRecord(offset=i, timestamp=5 if magic else None, key=b"k", value=value)
        for i, value in enumerate(values)
    ]
    made = new_message_set(records, codec=codec, magic=magic)
    return b"".join(batch.to_bytes() for batch in made)


def test_headers_of_batches_and_of_undecodable_bytes() -> None:
    first, second = _batch([b"a", b"b"], 7, producer=3), _batch([b"c"], 9)
    one, two, rest = batch_headers(first + second + b"odd")
    assert (one.start, one.end, one.producer, one.record_count) == (
        0,
        len(first),
        Producer(3, -1, -1),
        2,
    )
    assert (two.base_offset, two.offset_count, two.end) == (9, 1, len(first + second))
    assert (rest.producer, rest.end) == (None, len(first + second) + 3)
    assert list(batch_headers(b"")) == []


@given(st.binary(max_size=200))
def test_any_bytes_pass_unchanged(data: bytes) -> None:
    assert rewrite_batches(data, lambda old, _: old) == data
    assert b"".join(data[p.start : p.end] for p in batch_headers(data)) == data
    count_records(data)
    match_records(data, data)


def test_a_number_out_of_range_is_an_error() -> None:
    with pytest.raises(RewriteError, match="does not fit"):
        rewrite_batches(_batch([b"a"], producer=3), lambda *_: Producer(4, 1 << 20, 0))


def test_records_are_counted_in_every_format() -> None:
    assert count_records(None) == count_records(b"") == 0
    assert count_records(_batch([b"a", b"b"]) + _batch([b"c"])) == 3
    assert count_records(_set([b"a", b"b"])) == 2
    assert count_records(_set([b"a", b"b"], codec="gzip")) == 2


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_become_batches(magic: int, codec: str) -> None:
    (batch,) = parse_records(to_record_batch(_set([b"a", b"b"], codec, magic)))
    assert isinstance(batch, RecordBatch)
    assert batch.crc_ok
    assert batch.codec == codec
    assert [(r.offset, r.key, r.value) for r in batch.records] == [(0, b"k", b"a"), (1, b"k", b"b")]
    assert batch.records[0].timestamp == (5 if magic else -1)


def test_message_sets_become_one_batch() -> None:
    (batch,) = parse_records(to_record_batch(_set([b"a"]) + _set([b"b"], "gzip") + _set([b"c"])))
    assert isinstance(batch, RecordBatch)
    assert batch.codec == "gzip"
    assert [record.value for record in batch.records] == [b"a", b"b", b"c"]


def test_undecodable_message_sets_do_not_become_batches() -> None:
    with pytest.raises(RewriteError):
        to_record_batch(b"odd")
    data = _batch([b"a"])
    assert to_record_batch(data) == data


def test_equal_batches_match_without_decompression() -> None:
    captured = _batch([b"a", b"b"], 10, "gzip") + _batch([b"c"], 12)
    live = _batch([b"a", b"b"], 0, "gzip") + _batch([b"c"], 5)
    assert match_records(captured, live) == [MatchedRun(10, 0, 2), MatchedRun(12, 5, 1)]
    assert match_records(captured, None) == match_records(b"", live) == []


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_records_match_across_different_batches(codec: str) -> None:
    captured = _batch([b"a"], 10) + _batch([b"b"], 11) + _batch([b"c"], 12)
    live = _batch([b"x", b"a", b"b"], 0, codec) + _batch([b"y", b"c"], 3)
    assert match_records(captured, live) == [MatchedRun(10, 1, 2), MatchedRun(12, 4, 1)]


@given(st.lists(st.sampled_from([b"a", b"b", b"c"])), st.lists(st.sampled_from([b"a", b"b"])))
def test_records_are_preserved_in_order(ours: list[bytes], theirs: list[bytes]) -> None:
    captured = b"".join(_batch([value], 10 + i) for i, value in enumerate(ours))
    live = _batch(theirs, 100) if theirs else b""
    last = (-1, -1)
    for same in match_records(captured, live):
        assert (same.captured, same.live) > last
        assert same.captured > last[0]
        assert same.live > last[1]
        last = (same.captured + same.length - 1, same.live + same.length - 1)
        for step in range(same.length):
            assert ours[same.captured + step - 10] == theirs[same.live + step - 100]
