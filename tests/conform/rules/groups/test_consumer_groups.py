"""Rule G06: scenes that break and keep it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from conform.registry.rank import Severity
from conform.registry.verdict import Finding
from tests.conform.scene import Scene, SceneConnection, breaks, findings, keeps

HEARTBEAT = 68
INVALID_REQUEST, FENCED_MEMBER_EPOCH = 42, 110
JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}
STAY = {**JOIN, "rebalance_timeout_ms": -1, "topic_partitions": None}


def _beat(
    connection: SceneConnection, number: int, request: dict[str, Any], **response: Any
) -> SceneConnection:
    return connection.request(HEARTBEAT, 1, number, **request).response(
        HEARTBEAT, 1, number, **response
    )


def _once(**more: Any) -> Scene:
    response = {"member_epoch": 1, "member_id": "m"}
    return _beat(Scene().connect(), 1, {**JOIN, **more}, **response).scene


def _refused(**more: Any) -> Scene:
    return _beat(Scene().connect(), 1, {**JOIN, **more}, error_code=INVALID_REQUEST).scene


@keeps("G06")
def joins_stays_and_leaves() -> Scene:
    connection = _beat(Scene().connect(), 1, JOIN, member_epoch=3, member_id="m")
    _beat(connection, 2, {**STAY, "member_epoch": 3}, member_epoch=4, member_id="m")
    _beat(connection, 3, {**STAY, "member_epoch": 9}, error_code=FENCED_MEMBER_EPOCH)
    return _beat(connection, 4, {**STAY, "member_epoch": -1}, member_epoch=-1).scene


@keeps("G06")
def joins_by_a_pattern() -> Scene:
    return _once(subscribed_topic_names=None, subscribed_topic_regex="orders.*")


@breaks("G06")
def joins_without_a_timeout() -> Scene:
    return _refused(rebalance_timeout_ms=-1)


@breaks("G06")
def joins_with_partitions() -> Scene:
    return _refused(topic_partitions=[{"topic_id": UUID(int=1), "partitions": [0]}])


@breaks("G06")
def joins_without_topics() -> Scene:
    return _refused(subscribed_topic_names=[])


@breaks("G06")
def has_no_id() -> Scene:
    return _refused(member_id="")


@breaks("G06")
def an_invalid_epoch() -> Scene:
    return _refused(member_epoch=-3)


@breaks("G06")
def leaves_temporarily_without_an_instance_id() -> Scene:
    return _refused(member_epoch=-2)


@breaks("G06")
def is_accepted_nevertheless() -> Scene:
    return _once(rebalance_timeout_ms=-1)


@breaks("G06")
def has_joined_with_epoch_0() -> Scene:
    return _beat(Scene().connect(), 1, JOIN, member_epoch=0, member_id="m").scene


@breaks("G06")
def leaves_and_gets_another_epoch() -> Scene:
    connection = _beat(Scene().connect(), 1, JOIN, member_epoch=3, member_id="m")
    return _beat(connection, 2, {**STAY, "member_epoch": -1}, member_epoch=3).scene


@breaks("G06")
def a_future_epoch_is_accepted() -> Scene:
    connection = _beat(Scene().connect(), 1, JOIN, member_epoch=3, member_id="m")
    return _beat(connection, 2, {**STAY, "member_epoch": 5}, member_epoch=5, member_id="m").scene


def _found(scene: Scene) -> list[Finding]:
    return [each for each in findings(scene.judge()) if each.rule.id == "G06"]


def test_a_refused_violation_is_a_warning_and_an_accepted_one_an_error() -> None:
    assert {f.severity for f in _found(_refused(member_id=""))} == {Severity.WARNING}
    taken = _found(_once(rebalance_timeout_ms=-1))
    assert sorted(f.side for f in taken) == ["broker", "client"]
    assert {f.severity for f in taken} == {Severity.ERROR}
