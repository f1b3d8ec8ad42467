"""Rules H: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conform.produce_scenes import batch
from tests.conform.scene import Scene, SceneExchange, breaks, broken, keeps, scene_of

BEAT, FETCH, ACKNOWLEDGE = 76, 78, 79
ORDERS = UUID(int=7)
WHO = {"group_id": "g", "member_id": "m"}
RECORDS = batch().to_bytes()


def _beat(
    epoch: int, returned_epoch: int, topics: list[str] | None = None, **more: Any
) -> SceneExchange:
    asks = {**WHO, "member_epoch": epoch, "subscribed_topic_names": topics, **more}
    return (
        BEAT,
        1,
        asks,
        {"member_id": "m", "member_epoch": returned_epoch, "heartbeat_interval_ms": 9},
    )


@keeps("H01")
def joins_stays_and_leaves() -> Scene:
    return scene_of(_beat(0, 1, ["t"]), _beat(1, 2), _beat(2, 2), _beat(-1, -1))


@breaks("H01")
def joins_without_topics() -> Scene:
    return scene_of(_beat(0, 1))


@breaks("H01")
def an_invalid_epoch() -> Scene:
    return scene_of(_beat(-2, -2))


@breaks("H01")
def an_epoch_that_goes_down() -> Scene:
    return scene_of(_beat(0, 5, ["t"]), _beat(5, 4))


def _parts(**part: Any) -> list[dict[str, Any]]:
    return [{"topic_id": ORDERS, "partitions": [{"partition_index": 0, **part}]}]


def _ranges(*ranges: tuple[int, int, int]) -> list[dict[str, int]]:
    names = "first_offset", "last_offset", "delivery_count"
    return [dict(zip(names, each, strict=True)) for each in ranges]


def _fetch(epoch: int, *given: tuple[int, int, int]) -> SceneExchange:
    asks = {**WHO, "share_session_epoch": epoch, "topics": _parts()}
    topics = _parts(records=RECORDS if given else b"", acquired_records=_ranges(*given))
    return FETCH, 1, asks, {"responses": topics}


def _acknowledge(
    epoch: int, *ranges: tuple[int, int], types: tuple[int, ...] = (1,)
) -> SceneExchange:
    batches = [
        {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
        for first, last in ranges
    ]
    asks = {**WHO, "share_session_epoch": epoch, "topics": _parts(acknowledgement_batches=batches)}
    return ACKNOWLEDGE, 1, asks, {"responses": _parts()}


@keeps("H02")
@keeps("H03")
@keeps("H04")
@keeps("H06")
def takes_and_acknowledges() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _acknowledge(1, (0, 1)), _fetch(2), _acknowledge(-1))


@breaks("H02")
def an_epoch_is_skipped() -> Scene:
    return scene_of(_fetch(0), _fetch(1), _fetch(3))


@breaks("H02")
def begins_by_acknowledging() -> Scene:
    return scene_of(_acknowledge(0))


def test_a_member_may_continue_on_another_connection() -> None:
    scene = scene_of(_fetch(0, (0, 1, 1)))
    assert broken(scene_of(_acknowledge(1, (0, 1)), scene=scene).judge()) == []


@breaks("H03")
def a_range_backwards() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _acknowledge(1, (1, 0)))


@breaks("H03")
def more_types_than_records() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _acknowledge(1, (0, 1), types=(1, 1, 1)))


@breaks("H03")
def an_unknown_type() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _acknowledge(1, (0, 1), types=(4,)))


@breaks("H04")
def acquired_behind_the_records() -> Scene:
    return scene_of(_fetch(0, (0, 9, 1)))


@breaks("H04")
def acquired_never() -> Scene:
    return scene_of(_fetch(0, (0, 1, 0)))


@keeps("H05")
def delivered_again() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _fetch(1, (1, 1, 2)))


@breaks("H05")
def delivered_twice() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _fetch(1, (1, 1, 1)))


@breaks("H06")
def acknowledges_unacquired_records() -> Scene:
    return scene_of(_fetch(0, (0, 1, 1)), _acknowledge(1, (5, 9)))
