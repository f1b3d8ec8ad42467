"""Heartbeats are sent for captured members, and for no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from cluster.conversion.resource_names import NameMap
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.order.group_order import has_partitions
from replay.sessions.heartbeats import Heartbeats
from tests.replay.support.builders import response, step, topology, whole
from tests.replay.support.timers import Timers

MS = 1_000_000
SOON_MS = 3
"""A session so short that a heartbeat is due at once."""

ASSIGNED: dict[str, Any] = {"topic_partitions": []}


@dataclass
class RecordingCluster:
    """A target that records requests and the timers of the loop."""

    answers: list[Any] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    signed: list[str | None] = field(default_factory=list)
    forgotten: int = 0
    timers: Timers = field(default_factory=Timers)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def coordinator(self, kind: Any, key: str) -> int:
        return 7

    def forget_coordinator(self, kind: Any, key: str) -> None:
        self.forgotten += 1

    async def request(
        self, node: int, name: str, body: dict[str, Any], client_id: str | None
    ) -> Container:
        assert node == 7
        self.signed.append(client_id)
        self.requests.append((name, dict(body)))
        self._more.set()
        answer = self.answers.pop(0) if self.answers else {"error_code": 0}
        if isinstance(answer, Exception):
            raise answer
        version = 1 if name == "ConsumerGroupHeartbeat" else 4
        return whole(name, version, answer, "response")

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.requests) < count:
                self._more.clear()
                await self._more.wait()


async def sent() -> None:
    """Wait for the heartbeats in flight."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


async def is_member(beats: Heartbeats, target: RecordingCluster) -> bool:
    """Send a heartbeat at once; return whether there is a member to send it for."""
    await sent()
    before = len(target.requests)
    beats.send_now({"x-g"})
    await sent()
    return len(target.requests) > before


def id_map() -> IdMap:
    found = IdMap(topology({}), NameMap(prefix="x-"))
    found.members.learn("g", "captured", "m")
    found.members.learn_generation("g", "captured", 4, 1)
    return found


def at(name: str, at_ms: int = 0, is_unassigned: bool = False) -> Step:
    made = step(name, 1)
    captured = replace(made.captured, client_id="me", request_time_ns=at_ms * MS)
    return replace(made, captured=captured, is_before_assignment=is_unassigned)


def joined(beats: Heartbeats, session_ms: int = SOON_MS, at_ms: int = 0) -> None:
    join = whole("JoinGroup", 5, {"group_id": "x-g", "session_timeout_ms": session_ms})
    answer = whole("JoinGroup", 5, {"generation_id": 6, "member_id": "m"}, "response")
    beats.record_request("JoinGroup", join)
    beats.record_response(at("JoinGroup", at_ms), None, join, answer)


def responded(beats: Heartbeats, name: str, at_ms: int = 0, **answer: Any) -> Container:
    body = whole(name, 1, {"group_id": "x-g", "member_id": "m"})
    beats.record_request(name, body)
    response = whole(name, 1, answer, "response")
    beats.record_response(at(name, at_ms), None, body, response)
    return response


Play = Callable[[Heartbeats, RecordingCluster, IdMap], Awaitable[None]]
Rebalances = Callable[[str, str], Awaitable[bool]]


async def no_rebalance(group: str, member: str) -> bool:
    return True


def run(play: Play, *answers: Any, rebalances: Rebalances = no_rebalance) -> RecordingCluster:
    async def main() -> RecordingCluster:
        target = RecordingCluster(list(answers))
        known = id_map()
        beats = Heartbeats(cast(Cluster, target), known, rebalances)
        try:
            await play(beats, target, known)
        finally:
            beats.stop()
        assert not await is_member(beats, target)
        return target

    return asyncio.run(main())


def test_heartbeats_are_sent_for_a_silent_member() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats)
        await target.until(3)

    target = run(play, {"error_code": 0}, {"error_code": 27})
    name, body = target.requests[2]
    assert name == "Heartbeat"
    assert set(target.signed) == {"me"}
    assert body == {
        "group_id": "x-g",
        "generation_id": 6,
        "member_id": "m",
        "group_instance_id": None,
    }


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
def test_no_heartbeats_for_an_expelled_member(error: str) -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats)
        await target.until(1)
        assert not await is_member(beats, target)

    assert len(run(play, {"error_code": error_code(error)}).requests) == 1


@pytest.mark.parametrize("stays", [True, False])
def test_a_rebalance_error_in_our_heartbeat_is_passed_on(stays: bool) -> None:
    rebalanced: list[tuple[str, str]] = []

    async def rebalances(group: str, member: str) -> bool:
        rebalanced.append((group, member))
        return stays

    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats)
        await target.until(1)
        assert await is_member(beats, target) is stays

    run(play, {"error_code": error_code("REBALANCE_IN_PROGRESS")}, rebalances=rebalances)
    assert rebalanced == [("g", "captured")]


def test_a_moved_coordinator_is_looked_up_again() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats)
        await target.until(3)

    moved = {"error_code": error_code("NOT_COORDINATOR")}
    assert run(play, moved, ReplayError("a:1", "is gone")).forgotten == 1


def test_no_heartbeats_while_a_request_is_in_flight_or_after_a_leave() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats, session_ms=60_000)
        assert len(target.timers.due_s()) == 1
        beats.record_request(
            "SyncGroup", whole("SyncGroup", 1, {"group_id": "x-g", "member_id": "m"})
        )
        assert not target.timers.due_s()
        responded(beats, "Heartbeat")
        assert len(target.timers.due_s()) == 1
        beats.record_request(
            "LeaveGroup", whole("LeaveGroup", 1, {"group_id": "x-g", "member_id": "m"})
        )
        assert not target.timers.due_s()
        assert not await is_member(beats, target)

    assert not run(play).requests


