"""Rules M, part 2: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conform.scene import Scene, SceneExchange, breaks, broken, keeps, scene_of

METADATA = 3
BROKERS = [{"node_id": 1, "host": "h", "port": 9092}]


def _topic(name: str, number: int, *partitions: int) -> dict[str, Any]:
    parts = [
        {"partition_index": each, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
        for each in partitions or (0,)
    ]
    return {"name": name, "topic_id": UUID(int=number), "partitions": parts}


def _metadata(*topics: dict[str, Any], controller: int = 1) -> SceneExchange:
    response = {"brokers": BROKERS, "controller_id": controller, "topics": list(topics)}
    return METADATA, 12, {"topics": None}, response


@keeps("M06")
@keeps("M07")
@keeps("M08")
def usual_metadata() -> Scene:
    return scene_of(_metadata(_topic("a", 1), _topic("b", 2, 1, 0)), _metadata(_topic("a", 1)))


@breaks("M06")
def an_unknown_controller() -> Scene:
    return scene_of(_metadata(controller=9))


@breaks("M07")
def two_topics_with_one_id() -> Scene:
    return scene_of(_metadata(_topic("a", 1), _topic("b", 1)))


@breaks("M07")
def an_id_comes_back() -> Scene:
    return scene_of(_metadata(_topic("a", 1)), _metadata(_topic("a", 2)), _metadata(_topic("a", 1)))


def test_another_id_alone_is_a_note() -> None:
    scene = scene_of(_metadata(_topic("a", 1)), _metadata(_topic("a", 2)))
    assert broken(scene.judge()) == []
    assert "M07" in broken(scene.judge(), "M07")


@breaks("M07")
def served_by_the_former_id() -> Scene:
    scene = scene_of(_metadata(_topic("a", 1)), _metadata(_topic("a", 2)))
    part = {"partition_index": 0, "high_watermark": 0, "last_stable_offset": 0, "records": None}
    part |= {"log_start_offset": 0, "preferred_read_replica": -1, "aborted_transactions": None}
    asks = [{"topic_id": UUID(int=1), "partitions": [{"partition": 0}]}]
    response = {"responses": [{"topic_id": UUID(int=1), "partitions": [part]}]}
    return scene_of((1, 15, {"topics": asks, "session_epoch": -1}, response), scene=scene)


@breaks("M08")
def a_partition_is_missing() -> Scene:
    return scene_of(_metadata(_topic("a", 1, 0, 2)))


@breaks("M08")
def fewer_than_before() -> Scene:
    return scene_of(_metadata(_topic("a", 1, 0, 1)), _metadata(_topic("a", 1)))
