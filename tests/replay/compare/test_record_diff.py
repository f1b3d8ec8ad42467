"""Records of a response and of the target's: offsets, timestamps, producers, contents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dissector.protocol.records import (
    LegacyRecord,
    Record,
    RecordBatch,
    build_records,
    new_batch,
    new_message_set,
)
from replay.compare.record_diff import compare_records, data_offsets
from replay.mapping.id_map import IdMap
from replay.mapping.producer_ids import ProducerMap
from replay.model.outcome import Verdict
from tests.replay.support.comparison import found

CONTROL = 0x20
SETTINGS = "connect-configs"


def batch(*texts: str, at: int = 0, attributes: int = 0, **more: Any) -> RecordBatch:
    records = [Record(offset_delta=n, value=text.encode()) for n, text in enumerate(texts)]
    made = new_batch(records, base_offset=at, **more)
    return replace(made, attributes=made.attributes | attributes)


def data(*batches: RecordBatch) -> bytes:
    return b"".join(each.to_bytes(fix_crc=True) for each in batches)


def differences(captured: bytes, live: bytes, **more: Any) -> list[tuple[str, Any, Any]]:
    """Return path, captured value and live value of each difference."""
    topic = more.pop("topic", "orders")
    result = compare_records("r", topic, captured, live, more.pop("log", None), **more)
    return [(each.path, each.captured, each.replayed) for each in result.differences]


MIXED = data(batch("a"), batch("", at=1, attributes=CONTROL), batch("b", "c", at=2))


def test_offsets_of_data_and_of_control_records() -> None:
    assert list(data_offsets(MIXED)) == [(0, 1), (2, 4)]
    assert list(data_offsets(MIXED, controls=True)) == [(0, 4)]
    assert list(data_offsets(None)) == list(data_offsets(b"")) == []
    # In a batch with a hole, which has to be decoded, too.
    some = replace(batch("a", "b", at=5), last_offset_delta=3)
    assert list(data_offsets(data(some, batch("", at=9, attributes=CONTROL)))) == [(5, 7)]


def test_control_records_are_at_the_same_offsets() -> None:
    """Those of the target may be elsewhere, which is no difference of records."""
    without = data(batch("a"), batch("b", "c", at=2))
    for live, is_same in ((MIXED, True), (without, False)):
        result = compare_records("r", "orders", MIXED, live, None)
        assert (result.differences, result.same_extent) == ([], is_same)
        assert list(result.captured) == list(result.live) == [(0, 1), (2, 4)]


@pytest.mark.parametrize("times", [(-1, 5), (5, -1), (5, 6)])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_unset_timestamps_are_compared(times: tuple[int, int], codec: str) -> None:
    sides = [
        data(replace(batch("a" * 50, codec=each), base_timestamp=time, max_timestamp=time))
        for time, each in zip(times, ("none", codec), strict=True)
    ]
    assert differences(*sides) == [("r[0].timestamp_ms", *times)]


def test_timestamps_of_other_records_are_compared() -> None:
    sides = [
        data(replace(batch(text), base_timestamp=time, max_timestamp=time))
        for text, time in (("a", 5), ("b", 6))
    ]
    assert differences(*sides) == [("r[0].value", "a", "b"), ("r[0].timestamp_ms", 5, 6)]
    untimed = build_records(new_message_set([LegacyRecord(value=b"a")], magic=0))
    assert differences(sides[0], untimed) == differences(untimed, sides[0]) == []


def test_secrets_of_settings_are_masked() -> None:
    def record(password: str, worker: str) -> bytes:
        value = f'{{"properties":{{"db.password":"{password}","worker":"{worker}"}}}}'
        return data(new_batch([Record(key=b"connector-a", value=value.encode())]))

    sides = record("sesame", "one"), record("sesame", "two")
    masked, shown = (
        differences(*sides, topic=SETTINGS, show_secrets=show) for show in (False, True)
    )
    assert [path for path, *_ in masked] == [path for path, *_ in shown] == ["r[0].value"]
    assert "sesame" not in str(masked)
    assert str(shown).count("sesame") == 2


PRODUCER = 7, 2
"""Of the capture; 70 with epoch 0 of the target wrote its records."""


def written(producer: tuple[int, int] | None, *, transactional: bool = False) -> bytes:
    if producer is None:
        return data(batch("a"))
    ids = {"producer_id": producer[0], "producer_epoch": producer[1], "base_sequence": 0}
    return data(batch("a", transactional=transactional, **ids))


@pytest.mark.parametrize(
    ("captured", "live", "expected"),
    [
        (written(PRODUCER), written((70, 0)), []),
        (written(None), written(None), []),
        (written(PRODUCER), written(None), [("r[0].producer_id", 7, -1)]),
        (written(None), written((70, 0)), [("r[0].producer_id", -1, 70)]),
        (
            written(PRODUCER),
            written((71, 0)),
            [("r[0].producer_id", 7, "71 of the target, not the 70 that wrote it")],
        ),
        (
            written(PRODUCER),
            written((70, 1)),
            [("r[0].producer_epoch", 2, "1 of the target, not the 0 that wrote it")],
        ),
        (
            written(PRODUCER),
            written((70, 0), transactional=True),
            [("r[0].transactional", False, True)],
        ),
        (written((8, 0)), written((71, 0)), []),  # nothing is known of either
        (written((0, 1)), written((0, 5)), []),  # the first producer of both clusters
    ],
)
def test_batches_that_the_replay_wrote_are_of_the_same_producer(
    captured: bytes, live: bytes, expected: list[tuple[str, Any, Any]]
) -> None:
    producers, ids = ProducerMap(), IdMap()
    producers.learn(PRODUCER, (70, 0))
    producers.learn((0, 1), (0, 5))
    log = ids.offsets.log("orders", 0)
    log.learn_appended(0, 0, 1, step=0)
    assert differences(captured, live, log=log, producers=producers) == expected
    # Batches that it did not append, and comparisons without producers.
    assert differences(captured, live, producers=producers) == []
    assert differences(captured, live, log=log) == []


def test_the_first_batch_may_begin_before_the_requested_offset() -> None:
    """So its missing records are no difference, but those of later ones are."""
    whole = data(batch("a", "b"), batch("c", at=2), batch("d", at=3))
    assert differences(whole, data(batch("b", at=1), batch("c", at=2), batch("d", at=3))) == []
    lost = "no records, although later ones were returned"
    assert differences(whole, data(batch("d", at=3))) == [("r[0 to 2]", "3 records", lost)]
    assert differences(whole, data(batch("a", "b"), batch("d", at=3))) == [
        ("r[2]", "1 record", lost)
    ]
    apart = differences(data(batch("a")), data(batch("e", at=4)))
    assert apart == [("r", "1 record, offsets 0 to 0", "1 record, offsets 4 to 4")]


def test_a_wrong_crc_is_a_difference_unless_captured() -> None:
    sets = build_records(new_message_set([LegacyRecord(value=b"c")], base_offset=4))
    for whole in (data(batch("a", at=3), batch("b", at=4)), sets):
        damaged = whole[:-1] + bytes([whole[-1] ^ 1])
        wrong = ("r[4].crc", "right", "wrong")
        assert wrong in differences(whole, damaged)
        assert wrong in differences(b"", damaged)
        assert differences(damaged, damaged) == []


def described(replicas: list[int], in_sync: list[int], leader: int = 1) -> dict[str, Any]:
    partition = {"error_code": 0, "partition_index": 3, "leader_id": leader}
    partition |= {"replica_nodes": replicas, "isr_nodes": in_sync}
    return {"topics": [{"error_code": 0, "name": "orders", "partitions": [partition]}]}


@pytest.mark.parametrize(
    ("live", "name", "captured", "replayed"),
    [
        (([], [1]), "replica_nodes", "2 brokers", "none"),
        (([1, 2], []), "isr_nodes", "1 broker", "none"),
        (([1, 1], [1]), "replica_nodes", "each broker once", "a broker twice"),
        (([2, 3], [2]), "leader_id", "one of the replicas", "none of the replicas"),
        (([1, 2], [1, 3]), "isr_nodes", "replicas", "brokers without a replica"),
    ],
)
def test_a_partition_has_replicas_and_its_leader_is_one(
    live: tuple[list[int], list[int]], name: str, captured: str, replayed: str
) -> None:
    before = described([1, 2], [1])
    assert found("Metadata", 8, before, described([4, 1], [1]))[0] is not Verdict.DIFFERS
    verdict, faults = found("Metadata", 8, before, described(*live))
    assert verdict is Verdict.DIFFERS
    assert (f"topics[orders].partitions[3].{name}", captured, replayed) in faults
