"""Rules A and N: scenes that break and keep each rule."""

from __future__ import annotations

import pytest

from tests.conform.scene import Scene, breaks, broken, keeps, scene_of

METADATA, DELETE_TOPICS, HEARTBEAT = 3, 20, 12


def _deleted(*returned: str, requested: tuple[str, ...] = ("a", "b")) -> Scene:
    response = {"responses": [{"name": name} for name in returned]}
    return scene_of((DELETE_TOPICS, 5, {"topic_names": list(requested), "timeout_ms": 9}, response))


@keeps("A01")
@keeps("A02")
def returns_both() -> Scene:
    return _deleted("b", "a")


@breaks("A01")
def returns_one_twice() -> Scene:
    return _deleted("a", "b", "a")


@breaks("A01")
def asks_for_one_twice() -> Scene:
    return _deleted("a", "b", requested=("a", "b", "a"))


@keeps("A01")
def a_consumer_asks_for_the_metadata_of_an_assigned_topic_twice() -> Scene:
    topics = [{"name": "t"}, {"name": "t"}]
    partitions = [{"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}]
    response = {
        "brokers": [{"node_id": 1, "host": "h", "port": 9092}],
        "topics": [{"name": "t", "partitions": partitions}],
    }
    return scene_of((METADATA, 8, {"topics": topics}, response))


@breaks("A02")
def leaves_one_out() -> Scene:
    return _deleted("a")


@breaks("A02")
def adds_one() -> Scene:
    return _deleted("a", "b", "c")


def test_a_topic_may_be_split_over_entries() -> None:
    asks = [
        {"name": "t", "partitions": [{"partition_index": each, "timestamp": -1}]} for each in (0, 1)
    ]
    parts = [
        {"partition_index": each, "timestamp": -1, "offset": 5, "leader_epoch": -1}
        for each in (0, 1)
    ]
    responses = [{"name": "t", "partitions": parts}]
    verdict = scene_of((2, 4, {"replica_id": -1, "topics": asks}, {"topics": responses})).judge()
    assert broken(verdict) == []


@pytest.mark.parametrize("error", [0, 35])
def test_an_error_for_all_needs_no_items(error: int) -> None:
    asks = {"group_id": "g", "members": [{"member_id": "m", "group_instance_id": None}]}
    verdict = scene_of((13, 4, asks, {"error_code": error})).judge()
    assert ("A02" in broken(verdict)) is not bool(error)


def _beats(**response: int) -> Scene:
    return scene_of(
        (HEARTBEAT, 3, {"group_id": "g", "member_id": "m", "generation_id": 1}, response)
    )


@keeps("N01")
def timeout_of_0() -> Scene:
    return _beats(throttle_time_ms=0)


@breaks("N01")
def negative_timeout() -> Scene:
    return _beats(throttle_time_ms=-20)


@breaks("N01")
def broker_without_a_port() -> Scene:
    asks = {"key": "g", "key_type": 0}
    return scene_of((10, 3, asks, {"node_id": 1, "host": "h", "port": 70000}))


@breaks("N01")
def generation_below_minus_1() -> Scene:
    asks = {"group_id": "g", "member_id": "m", "generation_id": -7}
    return scene_of((HEARTBEAT, 3, asks, {"error_code": 22}))
