"""M: each rule has bytes that break it and bytes that keep it."""

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


def _told(asked: list[dict[str, Any]] | None, *topics: dict[str, Any], version: int = 12) -> Scene:
    talk = Scene().talk().asks(METADATA, version, 1, topics=asked)
    return talk.tells(METADATA, version, 1, brokers=BROKERS, topics=list(topics)).scene


@keeps("M01")
@keeps("M02")
@keeps("M03")
def asks_by_name() -> Scene:
    return _told([{"name": "orders"}, {"name": "other"}], _topic(), _topic("other", OTHER_ID))


@keeps("M01")
@keeps("M02")
def asks_by_id() -> Scene:
    return _told([{"name": None, "topic_id": OTHER_ID}], _topic("other", OTHER_ID))


def test_names_beside_ids_are_not_judged() -> None:
    asked = [{"name": "orders"}, {"name": None, "topic_id": OTHER_ID}]
    verdict = _told(asked, _topic("other", OTHER_ID)).judge()
    assert broken(verdict) == []
    assert not verdict.tallies["M01"].judged


@keeps("M01")
def asks_for_none() -> Scene:
    return _told([])


@keeps("M03")
def asks_for_all() -> Scene:
    return _told(None, _topic(), _topic("other", OTHER_ID))


@keeps("M01")
def asks_for_what_there_is_not() -> Scene:
    missing = {"name": None, "topic_id": OTHER_ID, "error_code": 100}
    return _told([{"name": None, "topic_id": OTHER_ID}], missing)


@breaks("M01")
def tells_all_where_none_was_asked_for() -> Scene:
    return _told([], _topic())


@breaks("M01")
def tells_of_one_twice() -> Scene:
    return _told([{"name": "orders"}], _topic(), _topic())


@breaks("M01")
def leaves_one_out() -> Scene:
    return _told([{"name": "orders"}, {"name": "other"}], _topic())


def test_what_was_not_asked_for_is_named_once() -> None:
    verdict = _told([{"name": "orders"}], _topic(), _topic("other", OTHER_ID)).judge()
    assert [f.path for f in findings(verdict) if f.rule.id == "M01"] == ["topics[1]"]


@breaks("M02")
def asks_by_id_too_early() -> Scene:
    talk = Scene().talk().asks(METADATA, 10, 1, topics=[{"name": None, "topic_id": ORDERS_ID}])
    told = {"name": "", "topic_id": ORDERS_ID, "error_code": INVALID_REQUEST}
    return talk.tells(METADATA, 10, 1, topics=[told]).scene


@breaks("M02")
def asks_for_nothing_by_nothing() -> Scene:
    return _told([{"name": None}], {"name": None, "topic_id": UUID(int=0), "error_code": 42})


@keeps("M03")
def tells_of_replicas_that_are_away() -> Scene:
    away = _topic(replica_nodes=[1, 2, 3], isr_nodes=[1], offline_replicas=[3])
    headless = _topic("other", OTHER_ID, leader_id=-1, error_code=LEADER_NOT_AVAILABLE)
    return _told(None, away, headless)


@keeps("M03")
def tells_less_in_old_versions() -> Scene:
    talk = Scene().talk().asks(METADATA, 1, 1, topics=None)
    partition = {"leader_id": 1, "replica_nodes": [1, 3], "isr_nodes": [1, 3]}
    topic = {"name": "orders", "partitions": [partition]}
    return talk.tells(METADATA, 1, 1, brokers=BROKERS, topics=[topic]).scene


@breaks("M03")
def a_strange_leader() -> Scene:
    return _told(None, _topic(leader_id=7))


@breaks("M03")
def a_leader_that_is_no_replica() -> Scene:
    return _told(None, _topic(replica_nodes=[2], isr_nodes=[2]))


@breaks("M03")
def in_sync_without_being_a_replica() -> Scene:
    return _told(None, _topic(replica_nodes=[1], isr_nodes=[1, 2]))


@breaks("M03")
def away_and_not_told_so() -> Scene:
    return _told(None, _topic(replica_nodes=[1, 3], isr_nodes=[1]))


def _epochs(*epochs: int, ids: tuple[UUID, ...] = ()) -> Scene:
    talk = Scene().talk()
    for number, epoch in enumerate(epochs):
        topic_id = ids[number] if ids else ORDERS_ID
        talk.asks(METADATA, 12, number, topics=None)
        topics = [_topic(topic_id=topic_id, leader_epoch=epoch)]
        talk.tells(METADATA, 12, number, brokers=BROKERS, topics=topics)
    return talk.scene


@keeps("M04")
def epochs_go_up() -> Scene:
    return _epochs(5, 5, 6, -1, 6)


@breaks("M04")
def epochs_go_down() -> Scene:
    return _epochs(5, 6, 5)


def test_a_new_topic_of_the_same_name_begins_anew() -> None:
    assert broken(_epochs(5, 0, ids=(ORDERS_ID, OTHER_ID)).judge()) == []


def _coordinators(version: int, *keys: str, told: tuple[str, ...] = (), **asked: Any) -> Scene:
    talk = Scene().talk().asks(FIND_COORDINATOR, version, 1, coordinator_keys=list(keys), **asked)
    nodes = [{"key": key, "node_id": 1, "host": "a", "port": 9092} for key in told]
    return talk.tells(FIND_COORDINATOR, version, 1, coordinators=nodes).scene


@keeps("M05")
def each_coordinator_is_told_of() -> Scene:
    return _coordinators(4, "a", "b", told=("b", "a"), key_type=1)


@keeps("M05")
def one_by_one() -> Scene:
    talk = Scene().talk().asks(FIND_COORDINATOR, 3, 1, key="a", key_type=1)
    return talk.tells(FIND_COORDINATOR, 3, 1, node_id=1, host="a", port=9092).scene


@breaks("M05")
def one_coordinator_for_two() -> Scene:
    return _coordinators(4, "a", "b", told=("a",))


@breaks("M05")
def another_coordinator() -> Scene:
    return _coordinators(4, "a", told=("b",))


@breaks("M05")
def share_partitions_too_early() -> Scene:
    return _coordinators(5, "a", told=("a",), key_type=2)
