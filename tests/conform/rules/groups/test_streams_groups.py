"""Rules R: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from tests.conform.scene import Scene, SceneExchange, breaks, keeps, scene_of

BEAT = 88


def _topology(**sources: Any) -> dict[str, Any]:
    sources = sources or {"source_topics": ["t"]}
    return {"epoch": 0, "subtopologies": [{"subtopology_id": "0", **sources}]}


def _tasks(*tasks: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"subtopology_id": name, "partitions": [number]} for name, number in tasks]


def _beat(epoch: int, returned_epoch: int, *active: tuple[str, int], **more: Any) -> SceneExchange:
    joins = {"topology": _topology(), "rebalance_timeout_ms": 9, "process_id": "p"}
    joins |= {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    stays = dict.fromkeys(("topology", "active_tasks", "standby_tasks", "warmup_tasks"))
    asks = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    asks |= (stays if epoch else joins) | more.pop("asks", {})
    answer = {"member_id": "m", "member_epoch": returned_epoch, "active_tasks": _tasks(*active)}
    return BEAT, 0, asks, answer | more


@keeps("R01")
@keeps("R02")
@keeps("R03")
def joins_stays_and_leaves() -> Scene:
    return scene_of(_beat(0, 1, ("0", 0)), _beat(1, 2, ("0", 1)), _beat(-1, -1))


@breaks("R01")
def joins_without_a_topology() -> Scene:
    return scene_of(_beat(0, 1, asks={"topology": None}))


@breaks("R01")
def an_epoch_that_goes_down() -> Scene:
    return scene_of(_beat(0, 5), _beat(5, 4))


@breaks("R02")
def a_task_without_a_subtopology() -> Scene:
    return scene_of(_beat(0, 1, ("7", 0)))


@breaks("R02")
def a_task_in_two_roles() -> Scene:
    return scene_of(_beat(0, 1, ("0", 0), standby_tasks=_tasks(("0", 0))))


@breaks("R03")
def a_subtopology_without_sources() -> Scene:
    return scene_of(_beat(0, 1, asks={"topology": _topology(source_topics=[])}))


@breaks("R03")
def copartitions_an_unknown_topic() -> Scene:
    groups = [{"source_topics": [3], "source_topic_regex": [], "repartition_source_topics": []}]
    topology = _topology(source_topics=["t"], copartition_groups=groups)
    return scene_of(_beat(0, 1, asks={"topology": topology}))
