"""Rules M: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conform.scene import Scene, breaks, broken, findings, keeps

METADATA, FIND_COORDINATOR = 3, 10
ORDERS_ID, OTHER_ID = UUID(int=7), UUID(int=8)
BROKERS = [{"node_id": 1, "host": "a", "port": 9092}, {"node_id": 2, "host": "b", "port": 9092}]
UNKNOWN_TOPIC, INVALID_REQUEST, LEADER_NOT_AVAILABLE = 3, 42, 5


def _partition(**more: Any) -> dict[str, Any]:
    whole = {"leader_id": 1, "leader_epoch": 5, "replica_nodes": [1, 2], "isr_nodes": [1, 2]}
    return {**whole, **more}


def _topic(name: str | None = "orders", topic_id: UUID = ORDERS_ID, **more: Any) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "partitions": [_partition(**more)]}


def _metadata(
    requested: list[dict[str, Any]] | None, *topics: dict[str, Any], version: int = 12
) -> Scene:
    connection = Scene().connect().request(METADATA, version, 1, topics=requested)
    return connection.response(METADATA, version, 1, brokers=BROKERS, topics=list(topics)).scene


@keeps("M01")
@keeps("M02")
@keeps("M03")
def asks_by_name() -> Scene:
    return _metadata([{"name": "orders"}, {"name": "other"}], _topic(), _topic("other", OTHER_ID))


@keeps("M01")
@keeps("M02")
def asks_by_id() -> Scene:
    return _metadata([{"name": None, "topic_id": OTHER_ID}], _topic("other", OTHER_ID))


def test_names_beside_ids_are_not_judged() -> None:
    requested = [{"name": "orders"}, {"name": None, "topic_id": OTHER_ID}]
    verdict = _metadata(requested, _topic("other", OTHER_ID)).judge()
    assert broken(verdict) == []
    assert not verdict.tallies["M01"].judged


@keeps("M01")
def asks_for_none() -> Scene:
    return _metadata([])


@keeps("M03")
def asks_for_all() -> Scene:
    return _metadata(None, _topic(), _topic("other", OTHER_ID))


@keeps("M01")
def asks_for_a_missing_topic() -> Scene:
    missing = {"name": None, "topic_id": OTHER_ID, "error_code": 100}
    return _metadata([{"name": None, "topic_id": OTHER_ID}], missing)


@breaks("M01")
def returns_all_though_none_was_requested() -> Scene:
    return _metadata([], _topic())


@breaks("M01")
def lists_a_topic_twice() -> Scene:
    return _metadata([{"name": "orders"}], _topic(), _topic())


@breaks("M01")
def leaves_one_out() -> Scene:
    return _metadata([{"name": "orders"}, {"name": "other"}], _topic())


def test_a_topic_not_requested_is_reported_once() -> None:
    verdict = _metadata([{"name": "orders"}], _topic(), _topic("other", OTHER_ID)).judge()
    assert [f.path for f in findings(verdict) if f.rule.id == "M01"] == ["topics[1]"]


@breaks("M02")
def asks_by_id_too_early() -> Scene:
    connection = (
        Scene().connect().request(METADATA, 10, 1, topics=[{"name": None, "topic_id": ORDERS_ID}])
    )
    topic = {"name": "", "topic_id": ORDERS_ID, "error_code": INVALID_REQUEST}
    return connection.response(METADATA, 10, 1, topics=[topic]).scene


@breaks("M02")
def asks_for_nothing_by_nothing() -> Scene:
    return _metadata([{"name": None}], {"name": None, "topic_id": UUID(int=0), "error_code": 42})


@keeps("M03")
def lists_offline_replicas() -> Scene:
    away = _topic(replica_nodes=[1, 2, 3], isr_nodes=[1], offline_replicas=[3])
    headless = _topic("other", OTHER_ID, leader_id=-1, error_code=LEADER_NOT_AVAILABLE)
    return _metadata(None, away, headless)


@keeps("M03")
def omits_fields_of_later_versions() -> Scene:
    connection = Scene().connect().request(METADATA, 1, 1, topics=None)
    partition = {"leader_id": 1, "replica_nodes": [1, 3], "isr_nodes": [1, 3]}
    topic = {"name": "orders", "partitions": [partition]}
    return connection.response(METADATA, 1, 1, brokers=BROKERS, topics=[topic]).scene


@breaks("M03")
def an_unknown_leader() -> Scene:
    return _metadata(None, _topic(leader_id=7))


@breaks("M03")
def a_leader_that_is_no_replica() -> Scene:
    return _metadata(None, _topic(replica_nodes=[2], isr_nodes=[2]))


@breaks("M03")
def in_sync_without_being_a_replica() -> Scene:
    return _metadata(None, _topic(replica_nodes=[1], isr_nodes=[1, 2]))


@breaks("M03")
def offline_and_not_listed_as_offline() -> Scene:
    return _metadata(None, _topic(replica_nodes=[1, 3], isr_nodes=[1]))


def _epochs(*epochs: int, ids: tuple[UUID, ...] = ()) -> Scene:
    connection = Scene().connect()
    for number, epoch in enumerate(epochs):
        topic_id = ids[number] if ids else ORDERS_ID
        connection.request(METADATA, 12, number, topics=None)
        topics = [_topic(topic_id=topic_id, leader_epoch=epoch)]
        connection.response(METADATA, 12, number, brokers=BROKERS, topics=topics)
    return connection.scene


@keeps("M04")
def epochs_go_up() -> Scene:
    return _epochs(5, 5, 6, -1, 6)


@breaks("M04")
def epochs_go_down() -> Scene:
    return _epochs(5, 6, 5)


@breaks("M04")
def epochs_start_again() -> Scene:
    return _epochs(1, 0)


def test_a_recreated_topic_starts_with_new_epochs() -> None:
    assert broken(_epochs(5, 0, ids=(ORDERS_ID, OTHER_ID)).judge()) == []


def _coordinators(
    version: int, *keys: str, returned: tuple[str, ...] = (), **request: Any
) -> Scene:
    connection = (
        Scene()
        .connect()
        .request(FIND_COORDINATOR, version, 1, coordinator_keys=list(keys), **request)
    )
    nodes = [{"key": key, "node_id": 1, "host": "a", "port": 9092} for key in returned]
    return connection.response(FIND_COORDINATOR, version, 1, coordinators=nodes).scene


@keeps("M05")
def returns_each_coordinator() -> Scene:
    return _coordinators(4, "a", "b", returned=("b", "a"), key_type=1)


@keeps("M05")
def one_coordinator_per_request() -> Scene:
    connection = Scene().connect().request(FIND_COORDINATOR, 3, 1, key="a", key_type=1)
    return connection.response(FIND_COORDINATOR, 3, 1, node_id=1, host="a", port=9092).scene


@breaks("M05")
def one_coordinator_for_two() -> Scene:
    return _coordinators(4, "a", "b", returned=("a",))


@breaks("M05")
def another_coordinator() -> Scene:
    return _coordinators(4, "a", returned=("b",))


@breaks("M05")
def share_partitions_too_early() -> Scene:
    return _coordinators(5, "a", returned=("a",), key_type=2)
