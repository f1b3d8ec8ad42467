"""The cluster: leaders, brokers, controllers, topics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.conform.scene import Scene, scene_of
from tests.timeline.events_of import brief, corpus_events, events_of, only

METADATA, UPDATE_METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 3, 6, 19, 20, 37
ELECT_LEADERS, REASSIGN = 43, 45
FIRST, SECOND = UUID(int=1), UUID(int=2)
UNKNOWN_TOPIC, ELECTION_NOT_NEEDED = 3, 84


def test_a_broker_that_dies() -> None:
    events = corpus_events("kafka4-leader-change.pcap", "cluster")
    (moved,) = only(events, "leader moved")
    assert moved.text == (
        "kafka4-leader-change.orders 0: from broker 1 to broker 2, leader epoch 0 to 1"
    )
    assert [each.event for each in events].count("ISR shrunk") == 2
    assert only(events, "broker gone")[0].text == "broker 1 at 127.0.0.1:28713"


def test_a_reassignment() -> None:
    events = corpus_events("kafka4-reassignment.pcap", "cluster")
    assert "kafka4-reassignment.orders 0 to [3, 1]" in only(events, "reassignment")[0].text
    assert only(events, "ISR altered")


def test_the_quorum_elects_a_controller() -> None:
    events = corpus_events("kafka4-quorum.pcap", "cluster")
    assert only(events, "controller elected")[0].text == "controller 1 leads the quorum, epoch 3"
    assert not only(events, "controller changed")  # in KRaft, Metadata has any broker as controller


def test_topics() -> None:
    events = corpus_events("kafka4-errors.pcap", "cluster")
    assert ("topic created", "", True) in brief(events)
    assert ("topic not created", "INVALID_REPLICATION_FACTOR", True) in brief(events)


def _metadata(
    scene: Scene,
    leader: int,
    isr: list[int],
    brokers: list[int],
    epoch: int = 1,
    topic_id: UUID | None = None,
) -> None:
    """Request the metadata of a topic with one partition."""
    version = 9 if topic_id is None else 12
    connection = scene.connect()
    connection.request(METADATA, version, 1, topics=None)
    partition = {"leader_id": leader, "leader_epoch": epoch, "isr_nodes": isr}
    topic = {"name": "orders", "partitions": [partition]}
    connection.response(
        METADATA,
        version,
        1,
        cluster_id="c",
        brokers=[{"node_id": each, "host": f"b{each}", "port": 9092} for each in brokers],
        topics=[topic if topic_id is None else {**topic, "topic_id": topic_id}],
    )


@pytest.mark.parametrize(
    ("isr", "event"),
    [([1], "ISR shrunk"), ([1, 2, 3], "ISR grown"), ([1, 3], "ISR changed")],
)
def test_replicas_in_sync(isr: list[int], event: str) -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2])
    _metadata(scene, 1, isr, [1, 2])
    (found,) = events_of(scene, "cluster")
    assert (found.event, found.subject) == (event, "c")
    assert found.text == f"orders 0: [1, 2] -> {isr}"
    assert len(found.evidence) == 2


def test_brokers_that_appear_and_vanish() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2])
    _metadata(scene, 1, [1, 2], [1, 3])
    found = [(each.event, each.text) for each in events_of(scene, "cluster")]
    assert found == [
        ("broker gone", "broker 2 at b2:9092"),
        ("broker appeared", "broker 3 at b3:9092"),
    ]


def test_brokers_that_register() -> None:
    events = only(corpus_events("kafka4-quorum.pcap", "cluster"), "broker registered")
    assert events[0].text.startswith("broker ")
    assert {each.api for each in events[0].evidence} == {"BrokerRegistration"}


@pytest.mark.parametrize(
    ("key", "version", "request_fields", "results", "event"),
    [
        (DELETE_TOPICS, 5, {"topic_names": ["orders"]}, "responses", "topic deleted"),
        (CREATE_PARTITIONS, 3, {}, "results", "topic partitions added"),
        (DELETE_TOPICS, 5, {"topic_names": ["orders"]}, "responses", "topic not deleted"),
        (CREATE_PARTITIONS, 3, {}, "results", "topic partitions not added"),
    ],
)
def test_changed_topics(
    key: int, version: int, request_fields: dict[str, Any], results: str, event: str
) -> None:
    error = UNKNOWN_TOPIC if " not " in event else 0
    answer = {results: [{"name": "orders", "error_code": error}]}
    (found,) = events_of(scene_of((key, version, request_fields, answer)), "cluster")
    assert (found.event, found.certain) == (event, True)
    assert found.cause == ("UNKNOWN_TOPIC_OR_PARTITION" if error else "")
    assert found.text.startswith("orders")


def test_an_election() -> None:
    moved = {"partition_id": 0}
    unneeded = {"partition_id": 1, "error_code": ELECTION_NOT_NEEDED}
    answer = {
        "replica_election_results": [{"topic": "orders", "partition_result": [moved, unneeded]}]
    }
    (found,) = events_of(scene_of((ELECT_LEADERS, 2, {}, answer)), "cluster")
    assert found.event == "election"
    assert found.text.endswith(": orders 0")


def test_a_controller_of_zookeeper_that_changes() -> None:
    scene = Scene()
    connection = scene.connect()
    for number, (controller, epoch) in enumerate([(1, 7), (1, 7), (2, 8)]):
        head = {"controller_id": controller, "controller_epoch": epoch}
        connection.request(UPDATE_METADATA, 5, number, **head)
        connection.response(UPDATE_METADATA, 5, number)
    (found,) = events_of(scene, "cluster")
    assert found.event == "controller changed"
    assert found.text == "broker 2 is the controller, controller epoch 8"


def test_another_topic_id_is_no_change_of_leaders() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2], epoch=5, topic_id=FIRST)
    _metadata(scene, 2, [1, 2], [1, 2], epoch=0, topic_id=SECOND)
    _metadata(scene, 1, [1, 2], [1, 2], epoch=5, topic_id=FIRST)  # stale
    _metadata(scene, 1, [1, 2], [1, 2], epoch=1, topic_id=SECOND)
    anew, moved = events_of(scene, "cluster")
    assert brief([anew, moved]) == [("topic created anew", "", True), ("leader moved", "", True)]
    assert anew.text == f"orders: topic id {FIRST} before, {SECOND} now"
    assert moved.text == "orders 0: from broker 2 to broker 1, leader epoch 0 to 1"


@pytest.mark.parametrize("version", [2, 7])
def test_a_topic_created_after_its_deletion(version: int) -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2], epoch=5, topic_id=FIRST)
    admin = scene.connect()
    admin.request(DELETE_TOPICS, 4, 1, topic_names=["orders"])
    admin.response(DELETE_TOPICS, 4, 1, responses=[{"name": "orders"}])
    admin.request(CREATE_TOPICS, version, 2, topics=[{"name": "orders"}])
    created: dict[str, Any] = {"name": "orders"}
    admin.response(
        CREATE_TOPICS,
        version,
        2,
        topics=[created if version < 7 else {**created, "topic_id": SECOND}],
    )
    _metadata(scene, 2, [1, 2], [1, 2], epoch=0, topic_id=SECOND)
    names = [each.event for each in events_of(scene, "cluster")]
    assert names == ["topic deleted", "topic created anew"]


def test_another_leader_in_the_same_epoch_is_of_another_topic() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2], epoch=0)
    _metadata(scene, 2, [1, 2], [1, 2], epoch=0)
    _metadata(scene, 2, [1, 2], [1, 2], epoch=0)
    assert brief(events_of(scene, "cluster")) == [("topic created anew", "", False)]


def _reassign(scene: Scene, *replicas: int, error: int = 0) -> None:
    admin = scene.connect()
    place = {"partition_index": 0}
    admin.request(
        REASSIGN,
        0,
        1,
        topics=[{"name": "orders", "partitions": [{**place, "replicas": list(replicas)}]}],
    )
    results = [{"name": "orders", "partitions": [{**place, "error_code": error}]}]
    admin.response(REASSIGN, 0, 1, responses=results)


def test_a_reassignment_is_the_cause_of_what_follows_it() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2, 3])
    scene.wait_ms(2000)
    _reassign(scene, 2, 3)
    _metadata(scene, 1, [1, 2, 3], [1, 2, 3])
    _metadata(scene, 2, [1, 2, 3], [1, 2, 3], epoch=2)
    _metadata(scene, 2, [2, 3], [1, 2, 3], epoch=2)
    _metadata(scene, 2, [2], [1, 2, 3], epoch=2)
    events = events_of(scene, "cluster")
    assert brief(events) == [
        ("reassignment", "", True),
        ("ISR grown", "reassignment", True),
        ("leader moved", "reassignment", True),
        ("ISR shrunk", "reassignment", True),
        ("ISR shrunk", "", True),
    ]
    assert all(each.time_ns >= events[0].time_ns for each in events)
    assert "AlterPartitionReassignments" in {each.api for each in events[1].evidence}


def test_a_refused_reassignment_is_no_cause() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2])
    _reassign(scene, 2, error=39)
    _metadata(scene, 2, [1, 2], [1, 2], epoch=2)
    assert brief(events_of(scene, "cluster")) == [
        ("leader moved", "", True),
        ("not reassigned", "INVALID_REPLICA_ASSIGNMENT", True),
    ]


def test_an_election_is_the_cause_of_one_move() -> None:
    scene = Scene()
    _metadata(scene, 1, [1, 2], [1, 2])
    admin = scene.connect()
    admin.request(ELECT_LEADERS, 1, 1, topic_partitions=None)
    results = [{"topic": "orders", "partition_result": [{"partition_id": 0}]}]
    admin.response(ELECT_LEADERS, 1, 1, replica_election_results=results)
    _metadata(scene, 2, [1, 2], [1, 2], epoch=2)
    _metadata(scene, 1, [1, 2], [1, 2], epoch=3)
    moved = only(events_of(scene, "cluster"), "leader moved")
    assert [each.cause for each in moved] == ["election", ""]
