"""The leader of the group at the target sends the captured assignment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from construct import Container

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.order.group_order import GroupHistory
from replay.plan.plan import Plan
from replay.sessions.group_sessions import GroupSessions
from tests.replay.support.builders import request, topology, whole

ASSIGNED = [{"member_id": each, "assignment": each.encode()} for each in ("one", "two")]


def sync(member: str, assignments: list[dict[str, Any]]) -> Message:
    body = {
        "group_id": "g",
        "generation_id": 3,
        "member_id": member,
        "assignments": assignments,
    }
    return request("SyncGroup", 3, body)


def groups(leader: str) -> GroupSessions:
    captured = SimpleNamespace(request_message=lambda: sync("one", ASSIGNED))
    plan = SimpleNamespace(
        assignments={("g", 3): 8},
        step=lambda number: SimpleNamespace(captured=captured),
        groups=GroupHistory(),
    )
    ids = IdMap(topology({}))
    for name in ("one", "two"):
        ids.members.learn("g", name, f"live-{name}")
    found = GroupSessions(cast(Plan, plan), ids)
    answer = whole("JoinGroup", 5, {"leader": f"live-{leader}"}, "response")
    joins = SimpleNamespace(
        api="JoinGroup",
        request_message=lambda: request("JoinGroup", 5, {"group_id": "g"}),
        response_message=lambda: None,
    )
    found.record_response(Step(0, cast(CapturedExchange, joins)), answer, never)
    return found


async def never(number: int, member: str) -> Container | None:
    raise AssertionError("no member rejoins in this test")


def assigned(message: Message) -> list[str]:
    assert message.body is not None
    return [each.member_id for each in message.body.assignments]


def test_the_same_leader_assigns_as_captured() -> None:
    leads, follows = sync("one", ASSIGNED), sync("two", [])
    assert groups("one").assign(leads) == groups("one").assign(follows) == []
    assert (assigned(leads), assigned(follows)) == (["one", "two"], [])


def test_another_leader_sends_the_captured_assignment() -> None:
    was, now = sync("one", ASSIGNED), sync("two", [])
    found = groups("two")
    (change,) = found.assign(was)
    assert (change.path, change.captured, change.sent) == ("assignments", 2, 0)
    assert len(found.assign(now)) == 1
    assert (assigned(was), assigned(now)) == ([], ["one", "two"])


def test_an_unknown_group_is_unchanged() -> None:
    found = groups("two")
    message = sync("one", ASSIGNED)
    assert message.body is not None
    message.body.group_id = "other"
    assert found.assign(message) == []
    assert assigned(message) == ["one", "two"]
