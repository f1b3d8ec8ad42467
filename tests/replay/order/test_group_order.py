"""Overlapping requests of a group, in the order of their coordinator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cluster.conversion.resource_names import NO_ID
from dissector.protocol.messages import Message
from replay.order.group_order import REBALANCES, GroupAction, GroupEvent, GroupOrder, group_event_of
from tests.replay.support.builders import request, response, uuid

GROUP = {"group_id": "g", "member_id": "m"}


def joins(generation: int, member: str = "m", *members: str) -> GroupEvent:
    return GroupEvent("g", member, GroupAction.JOINS, generation, generation > 0, members=members)


def stays(generation: int = -1, member: str = "m", error: int = 0) -> GroupEvent:
    return GroupEvent(
        "g", member, GroupAction.STAYS, generation, not error, reports_rebalance=error == REBALANCES
    )


def commits() -> GroupEvent:
    return stays()._replace(excludes_rebalance=False)


def leaves(member: str = "m") -> GroupEvent:
    return GroupEvent("g", "", GroupAction.LEAVES, 0, False, members=(member,))


def given(event: GroupEvent, some: bool = False) -> GroupEvent:
    return event._replace(has_assignment=some)


def group_order(*events: GroupEvent) -> GroupOrder:
    found = GroupOrder()
    for number, event in enumerate(events):
        found.add(number, event)
    return found


def waits(
    earlier: GroupEvent, later: GroupEvent, done: int | None = 20, connection: int = 1
) -> bool:
    """Return whether a request sent at 10 waits for one sent at 0."""
    times = [(0, done), (10, 30)]
    steps, connections = np.arange(2, dtype=np.int32), np.array([0, connection], np.int32)
    causes = list(group_order(earlier, later).dependencies(steps, connections, times.__getitem__))
    assert causes in ([], [(1, 0)])
    return bool(causes)


def test_a_join_of_a_later_generation_waits() -> None:
    assert waits(joins(1), joins(2))
    assert not waits(joins(2), joins(2))
    assert not waits(joins(2), joins(1))
    assert not waits(joins(1), joins(0))


def test_a_successful_heartbeat_precedes_a_later_join() -> None:
    assert waits(stays(), joins(2))
    assert waits(stays(), leaves())
    assert waits(stays(1), joins(2))
    assert waits(stays(1), leaves())
    assert not waits(stays(2), joins(2))


def test_a_leave_is_independent_of_the_join_of_another_member() -> None:
    assert not waits(joins(1), leaves())


def test_the_sync_of_the_leader_waits_for_all_joins() -> None:
    assigns = stays(2, "leader")._replace(members=("leader", "m"))
    assert waits(joins(2), assigns)
    assert not waits(joins(2, "other"), assigns)
    assert not waits(joins(2), stays(2, "leader"))


def test_unordered_events_have_no_dependency() -> None:
    assert not waits(stays(error=REBALANCES or 0), joins(2))
    assert not waits(stays(), stays())
    assert not waits(stays(), joins(2), done=None)
    assert not waits(stays(), joins(2), connection=0)
    assert not waits(stays(), joins(2)._replace(group="h"))


def test_events_in_sequence_have_no_dependency_here() -> None:
    assert not waits(joins(1), joins(2), done=9)


def test_only_sent_steps_are_ordered() -> None:
    found = group_order(joins(1, "a"), joins(2, "b"))
    steps, times = np.array([-1, 0], np.int32), [(0, 20), (10, 30)]
    assert not list(found.dependencies(steps, np.zeros(1, np.int32), times.__getitem__))


def test_the_size_of_a_generation_is_the_number_of_captured_joins() -> None:
    found = group_order(joins(1, "a", "a"), joins(2, "b"), joins(2, "a", "a", "b", "never seen"))
    assert found.history(np.arange(3, dtype=np.int32)).generation_sizes == {
        ("g", 1): 1,
        ("g", 2): 2,
    }
    assert found.history(np.array([0, -1, 1], np.int32)).generation_sizes == {
        ("g", 1): 1,
        ("g", 2): 1,
    }


def test_steps_before_a_rebalance_are_listed() -> None:
    error = REBALANCES or 0
    found = group_order(
        stays(), stays(member="other"), stays(), stays(error=error), stays(error=error), stays()
    )
    assert found.history(np.arange(6, dtype=np.int32)).before_rebalance == {2}
    assert not found.history(np.array([0, 1, 2, -1, -1, 3], np.int32)).before_rebalance


def test_steps_before_a_rebalance_include_concurrent_joins() -> None:
    found = group_order(stays(), joins(2), stays(error=REBALANCES or 0))
    assert found.history(np.arange(3, dtype=np.int32)).before_rebalance == {0, 1}


def test_offsets_are_committed_while_a_group_rebalances() -> None:
    rebalance = stays(error=REBALANCES or 0)
    found = group_order(
        stays(), commits(), stays(), commits(), rebalance, commits(), joins(2), commits()
    )
    assert found.history(np.arange(8, dtype=np.int32)).before_rebalance == {2, 3, 5}
    found = group_order(
        stays(), commits(), commits()._replace(reports_rebalance=True, is_stable=False)
    )
    assert found.history(np.arange(3, dtype=np.int32)).before_rebalance == {0, 1}


def test_sync_steps_are_listed() -> None:
    found = group_order(joins(1, "a"), stays(1, "a"), stays(-1, "a"), stays(2, "a"), stays(2, "b"))
    steps = np.array([0, 1, 2, 3, -1], np.int32)
    assert found.history(steps).sync_steps == {("g", "a", 1): 1, ("g", "a", 2): 3}
    assert not group_order(given(stays(2))).history(np.arange(1, dtype=np.int32)).sync_steps


def test_the_last_step_of_a_member() -> None:
    found = group_order(
        joins(1, "a"), stays(member="b"), joins(2, "a"), leaves("b"), stays(member="c")
    )
    steps = np.array([0, 1, 2, 3, -1], np.int32)
    assert found.history(steps).last_steps == {("g", "a"): 2, ("g", "b"): 3}


def beats(member: str, assigns: bool, joins: bool = False) -> GroupEvent:
    part = GroupAction.JOINS if joins else GroupAction.STAYS
    return GroupEvent("g", member, part, 1, True, has_assignment=assigns)


def test_steps_of_a_new_member_before_its_assignment() -> None:
    found = group_order(
        beats("a", False, joins=True),
        beats("b", False, joins=True),
        beats("a", False),
        beats("a", True),
        beats("a", False),
        beats("b", False),
        joins(1, "c"),
        stays(member="c"),
    )
    steps = np.arange(8, dtype=np.int32)
    assert found.history(steps).before_assignment == {0, 2}


def test_steps_of_an_assignment_that_is_handed_out_in_steps() -> None:
    def given(*partitions: int, epoch: int = 1) -> GroupEvent:
        assigned = frozenset((uuid(1), each) for each in partitions)
        return beats("a", True)._replace(generation=epoch, assigned=assigned)

    found = group_order(
        beats("a", False, joins=True),
        given(2),
        beats("a", False),
        given(2, 3),
        beats("a", False),
        given(3),
        given(0, 3, epoch=2),
    )
    steps = np.arange(7, dtype=np.int32)
    assert found.history(steps).before_assignment == {0, 1, 2}, "not: fewer, or a new assignment"


def event_of(
    api: str, version: int, request_fields: dict[str, Any], answer: dict[str, Any] | None
) -> GroupEvent | None:
    answered: Message | None = None if answer is None else response(api, version, answer)
    return group_event_of(request(api, version, GROUP | request_fields), answered)


@pytest.mark.parametrize(
    ("api", "version", "request_fields", "answer", "expected"),
    [
        ("JoinGroup", 5, {}, {"generation_id": 3, "member_id": "m"}, joins(3)),
        ("JoinGroup", 5, {}, {"error_code": 16, "generation_id": 3}, joins(0)),
        ("JoinGroup", 5, {}, None, joins(0)),
        (
            "JoinGroup",
            5,
            {},
            {"generation_id": 3, "member_id": "m", "members": [{"member_id": "m"}]},
            joins(3, "m", "m"),
        ),
        ("LeaveGroup", 1, {}, {}, leaves()),
        ("LeaveGroup", 4, {"members": [{"member_id": "m"}]}, {}, leaves()),
        ("LeaveGroup", 5, {"members": []}, {}, leaves()._replace(members=())),
        ("SyncGroup", 3, {"generation_id": 2}, {}, stays(2)),
        ("SyncGroup", 3, {"generation_id": 2}, {"error_code": 27}, stays(2, error=27)),
        ("Heartbeat", 3, {"generation_id": 2}, {}, stays()),
        ("Heartbeat", 3, {"generation_id": 2}, {"error_code": 27}, stays(error=27)),
        ("OffsetCommit", 0, {}, {}, commits()._replace(member="")),
        ("OffsetCommit", 5, {}, {}, commits()),
        ("ConsumerGroupHeartbeat", 0, {"member_epoch": 0}, {"member_epoch": 1}, given(joins(1))),
        ("ConsumerGroupHeartbeat", 0, {"member_epoch": 1}, {"member_epoch": 2}, given(stays(2))),
        ("ConsumerGroupHeartbeat", 0, {"member_epoch": 1}, None, given(stays(0, error=1))),
        (
            "ConsumerGroupHeartbeat",
            0,
            {"member_epoch": 1},
            {"member_epoch": 1, "assignment": {"topic_partitions": []}},
            given(stays(1, error=1))._replace(assigned=frozenset()),
        ),
        (
            "ConsumerGroupHeartbeat",
            0,
            {"member_epoch": 1},
            {"member_epoch": 1, "assignment": {"topic_partitions": [{"partitions": [0]}]}},
            given(stays(1, error=1), True)._replace(assigned=frozenset({(NO_ID, 0)})),
        ),
        (
            "ConsumerGroupHeartbeat",
            0,
            {"member_epoch": -1},
            {"member_epoch": -1},
            given(GroupEvent("g", "m", GroupAction.LEAVES, -1, False)),
        ),
        ("Metadata", 9, {}, {}, None),
    ],
)
def test_group_event_of_an_exchange(
    api: str,
    version: int,
    request_fields: dict[str, Any],
    answer: dict[str, Any] | None,
    expected: GroupEvent | None,
) -> None:
    assert event_of(api, version, request_fields, answer) == expected


def test_a_refused_commit_reports_a_rebalance() -> None:
    partition = {"partition_index": 0, "error_code": 27}
    answer = {"topics": [{"name": "orders", "partitions": [partition]}]}
    refused = commits()._replace(is_stable=False, reports_rebalance=True)
    assert event_of("OffsetCommit", 5, {}, answer) == refused


def test_a_sync_of_the_leader_lists_the_assigned_members() -> None:
    assigned = [{"member_id": name, "assignment": b""} for name in ("m", "n")]
    sync = request("SyncGroup", 3, GROUP | {"generation_id": 2, "assignments": assigned})
    event = group_event_of(sync, response("SyncGroup", 3, {"assignment": b""}))
    assert event is not None
    assert event.members == ("m", "n")
