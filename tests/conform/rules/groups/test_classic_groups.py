"""Rules G01 to G05: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tests.conform.scene import Scene, SceneConnection, breaks, broken, findings, keeps

OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 8, 11, 12, 14
MEMBER_ID_REQUIRED, ILLEGAL_GENERATION = 79, 22

SUBSCRIPTION = b"\0\1" + ConsumerProtocolSubscription.codec(1).build(
    {"topics": ["orders"], "owned_partitions": []}
)


def _assignment(*partitions: int) -> bytes:
    assigned = [{"topic": "orders", "partitions": list(partitions)}]
    return b"\0\0" + ConsumerProtocolAssignment.codec(0).build({"assigned_partitions": assigned})


FIRST, SECOND = _assignment(0), _assignment(1)


def _asks_to_join(
    connection: SceneConnection, number: int, member: str, version: int = 5, **more: Any
) -> SceneConnection:
    protocols = [{"name": "range", "metadata": SUBSCRIPTION}]
    wish = {"group_id": "g", "member_id": member, "protocol_type": "consumer"}
    wish |= {"protocols": protocols, "session_timeout_ms": 30_000, **more}
    return connection.request(JOIN_GROUP, version, number, **wish)


def _is_in(
    connection: SceneConnection, number: int, member: str, leader: str = "m1", **more: Any
) -> SceneConnection:
    response = {"generation_id": 1, "protocol_name": "range", "leader": leader, "member_id": member}
    members = [{"member_id": "m1"}, {"member_id": "m2"}] if leader == member else []
    return connection.response(JOIN_GROUP, 5, number, **{**response, "members": members, **more})


def _joins(
    connection: SceneConnection, number: int, member: str, leader: str = "m1", **response: Any
) -> SceneConnection:
    return _is_in(_asks_to_join(connection, number, member), number, member, leader, **response)


def _is_refused(connection: SceneConnection, number: int, member: str) -> SceneConnection:
    response = {"error_code": MEMBER_ID_REQUIRED, "generation_id": -1, "member_id": member}
    return connection.response(JOIN_GROUP, 5, number, **response)


@keeps("G01")
@keeps("G02")
@keeps("G05")
def rejoins_with_the_id() -> Scene:
    connection = _is_refused(_asks_to_join(Scene().connect(), 1, ""), 1, "m1")
    return _joins(connection, 2, "m1").scene


@breaks("G01")
def is_accepted_without_an_id() -> Scene:
    connection = _asks_to_join(Scene().connect(), 1, "")
    return _is_in(connection, 1, "m1").scene


@breaks("G01")
def is_given_no_id() -> Scene:
    return _is_refused(_asks_to_join(Scene().connect(), 1, ""), 1, "").scene


@breaks("G01")
def forgets_its_id() -> Scene:
    connection = _is_refused(_asks_to_join(Scene().connect(), 1, ""), 1, "m1")
    return _is_refused(_asks_to_join(connection, 2, ""), 2, "m2").scene


def test_static_members_and_old_versions_join_at_once() -> None:
    connection = _asks_to_join(Scene().connect(), 1, "", group_instance_id="i")
    assert broken(_is_in(connection, 1, "m1").scene.judge()) == []
    connection = _asks_to_join(Scene().connect(), 1, "", version=3)
    response = {"generation_id": 1, "protocol_name": "range", "leader": "m1", "member_id": "m1"}
    connection.response(JOIN_GROUP, 3, 1, **response, members=[{"member_id": "m1"}])
    assert broken(connection.scene.judge()) == []


def _two(**second: Any) -> Scene:
    """Two members join together; the second may get a different response."""
    scene = Scene()
    first, other = scene.connect(), scene.connect()
    _asks_to_join(first, 1, "m1")
    _asks_to_join(other, 1, "m2", protocols=[{"name": "range"}, {"name": "sticky"}])
    _is_in(first, 1, "m1")
    _is_in(other, 1, "m2", **second)
    return scene


@keeps("G02")
def two_join() -> Scene:
    return _two()


@breaks("G02")
def two_leaders() -> Scene:
    return _two(leader="m2")


@breaks("G02")
def two_protocols() -> Scene:
    return _two(protocol_name="sticky")


@breaks("G02")
def an_unsupported_protocol() -> Scene:
    return _joins(Scene().connect(), 1, "m1", protocol_name="sticky").scene


@breaks("G02")
def members_for_a_follower() -> Scene:
    return _joins(Scene().connect(), 1, "m2", members=[{"member_id": "m1"}]).scene


@breaks("G02")
def a_leader_without_itself() -> Scene:
    return _joins(Scene().connect(), 1, "m1", members=[{"member_id": "m2"}]).scene


def test_a_later_join_may_have_another_leader() -> None:
    scene = Scene()
    _joins(scene.connect(), 1, "m1")
    _joins(scene.connect(), 1, "m2", leader="m2")  # the group was deleted, and restarts
    assert broken(scene.judge()) == []


def _beats(
    connection: SceneConnection, number: int, generation: int, error: int = 0
) -> SceneConnection:
    request = {"group_id": "g", "member_id": "m1", "generation_id": generation}
    return connection.request(HEARTBEAT, 3, number, **request).response(
        HEARTBEAT, 3, number, error_code=error
    )


@keeps("G03")
def beats_in_its_generation() -> Scene:
    connection = _beats(_joins(Scene().connect(), 1, "m1"), 2, 1)
    _joins(connection, 3, "m1", generation_id=2)
    return _beats(_beats(connection, 4, 1, ILLEGAL_GENERATION), 5, 2).scene


@breaks("G03")
def an_old_generation_is_accepted() -> Scene:
    return _beats(_joins(Scene().connect(), 1, "m1", generation_id=4), 2, 3).scene


@breaks("G03")
def an_old_generation_commits() -> Scene:
    connection = _joins(Scene().connect(), 1, "m1", generation_id=4)
    topic = {"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    who = {"group_id": "g", "member_id": "m1", "generation_id_or_member_epoch": 3}
    connection.request(OFFSET_COMMIT, 7, 2, **who, topics=[topic])
    answered = {"name": "orders", "partitions": [{"partition_index": 0}]}
    return connection.response(OFFSET_COMMIT, 7, 2, topics=[answered]).scene


@breaks("G03")
def generations_go_down() -> Scene:
    connection = _joins(Scene().connect(), 1, "m1", generation_id=4)
    return _joins(connection, 2, "m1", generation_id=3).scene


def test_requests_in_flight_are_no_violation() -> None:
    scene = Scene()
    first, other = scene.connect(), scene.connect()
    _asks_to_join(first, 1, "m1")
    other.request(HEARTBEAT, 3, 1, group_id="g", member_id="m1", generation_id=3)
    _is_in(first, 1, "m1", generation_id=4)
    other.response(HEARTBEAT, 3, 1)
    assert broken(scene.judge()) == []


def _syncs(
    connection: SceneConnection, number: int, member: str, given: dict[str, bytes]
) -> SceneConnection:
    assignments = [{"member_id": name, "assignment": data} for name, data in given.items()]
    request = {"group_id": "g", "member_id": member, "generation_id": 1, "assignments": assignments}
    return connection.request(SYNC_GROUP, 3, number, **request)


def _synced(
    given: bytes = SECOND, early: bool = True, of_second: dict[str, bytes] | None = None
) -> Scene:
    """Two members join and sync; the second, answered first or last, is assigned `given`."""
    scene = Scene()
    first, other = scene.connect(), scene.connect()
    _asks_to_join(first, 1, "m1")
    _asks_to_join(other, 1, "m2")
    _is_in(first, 1, "m1")
    _is_in(other, 1, "m2")
    _syncs(other, 2, "m2", of_second or {})
    _syncs(first, 2, "m1", {"m1": FIRST, "m2": SECOND})
    if early:
        other.response(SYNC_GROUP, 3, 2, assignment=given)
    first.response(SYNC_GROUP, 3, 2, assignment=FIRST)
    if not early:
        other.response(SYNC_GROUP, 3, 2, assignment=given)
    return scene


@keeps("G04")
@keeps("G05")
def each_member_gets_its_assignment() -> Scene:
    return _synced()


@keeps("G04")
def each_member_gets_its_assignment_later() -> Scene:
    return _synced(early=False)


def test_the_memory_of_a_response_that_waits_for_the_leader_is_bounded() -> None:
    connection = _joins(_joins(Scene().connect(), 1, "m1"), 2, "m2")
    _syncs(connection, 3, "m2", {}).response(SYNC_GROUP, 3, 3, assignment=SECOND)
    verdict = connection.scene.judge()  # measures the memory of all states
    assert broken(verdict) == []
    assert not any(tally.is_stopped for tally in verdict.tallies.values())


@breaks("G04")
def gets_the_assignment_of_the_leader() -> Scene:
    return _synced(FIRST)


@breaks("G04")
def gets_no_assignment() -> Scene:
    return _synced(b"", early=False)


def test_the_finding_is_at_the_wrong_response() -> None:
    (finding,) = [f for f in findings(_synced(FIRST).judge()) if f.rule.id == "G04"]
    assert (finding.connection, finding.path) == (1, "assignment")


@breaks("G04")
def assigns_without_leading() -> Scene:
    return _synced(of_second={"m2": FIRST})


def test_a_returning_static_member_is_not_judged() -> None:
    connection = _joins(Scene().connect(), 1, "m1")
    _syncs(connection, 2, "m1", {"m1": FIRST, "m2": SECOND}).response(
        SYNC_GROUP, 3, 2, assignment=FIRST
    )
    _is_in(_asks_to_join(connection, 3, "", group_instance_id="i"), 3, "m3")
    connection.request(
        SYNC_GROUP, 3, 4, group_id="g", member_id="m3", generation_id=1, group_instance_id="i"
    )
    verdict = connection.response(SYNC_GROUP, 3, 4, assignment=SECOND).scene.judge()
    assert broken(verdict) == []
    assert [why for why in verdict.tallies["G04"].unjudged if "static" in why]


def _subscribes(data: bytes, kind: str = "consumer") -> Scene:
    protocols = [{"name": "range", "metadata": data}]
    connection = _asks_to_join(Scene().connect(), 1, "m1", protocols=protocols, protocol_type=kind)
    return _is_in(connection, 1, "m1").scene


@keeps("G05")
def a_newer_subscription() -> Scene:
    topics = ConsumerProtocolSubscription.codec(3).build(
        {"topics": ["orders"], "owned_partitions": [], "generation_id": 1, "rack_id": None}
    )
    return _subscribes(b"\0\x09" + topics + b"from a newer member")


@breaks("G05")
def a_cut_subscription() -> Scene:
    return _subscribes(SUBSCRIPTION[:8])


@breaks("G05")
def more_than_a_subscription() -> Scene:
    return _subscribes(SUBSCRIPTION + b"more")


@breaks("G05")
def a_cut_assignment() -> Scene:
    connection = _joins(Scene().connect(), 1, "m1")
    _syncs(connection, 2, "m1", {"m1": FIRST[:9]})
    return connection.response(SYNC_GROUP, 3, 2, assignment=FIRST[:9]).scene


def test_other_protocols_may_have_any_bytes() -> None:
    assert broken(_subscribes(b"\xff", kind="made-up").judge()) == []
