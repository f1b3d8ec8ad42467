"""Producers: errors with their duration, fencing, quotas, sizes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.conform.produce_scenes import RECORDS, batch
from tests.conform.scene import Scene, SceneConnection
from tests.timeline.events_of import brief, corpus_events, events_of
from timeline.events.event import Event

PRODUCE, METADATA, INIT = 0, 3, 22
UNKNOWN_TOPIC, NOT_LEADER, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER = 3, 6, 47, 45
NOT_ENOUGH_REPLICAS, DUPLICATE, UNKNOWN_PRODUCER = 19, 46, 59


def produce(connection: SceneConnection, number: int, error: int | None = 0, **fields: Any) -> None:
    """Send a Produce and its response; None means no response."""
    data = batch(RECORDS, **fields).to_bytes()
    partition = {"index": 0, "records": data}
    topics = [{"name": "orders", "partition_data": [partition]}]
    connection.request(PRODUCE, 9, number, acks=1, topic_data=topics)
    if error is not None:
        results = [{"name": "orders", "partition_responses": [{"error_code": error}]}]
        connection.response(PRODUCE, 9, number, responses=results)


def incidents(events: list[Event]) -> list[Event]:
    """Return the events except hourly ones."""
    return [each for each in events if each.event != "produces"]


def test_a_leader_that_moves() -> None:
    scene = Scene()
    old = scene.connect()
    produce(old, 1, NOT_LEADER)
    scene.wait_ms(200)
    old.request(METADATA, 9, 2, topics=None).response(METADATA, 9, 2)
    scene.wait_ms(600)
    new = scene.connect(broker="10.0.0.3")
    produce(new, 1)
    (event,) = incidents(events_of(scene, "producer"))
    assert (event.event, event.cause) == ("leader changed", "NOT_LEADER_OR_FOLLOWER")
    assert event.text.startswith(
        "orders 0: NOT_LEADER_OR_FOLLOWER from 10.0.0.2:9092, 1 request failed, 1 metadata "
        "refresh; went on at 10.0.0.3:9092 after 8"
    )
    assert [each.api for each in event.evidence] == ["Produce", "Metadata", "Produce"]


def test_a_partition_failing_until_the_end_is_uncertain() -> None:
    scene = Scene()
    produce(scene.connect(), 1, NOT_LEADER)
    found = brief(incidents(events_of(scene, "producer")))
    assert found == [("failed", "NOT_LEADER_OR_FOLLOWER", False)]


def test_a_batch_retried_after_a_lost_response() -> None:
    scene = Scene()
    ids = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 10}
    lost = scene.connect()
    produce(lost, 1, None, **ids)
    lost.fin()
    produce(scene.connect(), 1, **ids)
    events = events_of(scene, "producer")
    assert ("batch repeated", "no response", True) in brief(events)
    assert any("at sequence 10 of producer id 5 sent again" in each.text for each in events)


def test_a_request_in_flight_at_the_end_is_no_event() -> None:
    scene = Scene()
    produce(scene.connect(), 1, None)
    assert events_of(scene, "producer") == []


def test_a_fenced_producer_and_its_successor() -> None:
    scene = Scene()
    older, newer = scene.connect(), scene.connect()
    request = {"transactional_id": "tx", "transaction_timeout_ms": 1}
    newer.request(INIT, 1, 1, **request)
    newer.response(INIT, 1, 1, producer_id=5, producer_epoch=3)
    ids = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 0}
    produce(older, 1, INVALID_PRODUCER_EPOCH, **ids)
    (event,) = incidents(events_of(scene, "producer"))
    assert (event.event, event.cause, event.certain) == ("fenced", "new producer", True)


def test_a_partition_that_succeeds_at_the_same_broker() -> None:
    scene = Scene()
    connection = scene.connect()
    produce(connection, 1, NOT_ENOUGH_REPLICAS)
    scene.wait_ms(100)
    produce(connection, 2, NOT_ENOUGH_REPLICAS)
    produce(connection, 3)
    (event,) = incidents(events_of(scene, "producer"))
    assert (event.event, event.cause, event.certain) == ("retried", "NOT_ENOUGH_REPLICAS", True)
    assert "2 requests failed; succeeded after 11" in event.text


@pytest.mark.parametrize(
    ("error", "name", "cause"),
    [
        (OUT_OF_ORDER, "sequence gap", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (DUPLICATE, "duplicate", "DUPLICATE_SEQUENCE_NUMBER"),
        (UNKNOWN_PRODUCER, "producer id unknown", "UNKNOWN_PRODUCER_ID"),
    ],
)
def test_refused_sequences(error: int, name: str, cause: str) -> None:
    scene = Scene()
    ids = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 77}
    produce(scene.connect(), 1, error, **ids)
    (event,) = incidents(events_of(scene, "producer"))
    assert (event.event, event.cause) == (name, cause)
    assert "at sequence 77" in event.text


def test_quotas_of_the_corpus() -> None:
    events = corpus_events("kafka4-throttled.pcap", "producer")
    (event,) = [each for each in events if each.event == "throttled"]
    assert event.subject == "greedy at 127.0.0.1"
    assert "throttled 2 requests (Produce) for 8.12 s in all, 6015 ms at most" in event.text


def test_a_too_large_batch() -> None:
    events = corpus_events("kafka4-errors.pcap", "producer")
    assert brief(incidents(events)) == [("batch too large", "MESSAGE_TOO_LARGE", True)]


def test_a_topic_created_anew_is_no_change_of_leaders() -> None:
    scene = Scene()
    old = scene.connect()

    def learn(topic_id: UUID, number: int) -> None:
        old.request(METADATA, 12, number, topics=None)
        topic = {"name": "orders", "topic_id": topic_id, "partitions": []}
        old.response(METADATA, 12, number, cluster_id="c", topics=[topic])

    learn(UUID(int=1), 1)
    produce(old, 2, UNKNOWN_TOPIC)
    learn(UUID(int=2), 3)
    new = scene.connect(broker="10.0.0.3")
    produce(new, 4)
    (event,) = incidents(events_of(scene, "producer"))
    assert (event.event, event.cause) == ("topic created anew", "UNKNOWN_TOPIC_OR_PARTITION")
    assert "went on at 10.0.0.3:9092, in the topic created anew, after" in event.text
