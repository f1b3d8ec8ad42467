"""The logs of captured partitions."""

from __future__ import annotations

from dissector.protocol.records import Record, new_batch, new_message_set, parse_records
from serve.recording.captured_log import CapturedLogs, StoredBatch, at_offset, split_batches


def _records(*values: bytes, first_ms: int = 0) -> list[Record]:
    return [
        Record(0, 0, index, b"k", value, (), index, first_ms + index)
        for index, value in enumerate(values)
    ]


def _batch(base: int, *values: bytes, first_ms: int = 0) -> StoredBatch:
    data = new_batch(_records(*values, first_ms=first_ms), base_offset=base).to_bytes()
    (batch,) = split_batches(data)
    return batch


def test_batches_are_split_and_moved() -> None:
    first, second = _batch(4, b"a", b"b"), _batch(6, b"c")
    found = list(split_batches(first.data + second.data + b"\0" * 20))
    assert [(each.base, each.last) for each in found] == [(4, 5), (6, 6)]
    (moved,) = split_batches(at_offset(first.data, 40))
    assert (moved.base, moved.last) == (40, 41)


def test_messages_are_split() -> None:
    data = b"".join(each.to_bytes() for each in new_message_set(_records(b"a", b"b")))
    assert [each.last for each in split_batches(data)] == [0, 1]


def test_a_log_reads_from_any_offset() -> None:
    log = CapturedLogs().at("orders", 0)
    for each in (_batch(6, b"c"), _batch(4, b"a", b"b"), _batch(6, b"c")):
        log.add(each)
    assert (log.start, log.end) == (4, 7)
    data, after = log.read(5, 1 << 20, 7)
    assert after == 7
    assert [each.base for each in split_batches(data)] == [4, 6]
    assert log.read(5, 1, 7)[1] == 6, "the first batch may be larger than the limit"
    assert log.read(5, 1 << 20, 6)[1] == 6, "no records behind the end"
    data, after = log.read(4, 1 << 20, 5)
    (cut,) = parse_records(data)
    assert ([each.offset for each in cut.records], after) == ([4], 5)
    assert log.read(7, 1, 7) == (b"", 7)


def test_offsets_are_found_by_time() -> None:
    log = CapturedLogs().at("orders", 0)
    log.add(_batch(0, b"a", b"b", first_ms=100))
    assert log.find_time(101) == (1, 101)
    assert log.find_time(102) == (-1, -1)


def test_aborted_transactions_end_at_their_marker() -> None:
    log = CapturedLogs().at("orders", 0)
    log.aborted |= {(7, 0), (8, 2)}
    marker = _batch(1, b"m")._replace(is_control=True, producer_id=7)
    log.add(marker)
    assert log.aborted_between(0, 2) == [(7, 0)]
    assert log.aborted_between(2, 5) == [(8, 2)]


def test_a_log_begins_at_its_first_captured_offset() -> None:
    log = CapturedLogs().at("orders", 0)
    log.learn_read(3, 9)
    assert (log.start, log.high_watermark) == (3, 9)
