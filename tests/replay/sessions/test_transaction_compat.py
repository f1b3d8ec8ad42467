"""Transactions of clients that rely on implicit AddPartitionsToTxn (KIP-890)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dissector.protocol.apis import KEYS, all_apis
from dissector.protocol.messages import Message
from dissector.protocol.records import Record, new_batch
from replay.sessions.transaction_compat import ADDED, addition_for
from tests.default_frames import request, response
from tests.replay.run.test_runner import Played, at_script, one_after_another
from tests.replay.support.builders import whole
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answer, Answers, offers
from tests.tcp_captures import Wire

INIT, PRODUCE, COMMIT, END = (
    KEYS[name] for name in ("InitProducerId", "Produce", "TxnOffsetCommit", "EndTxn")
)
CONCURRENT, NOT_COORDINATOR, FENCED = 51, 16, 90


def batch(epoch: int, records: int = 1, sequence: int = 0) -> bytes:
    made = [Record(0, 0, at, None, b"v", (), at, 0) for at in range(records)]
    wrote = {"producer_id": 9, "producer_epoch": epoch, "base_sequence": sequence}
    return new_batch(made, transactional=True, **wrote).to_bytes()


def produce(title: str | None, *records: bytes | None) -> dict[str, Any]:
    partitions = [{"index": at, "records": each} for at, each in enumerate(records)]
    return {"transactional_id": title, "topic_data": [{"name": "t", "partition_data": partitions}]}


@pytest.mark.parametrize(
    ("captured", "version", "title", "expected"),
    [
        (12, 11, "x", True),
        (13, 9, "x", True),
        (12, 12, "x", False),
        (11, 9, "x", False),
        (12, 11, None, False),
    ],
)
def test_produce_versions_that_need_added_partitions(
    captured: int, version: int, title: str | None, expected: bool
) -> None:
    body = whole("Produce", version, produce(title, batch(0)))
    assert (addition_for("Produce", captured, version, body) is not None) is expected
    assert addition_for("Fetch", captured, version, body) is None


def test_partitions_are_added_as_their_producer() -> None:
    body = whole("Produce", 11, produce("x", None, batch(3)))
    found = addition_for("Produce", 12, 11, body)
    assert found is not None
    assert (found.transactional_id, found.api, found.version) == ("x", "AddPartitionsToTxn", 3)
    add_partitions = whole("AddPartitionsToTxn", 3, found.body)
    assert (
        add_partitions.v3_and_below_producer_id,
        add_partitions.v3_and_below_producer_epoch,
    ) == (9, 3)
    assert found.elements == {("t", 0), ("t", 1)}
    assert addition_for("Produce", 12, 11, whole("Produce", 11, produce("x", None))) is None


def test_offsets_are_added_with_their_group() -> None:
    body = {"transactional_id": "x", "group_id": "g", "producer_id": 9, "producer_epoch": 3}
    found = addition_for("TxnOffsetCommit", 5, 4, whole("TxnOffsetCommit", 4, body))
    assert found is not None
    assert found.api == "AddOffsetsToTxn"
    assert dict(whole("AddOffsetsToTxn", 4, found.body)) == body
    assert found.elements == {"g"}


def two_transactions(folder: Path) -> str:
    """Two batches in one transaction and one in the next, without AddPartitionsToTxn."""
    wire = Wire()
    connection = wire.connect().syn()
    began = response(INIT, 3, 1, producer_id=9, producer_epoch=0)
    exchange(connection, request(INIT, 3, 1, transactional_id="x", transaction_timeout_ms=9), began)
    named = {"transactional_id": "x", "producer_id": 9}
    ended = response(END, 5, 4, producer_id=9, producer_epoch=1)
    steps = [(2, batch(0, 2)), (3, batch(0, 1, 2)), (4, None), (5, batch(1))]
    for number, records in steps:
        if records is None:
            exchange(connection, request(END, 5, number, **named, committed=True), ended)
            continue
        partition = {"index": 0, "base_offset": number}
        answer = answered_in(12, number, partition)
        exchange(connection, request(PRODUCE, 12, number, **produce("x", records), acks=-1), answer)
    return saved(folder, wire)


def answered_in(version: int, number: int, partition: dict[str, Any], topic: str = "t") -> bytes:
    body = {"responses": [{"name": topic, "partition_responses": [partition]}]}
    filled_in = whole("Produce", version, body, "response")
    return response(PRODUCE, version, number, **filled_in)


def old_broker(*added: int) -> Answers:
    """Answer as a broker before KIP-890; AddPartitionsToTxn with these errors in turn."""
    known = {
        each.name: (each.request.versions.low, each.request.versions.high) for each in all_apis()
    }
    partition = {"index": 0, "base_offset": 7}
    response_body = {"responses": [{"name": "t", "partition_responses": [partition]}]}

    def addition_answered(error: int) -> Answer:
        results = [{"partition_index": 0, "partition_error_code": error}]
        topics = [{"name": "t", "results_by_partition": results}]
        return {"results_by_topic_v3_and_below": topics}

    state = {"transactional_id": "x", "transaction_state": "Empty", "topics": []}
    return {
        "ApiVersions": offers(**known | {"Produce": (0, 11), "EndTxn": (0, 4)}),
        "InitProducerId": lambda _: {"producer_id": 70, "producer_epoch": 0},
        "AddPartitionsToTxn": one_after_another(*map(addition_answered, added)),
        "Produce": lambda _: response_body,
        "EndTxn": lambda _: {},
        "DescribeTransactions": lambda _: {"transaction_states": [state]},
    }


def requests_of(played: Played) -> list[Message]:
    return [
        each for each in played.requests if each.api in ("AddPartitionsToTxn", "Produce", "EndTxn")
    ]


def test_partitions_are_added_once_per_transaction(tmp_path: Path) -> None:
    played = at_script(two_transactions(tmp_path), old_broker(0, 0))
    assert not played.failures
    once = ["AddPartitionsToTxn", "Produce"]
    assert [each.api for each in requests_of(played)] == [*once, "Produce", "EndTxn", *once]
    added = requests_of(played)[0]
    assert added.api_version == 3
    assert added.body is not None
    assert added.body.v3_and_below_producer_id == 70
    rules = [change.why for each in played.outcomes for change in each.changes]
    assert rules.count(ADDED) == 2
    assert played.run is not None
    assert not played.run.left_behind


def test_the_next_transaction_continues_the_sequence(tmp_path: Path) -> None:
    played = at_script(two_transactions(tmp_path), old_broker(0, 0))
    sent = [each.body for each in requests_of(played) if each.api == "Produce" and each.body]
    batches = [body.topic_data[0].partition_data[0].records for body in sent]
    assert [int.from_bytes(each[53:57], "big") for each in batches] == [0, 2, 3]


def test_add_partitions_is_retried_on_retriable_errors(tmp_path: Path) -> None:
    played = at_script(two_transactions(tmp_path), old_broker(CONCURRENT, NOT_COORDINATOR, 0, 0))
    assert not played.failures
    assert [each.api for each in requests_of(played)[:4]] == ["AddPartitionsToTxn"] * 3 + [
        "Produce"
    ]


def test_a_refused_add_partitions_leaves_the_produce_error(tmp_path: Path) -> None:
    played = at_script(two_transactions(tmp_path), old_broker(FENCED, FENCED, FENCED))
    assert [each.api for each in requests_of(played)] == [
        *["AddPartitionsToTxn", "Produce"] * 2,
        "EndTxn",
        *["AddPartitionsToTxn", "Produce"],
    ]
    assert not any(change.why == ADDED for each in played.outcomes for change in each.changes)
