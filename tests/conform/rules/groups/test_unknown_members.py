"""Rules G, part 4: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from tests.conform.scene import Scene, SceneExchange, breaks, broken, keeps, scene_of

JOIN, HEARTBEAT, LEAVE, SYNC = 11, 12, 13, 14


def _joins(generation: int = 4, **more: Any) -> SceneExchange:
    asks = {"group_id": "g", "member_id": "a", "protocols": [{"name": "range"}], **more}
    members = [{"member_id": name, **more} for name in ("a", "b")]
    response = {"generation_id": generation, "leader": "a", "member_id": "a", "members": members}
    response |= {"protocol_name": "range", "protocol_type": "made-up"}
    return JOIN, 7, {**asks, "protocol_type": "made-up"}, response


def _beats(member: str, generation: int = 4, error: int = 0) -> SceneExchange:
    asks = {"group_id": "g", "member_id": member, "generation_id": generation}
    return HEARTBEAT, 3, asks, {"error_code": error}


@keeps("G10")
def members_are_served() -> Scene:
    return scene_of(_joins(), _beats("a"), _beats("b"), _beats("x", error=25))


@breaks("G10")
def an_unknown_member_is_served() -> Scene:
    return scene_of(_joins(), _beats("x"))


@breaks("G10")
def a_future_generation_is_served() -> Scene:
    return scene_of(_joins(), _beats("b", 5))


@breaks("G10")
def a_member_is_served_after_leaving() -> Scene:
    left = LEAVE, 1, {"group_id": "g", "member_id": "b"}, {}
    return scene_of(_joins(), left, _beats("b"))


def test_static_members_return_with_other_ids() -> None:
    assert broken(scene_of(_joins(group_instance_id="s"), _beats("x")).judge()) == []


def _syncs(requested_protocol: str, returned_protocol: str, error: int = 0) -> SceneExchange:
    kind = {"protocol_type": "made-up"}
    asks = {
        "group_id": "g",
        "member_id": "a",
        "generation_id": 4,
        "protocol_name": requested_protocol,
        **kind,
    }
    return SYNC, 5, asks, {"protocol_name": returned_protocol, "error_code": error, **kind}


@keeps("G11")
def by_one_protocol() -> Scene:
    return scene_of(_joins(), _syncs("range", "range"))


@breaks("G11")
def by_another_protocol() -> Scene:
    return scene_of(_joins(), _syncs("sticky", "range"))


@breaks("G11")
def answers_another_protocol() -> Scene:
    return scene_of(_joins(), _syncs("range", "sticky"))
