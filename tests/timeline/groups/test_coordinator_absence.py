"""Coordinators that restart: the rebalance after it, and the timers that begin anew."""

from __future__ import annotations

import pytest

from tests.conform.scene import Scene
from tests.dissector.capture.handmade_packets import ACK, RST, SYN
from tests.timeline.events_of import brief, events_of, only
from tests.timeline.groups.test_classic_group_tracker import (
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
    Member,
    pair,
)

FIND_COORDINATOR = 10
LOADING, NOT_AVAILABLE = 14, 15


def stop(*members: Member) -> None:
    """The coordinator closes the connections of members."""
    for member in members:
        member.connection.rst(1)


def find(member: Member, error: int = 0) -> None:
    """Look for the coordinator on a new connection."""
    member.connection = member.scene.connect()
    request = {"key": "g", "key_type": 0}
    member.connection.request(FIND_COORDINATOR, 3, 1, **request)
    member.connection.response(FIND_COORDINATOR, 3, 1, error_code=error, node_id=1, host="10.0.0.2")


def refuse(scene: Scene) -> None:
    """A connection is refused, as the coordinator is down."""
    failed = scene.wire.connect(52000)
    failed.send_segment(0, SYN, before=True)
    failed.send_segment(1, RST | ACK)


def single() -> tuple[Scene, Member]:
    """Return a group of one member in generation 1."""
    scene = Scene()
    member = Member(scene, "first")
    member.ask_to_join()
    member.joined(1, "first", "first")
    member.sync(1, 0)
    return scene, member


def join_anew(member: Member) -> None:
    """Join under a new id; the coordinator waits for the old one until its session timeout."""
    member.name = "first-again"
    member.ask_to_join()
    member.scene.wait_ms(2000)
    member.joined(2, member.name, member.name)
    member.sync(2, 0)


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_client_that_joins_anew_after_a_restart(is_refused: bool) -> None:
    scene, member = single()
    stop(member)
    scene.wait_ms(8000)  # longer than the session timeout
    if is_refused:
        refuse(scene)
    scene.wait_ms(1000)
    find(member)
    scene.wait_ms(4000)
    join_anew(member)
    events = events_of(scene, "group")
    assert brief(only(events, "coordinator restarted")) == [("coordinator restarted", "", False)]
    rebalance = only(events, "rebalance")[1]
    assert brief([rebalance]) == [("rebalance", "coordinator restarted", is_refused)]
    assert "first-again joined, after the coordinator was away for 9.0" in rebalance.text
    assert "session timeout" not in rebalance.text


def test_another_client_that_joins_after_a_restart() -> None:
    scene, member = single()
    stop(member)
    scene.wait_ms(3000)
    find(member)
    member.beat(1)
    second = Member(scene, "second")
    second.ask_to_join()
    member.ask_to_join()
    member.joined(2, "first", "first", "second")
    second.joined(2, "first")
    assert only(events_of(scene, "group"), "rebalance")[1].cause == "joined"


def test_members_that_go_on_after_a_restart_do_not_rebalance() -> None:
    scene, first, second = pair()
    stop(first, second)
    scene.wait_ms(3000)
    for member in (first, second):
        find(member)
        member.beat(1)
    names = [each.event for each in events_of(scene, "group")]
    assert sorted(names) == ["coordinator restarted", "joined", "joined", "rebalance"]


def test_session_timeouts_begin_anew_when_the_group_is_loaded() -> None:
    scene, first, second = pair()
    stop(first, second)
    scene.wait_ms(9000)
    find(first)
    for _ in range(2):
        first.beat(1)
        scene.wait_ms(3000)
    first.beat(1, 27)
    first.ask_to_join()
    first.joined(2, "first", "first")
    first.sync(2, 0, 1, 2)
    rebalance = only(events_of(scene, "group"), "rebalance")[1]
    assert brief([rebalance]) == [("rebalance", "session timeout", True)]
    assert "after the coordinator was away for 9.0" in rebalance.text


@pytest.mark.parametrize("wait_ms", [10, 5000])
def test_one_closed_connection_of_two_or_a_short_absence_is_no_restart(wait_ms: int) -> None:
    scene, first, second = pair()
    stop(*((first, second) if wait_ms < 1000 else (first,)))
    scene.wait_ms(wait_ms)
    find(first)
    first.beat(1)
    second.connection = scene.connect()
    second.beat(1)
    assert not only(events_of(scene, "group"), "coordinator restarted")


def test_a_coordinator_that_loads_the_group() -> None:
    scene, member = single()
    find(member, NOT_AVAILABLE)
    scene.wait_ms(500)
    member.beat(1, LOADING)
    scene.wait_ms(500)
    member.beat(1)
    events = events_of(scene, "group")
    assert [each.event for each in events][2:] == ["coordinator away"]
    assert events[-1].text.startswith("10.0.0.2:9092 was not its coordinator, or had not loaded")


def test_a_coordinator_that_stops_moves_its_groups() -> None:
    scene, first, second = pair()
    first.beat(1, NOT_COORDINATOR)
    stop(first, second)
    scene.wait_ms(400)
    for member in (first, second):
        member.connection = scene.connect(broker="10.0.0.3")
        member.beat(1)
    events = events_of(scene, "group")
    assert [each.event for each in events][3:] == ["coordinator lost", "coordinator moved"]
    assert len(only(events, "coordinator moved")[0].evidence) == 3


def test_a_commit_that_is_not_replicated_is_refused() -> None:
    scene, member = single()
    member.commit(1, error=NOT_AVAILABLE)
    member.commit(1)
    (refused,) = only(events_of(scene, "group"), "commit refused")
    assert refused.cause == "COORDINATOR_NOT_AVAILABLE"


def test_a_commit_without_member_id_is_of_the_member_before() -> None:
    scene, member = single()
    member.name = ""
    member.commit(1, error=UNKNOWN_MEMBER_ID)
    member.commit(-1, error=UNKNOWN_MEMBER_ID)
    own, simple = only(events_of(scene, "group"), "commit refused")
    assert own.text.startswith("OffsetCommit of first, without its id, in generation 1: UNKNOWN")
    assert simple.text.startswith("OffsetCommit of a new member: UNKNOWN")
    scene, first, _ = pair()
    first.name = ""
    first.commit(1, error=UNKNOWN_MEMBER_ID)
    (event,) = only(events_of(scene, "group"), "commit refused")
    assert event.text.startswith("OffsetCommit of a former member, without its id, in")
