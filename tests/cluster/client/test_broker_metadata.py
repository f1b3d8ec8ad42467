from __future__ import annotations

from typing import Any
from uuid import UUID

from construct import Container

from cluster.client.broker_metadata import NO_ID, Broker, Leader, Topology

ORDERS_ID = UUID(int=7)


def metadata(version: int = 9, **other: Any) -> Container:
    partition = Container(error_code=0, partition_index=3, leader_id=2)
    topic = Container(error_code=0, name="orders", partitions=[partition])
    if version >= 7:
        partition.leader_epoch = 5
    if version >= 10:
        topic.topic_id = ORDERS_ID
    brokers = [Container(node_id=node, host=f"b{node}", port=9092) for node in (1, 2)]
    return Container({"brokers": brokers, "topics": [topic], "controller_id": 2, **other})


def test_topology_holds_the_content_of_a_response() -> None:
    known = Topology()
    known.update(metadata(12))
    assert known.brokers == {1: Broker(1, "b1", 9092), 2: Broker(2, "b2", 9092)}
    assert known.leader("orders", 3) == Leader(2, 5)
    assert known.topic_id("orders") == ORDERS_ID
    assert known.topic_name(ORDERS_ID) == "orders"
    assert known.controller == 2
    assert known.any_node == 1


def test_old_versions_have_fewer_fields() -> None:
    known = Topology()
    answer = metadata(0)
    del answer["controller_id"]
    known.update(answer)
    assert known.leader("orders", 3) == Leader(2, -1)
    assert known.topic_id("orders") is None
    assert known.topic_name(NO_ID) is None
    assert known.controller == -1


def test_missing_topics_are_unknown() -> None:
    known = Topology()
    known.update(metadata(controller_id=9))
    assert known.controller == -1
    assert known.leader("orders", 0) is None
    assert known.leader("payments", 0) is None
    assert known.topic_id("payments") is None
    failed = Container(error_code=5, name="failed", topic_id=UUID(int=9), partitions=[])
    nameless = Container(error_code=100, name=None, topic_id=UUID(int=8), partitions=[])
    known.update(metadata(topics=[failed, nameless]))
    assert known.topics.keys() == {"orders"}


def test_a_partition_without_a_live_leader_has_no_leader() -> None:
    known = Topology()
    known.update(metadata(brokers=[Container(node_id=1, host="b1", port=9092)]))
    assert known.leader("orders", 3) is None


def test_a_recreated_topic_has_its_new_id_only() -> None:
    known = Topology()
    known.update(metadata(12))
    again = metadata(12)
    again.topics[0].topic_id = UUID(int=8)
    known.update(again)
    assert known.topic_name(ORDERS_ID) is None
    assert known.topic_name(UUID(int=8)) == "orders"
    known.forget(["orders", "never-known"])
    assert known.topics == {}
    assert known.topic_name(UUID(int=8)) is None


def test_a_response_without_brokers_keeps_the_known_ones() -> None:
    known = Topology()
    known.update(metadata())
    known.update(metadata(brokers=[]))
    assert known.brokers.keys() == {1, 2}
    known.forget()
    assert known.topics == {}