def test_heartbeats_of_a_group_are_sent_at_once_on_demand() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats, session_ms=60_000)
        beats.send_now({"others"})
        await sent()
        assert not target.requests
        beats.send_now({"x-g"})
        await target.until(1)
        await sent()
        assert len(target.timers.due_s()) == 1
        beats.record_request(
            "SyncGroup", whole("SyncGroup", 1, {"group_id": "x-g", "member_id": "m"})
        )
        beats.send_now({"x-g"})

    assert len(run(play).requests) == 1


def test_heartbeats_are_frequent_while_another_member_joins() -> None:
    """Else the join waits until they see the rebalance, after a third of their session timeout."""

    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats, session_ms=600_000)
        elsewhere = whole("JoinGroup", 5, {"group_id": "x-h"})
        beats.record_request("JoinGroup", elsewhere)
        assert target.timers.due_s()[-1] > 100
        asks = whole("JoinGroup", 5, {"group_id": "x-g"})
        beats.record_request("JoinGroup", asks)
        assert target.timers.due_s()[-1] < 1
        await target.until(2)
        response = whole(
            "JoinGroup", 5, {"error_code": error_code("MEMBER_ID_REQUIRED")}, "response"
        )
        beats.record_response(at("JoinGroup"), None, asks, response)
        responded(beats, "Heartbeat")
        assert target.timers.due_s()[-1] > 100

    assert {name for name, _ in run(play).requests} == {"Heartbeat"}


def test_a_member_silent_beyond_its_session_expires() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats, at_ms=100)
        beats.expect_request(0, 102 * MS)
        assert await is_member(beats, target)
        beats.advance_to(103 * MS)
        assert not await is_member(beats, target)
        responded(beats, "Heartbeat", at_ms=103)
        assert not await is_member(beats, target), "until it joins again"

    assert run(play).requests


def test_a_member_with_a_late_next_request_expires() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        joined(beats)
        beats.expect_request(0, SOON_MS * MS)
        assert not await is_member(beats, target)
        responded(beats, "Heartbeat", at_ms=SOON_MS)
        assert not await is_member(beats, target), "until it joins again"

    assert not run(play).requests


def test_an_assignment_in_our_heartbeat_is_passed_on_later() -> None:
    news = {"member_epoch": 2, "heartbeat_interval_ms": 60_000, "assignment": ASSIGNED}
    name = "ConsumerGroupHeartbeat"
    responses: list[Container] = []

    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        responded(beats, name, member_id="m", member_epoch=1, heartbeat_interval_ms=1)
        await target.until(1)
        await sent()
        assert known.members.live_generation("g", "captured", 4) == 2
        for assignment in (None, ASSIGNED, ASSIGNED):
            before = response(name, 1, {"assignment": assignment})
            body = whole(name, 1, {"group_id": "x-g", "member_id": "m", "member_epoch": 2})
            live = {"member_epoch": 2, "heartbeat_interval_ms": 60_000}
            responses.append(whole(name, 1, live, "response"))
            beats.record_response(at(name), before, body, responses[-1])

    (_, body), *_ = run(play, news).requests
    assert (body["member_epoch"], body["rebalance_timeout_ms"]) == (1, -1)
    assert body["topic_partitions"] is body["subscribed_topic_names"] is None
    assert [each.assignment is not None for each in responses] == [False, True, False]


def test_an_assignment_earlier_than_captured_is_repeated_later() -> None:
    name = "ConsumerGroupHeartbeat"
    some = {"topic_partitions": [{"topic_id": UUID(int=1), "partitions": [0]}]}
    responses: list[Container] = []

    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        steps = [(None, some, True), (ASSIGNED, None, True), (some, None, False)]
        for before, now, is_unassigned in steps:
            body = whole(name, 1, {"group_id": "x-g", "member_id": "m", "member_epoch": 2})
            live = {"member_epoch": 2, "heartbeat_interval_ms": 60_000, "assignment": now}
            responses.append(whole(name, 1, live, "response"))
            shown = response(name, 1, {"assignment": before})
            beats.record_response(at(name, is_unassigned=is_unassigned), shown, body, responses[-1])

    assert not run(play).requests
    assert [has_partitions(each) for each in responses] == [True, False, True]


def test_a_leave_by_epoch_ends_the_heartbeats() -> None:
    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        name = "ConsumerGroupHeartbeat"
        responded(beats, name, member_id="m", member_epoch=1, heartbeat_interval_ms=60_000)
        body = {"group_id": "x-g", "member_id": "m", "member_epoch": -1}
        leaves = whole(name, 1, body)
        beats.record_request(name, leaves)
        beats.record_response(
            at(name), None, leaves, whole(name, 1, {"member_epoch": -1}, "response")
        )
        assert not await is_member(beats, target)

    assert not run(play).requests


def test_a_heartbeat_that_is_sent_again_has_the_newest_epoch() -> None:
    """A coordinator may hand partitions out in several steps, each with an epoch of its own."""

    async def play(beats: Heartbeats, target: RecordingCluster, known: IdMap) -> None:
        name = "ConsumerGroupHeartbeat"
        body = whole(name, 1, {"group_id": "x-g", "member_id": "m", "member_epoch": 1})
        for epoch in (1, 3):
            beats.learn_epoch(body, whole(name, 1, {"member_epoch": epoch}, "response"))
            assert known.members.live_generation("g", "captured", 4) == epoch

    run(play)
