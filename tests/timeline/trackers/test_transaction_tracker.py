"""Transactions: ended, fenced by another producer, expired, left open; in all versions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conform.scene import Scene, SceneConnection
from tests.corpus import FOLDER
from tests.timeline.events_of import brief, corpus_events, events_of, only

PRODUCE, METADATA, INIT, ADD, END, COMMIT_OFFSETS = 0, 3, 22, 24, 26, 28
INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE = 47, 48


def exchange(
    connection: SceneConnection, key: int, version: int, request: Any, response: Any
) -> None:
    connection.request(key, version, 7, **request).response(key, version, 7, **response)


def initialize(connection: SceneConnection, epoch: int = 0, timeout_ms: int = 60000) -> None:
    request = {"transactional_id": "tx", "transaction_timeout_ms": timeout_ms}
    exchange(connection, INIT, 1, request, {"producer_id": 9, "producer_epoch": epoch})


def add(connection: SceneConnection, epoch: int = 0, error: int = 0) -> None:
    topics = [{"name": "orders", "partitions": [0, 1]}]
    request = {
        "v3_and_below_transactional_id": "tx",
        "v3_and_below_producer_id": 9,
        "v3_and_below_producer_epoch": epoch,
        "v3_and_below_topics": topics,
    }
    results = [{"partition_index": each, "partition_error_code": error} for each in (0, 1)]
    found = [{"name": "orders", "results_by_partition": results}]
    exchange(connection, ADD, 1, request, {"results_by_topic_v3_and_below": found})


def end(connection: SceneConnection, committed: bool = True, error: int = 0) -> None:
    request = {"transactional_id": "tx", "producer_id": 9, "committed": committed}
    exchange(connection, END, 1, request, {"error_code": error})


def write(connection: SceneConnection) -> None:
    """Produce v12, which begins a transaction (KIP-890)."""
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": b""}]}]
    request = {"transactional_id": "tx", "acks": -1, "topic_data": topics}
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0}]}]}
    exchange(connection, PRODUCE, 12, request, answer)


def end_in_epoch(connection: SceneConnection, epoch: int, error: int = 0) -> None:
    """EndTxn v5, whose response gives the next epoch."""
    request = {"transactional_id": "tx", "producer_id": 9, "committed": True}
    answer = {"error_code": error, "producer_id": 9, "producer_epoch": epoch + 1}
    if error:
        answer |= {"producer_id": -1, "producer_epoch": -1}
    exchange(connection, END, 5, {**request, "producer_epoch": epoch}, answer)


def test_committed_and_aborted() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection)
    add(connection)
    end(connection)
    add(connection)
    end(connection, committed=False)
    events = events_of(scene, "transaction")
    assert brief(events) == [
        ("initialized", "", True),
        ("committed", "EndTxn", True),
        ("aborted", "EndTxn", True),
    ]
    assert events[1].subject == "tx"
    assert events[1].text.endswith("orders 0-1")


def test_a_transaction_begun_before_the_capture_is_uncertain() -> None:
    scene = Scene()
    connection = scene.connect()
    add(connection)
    end(connection)
    assert brief(events_of(scene, "transaction")) == [("committed", "EndTxn", False)]


def test_a_transaction_left_open() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection)
    add(connection)
    assert brief(events_of(scene, "transaction"))[1:] == [("left open", "", False)]


def test_a_transaction_begun_by_produce_has_its_producer() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection)
    write(connection)
    (event,) = only(events_of(scene, "transaction"), "left open")
    assert event.text.startswith("producer id 9, epoch 0: not ended when the capture ends: orders")


def test_a_newer_producer_aborts_and_fences_the_older() -> None:
    scene = Scene()
    older, newer = scene.connect(), scene.connect()
    initialize(older)
    add(older)
    initialize(newer, epoch=1)
    add(older, error=INVALID_PRODUCER_EPOCH)
    events = events_of(scene, "transaction")
    assert brief(events)[1:] == [
        ("aborted", "InitProducerId", True),
        ("initialized", "new producer", True),
        ("fenced", "new producer", True),
    ]
    assert len(events[-1].evidence) == 2


def test_a_transaction_outlives_its_timeout() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection, timeout_ms=1000)
    add(connection)
    scene.wait_ms(3000)
    end(connection, error=INVALID_PRODUCER_EPOCH)
    aborted, fenced = events_of(scene, "transaction")[1:]
    assert brief([aborted, fenced]) == [
        ("aborted", "transaction timeout", True),
        ("fenced", "transaction timeout", True),
    ]
    assert (aborted.end_ns - aborted.time_ns) // 10**9 == 3
    assert "aborted by the broker after its timeout of 1000 ms" in aborted.text


@pytest.mark.parametrize("retries", [0, 1])
def test_a_timeout_with_an_epoch_for_each_transaction(retries: int) -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection, timeout_ms=1000)
    write(connection)
    end_in_epoch(connection, 0)
    write(connection)
    scene.wait_ms(3000)
    for _ in range(retries + 1):
        end_in_epoch(connection, 1, error=INVALID_TXN_STATE)
    events = events_of(scene, "transaction")
    assert brief(events)[1:] == [
        ("committed", "EndTxn", True),
        ("aborted", "transaction timeout", True),
        *[("refused", "transaction timeout", True)] * (retries + 1),
    ]
    assert events[2].text.startswith("producer id 9, epoch 1: aborted by the broker after")


def test_a_refused_end_within_the_timeout_has_no_cause() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection, timeout_ms=60_000)
    write(connection)
    scene.wait_ms(3000)
    end_in_epoch(connection, 0, error=INVALID_TXN_STATE)
    refused = brief(only(events_of(scene, "transaction"), "refused"))
    assert refused == [("refused", "INVALID_TXN_STATE", True)]


def test_epochs_of_ended_transactions_are_followed() -> None:
    scene = Scene()
    older, newer = scene.connect(), scene.connect()
    initialize(older)
    for epoch in range(3):
        write(older)
        end_in_epoch(older, epoch)
    initialize(newer, epoch=4)
    end_in_epoch(older, 3, error=INVALID_PRODUCER_EPOCH)
    initialized, fenced = events_of(scene, "transaction")[-2:]
    assert "in epoch 3 is fenced from now on" in initialized.text
    assert fenced.cause == "new producer"
    assert "in epoch 3: INVALID_PRODUCER_EPOCH" in fenced.text


def test_a_transaction_left_open_beyond_its_timeout() -> None:
    scene = Scene()
    connection, other = scene.connect(), scene.connect()
    initialize(connection, timeout_ms=1000)
    write(connection)
    end_in_epoch(connection, 0)
    write(connection)
    scene.wait_ms(2000)
    other.request(METADATA, 1, 1).response(METADATA, 1, 1)
    (event,) = only(events_of(scene, "transaction"), "left open")
    assert brief([event]) == [("left open", "transaction timeout", False)]
    assert event.text.startswith("producer id 9, epoch 1: not ended by its producer")


def test_fencing_without_a_known_producer_is_uncertain() -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection)
    add(connection)
    end(connection, error=INVALID_PRODUCER_EPOCH)
    fenced = brief(only(events_of(scene, "transaction"), "fenced"))
    assert fenced == [("fenced", "INVALID_PRODUCER_EPOCH", False)]


@pytest.mark.parametrize(
    ("error", "name"), [(15, "COORDINATOR_NOT_AVAILABLE"), (22, "ILLEGAL_GENERATION")]
)
def test_refused_offsets_of_a_transaction(error: int, name: str) -> None:
    scene = Scene()
    connection = scene.connect()
    initialize(connection)
    topics = [{"name": "orders", "partitions": [{"error_code": error}]}]
    for _ in range(2):
        exchange(
            connection,
            COMMIT_OFFSETS,
            3,
            {"transactional_id": "tx", "group_id": "g"},
            {"topics": topics},
        )
    (event,) = only(events_of(scene, "transaction"), "commit refused")
    assert (event.cause, event.count) == (name, 2)


def test_consumers_of_the_records() -> None:
    found = only(
        corpus_events("kafka4-librdkafka-transactions.pcap", "transaction"), "records fetched"
    )
    assert [each.text.partition(" fetched")[0] for each in found] == [
        "read_committed at 127.0.0.1",
        "read_uncommitted at 127.0.0.1",
    ]
    assert {each.evidence[0].api for each in found} == {"Fetch"}


def test_produce_adds_partitions_implicitly() -> None:
    events = only(corpus_events("kafka44-java-clients.pcap", "transaction"), "committed")
    assert all(each.certain for each in events)
    assert "kafka44-java-clients.orders.sink 0; offsets of 1 group" in events[0].text


@pytest.mark.parametrize(
    "name", sorted(path.name for path in FOLDER.glob("*librdkafka-transactions.pcap"))
)
def test_transactions_of_librdkafka(name: str) -> None:
    ends = [each.event for each in corpus_events(name, "transaction")]
    assert {"committed", "aborted"} <= set(ends)
