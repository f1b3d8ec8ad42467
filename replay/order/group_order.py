"""
Group order: the order in which a coordinator served overlapping requests of a group's members.

A coordinator handles the requests of a group one at a time, in the order of arrival. If a request
changes the group, the generation in its response shows which other requests were served before it;
so does a heartbeat without a change in its response. Source: KIP-62, KIP-848, KIP-932.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from construct import Container
from numpy.typing import NDArray

from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import Facts, collect
from dissector.protocol.messages import Message

_REBALANCES = "REBALANCE_IN_PROGRESS"
REBALANCES = error_code(_REBALANCES)

_BEFORE_ANY_GENERATION = -1
"""The generation of events before any change."""


class GroupAction(IntEnum):
    """Effect of a request: a member joins, leaves, or stays."""

    JOINS = 0
    LEAVES = 1
    STAYS = 2


class GroupEvent(NamedTuple):
    """
    The evidence of an exchange about a group and a member.

    Attributes:
        group: The group id.
        member: The member id; empty if irrelevant.
        action: The effect of the request.
        generation: The generation or epoch in the response; 0 without one.
        is_stable: Whether the response shows that the group had not changed.
        excludes_rebalance: Whether a stable response shows that no rebalance is in progress;
            commits succeed even during one.
        reports_rebalance: Whether the response makes the member join again.
        has_assignment: Whether the response assigns partitions; None for APIs that never do.
        members: All members, if the response lists them; or the leaving members, or the members
            with an assignment by the leader.
        assigned: The assigned partitions, by topic id; None without an assignment by the broker.
    """

    group: str
    member: str
    action: GroupAction
    generation: int
    is_stable: bool
    excludes_rebalance: bool = True
    reports_rebalance: bool = False
    has_assignment: bool | None = None
    members: tuple[str, ...] = ()
    assigned: frozenset[tuple[Any, int]] | None = None


def group_event_of(request: Message, response: Message | None) -> GroupEvent | None:
    """Return the group event that an exchange shows; None if it shows none."""
    find = _EVENT_READERS.get(request.api or "")
    if find is None or request.body is None:
        return None
    return find(request.body, response if response is not None and response.body else None)


def _join_event(request: Container, response: Message | None) -> GroupEvent:
    body = response.body if response is not None else None
    if body is None or body.error_code:
        return GroupEvent(request.group_id, request.member_id, GroupAction.JOINS, 0, False)
    event = GroupEvent(
        request.group_id, body.member_id, GroupAction.JOINS, body.generation_id, True
    )
    return event._replace(members=tuple(each.member_id for each in body.members))


def _leave_event(request: Container, response: Message | None) -> GroupEvent:
    return GroupEvent(
        request.group_id, "", GroupAction.LEAVES, 0, False, members=leaving_members(request)
    )


def leaving_members(request: Container) -> tuple[str, ...]:
    """Return the members in a LeaveGroup request: one, from v3 on any number (KIP-345)."""
    members = request.members if "members" in request else [request]
    return tuple(each.member_id for each in members)


def _sync_event(request: Container, response: Message | None) -> GroupEvent:
    body = response.body if response is not None else None
    error = None if body is None else body.error_code
    is_stable = error == 0
    is_rejoin_due = error == REBALANCES
    return GroupEvent(
        request.group_id,
        request.member_id,
        GroupAction.STAYS,
        request.generation_id,
        is_stable,
        reports_rebalance=is_rejoin_due,
        members=tuple(each.member_id for each in request.get("assignments") or ()),
    )


def _heartbeat_event(request: Container, response: Message | None) -> GroupEvent:
    return _sync_event(request, response)._replace(generation=_BEFORE_ANY_GENERATION)


def _commit_event(request: Container, response: Message | None) -> GroupEvent:
    facts = Facts()
    if response is not None and response.body is not None and response.schema is not None:
        collect(response.schema, response.api_version or 0, response.body, facts)
    return GroupEvent(
        request.group_id,
        request.get("member_id", ""),
        GroupAction.STAYS,
        _BEFORE_ANY_GENERATION,
        is_stable=response is not None and not facts.errors,
        excludes_rebalance=False,
        reports_rebalance=_REBALANCES in facts.errors,
    )


def _epoch_heartbeat_event(request: Container, response: Message | None) -> GroupEvent:
    epoch = request.member_epoch
    action = GroupAction.STAYS if epoch > 0 else GroupAction.LEAVES if epoch else GroupAction.JOINS
    body = response.body if response is not None else None
    if body is None or body.error_code:
        return GroupEvent(
            request.group_id, request.member_id, action, 0, False, has_assignment=False
        )
    is_stable = action is GroupAction.JOINS or (
        action is GroupAction.STAYS and body.assignment is None
    )
    member = request.group_id, request.member_id
    event = GroupEvent(*member, action, body.member_epoch, is_stable)
    return event._replace(has_assignment=has_partitions(body), assigned=_assigned(body))


def has_partitions(response: Container) -> bool:
    """Return whether a heartbeat response assigns partitions to the member."""
    return bool(_assigned(response))


def count_assigned(response: Container) -> int:
    """Return the number of partitions that a heartbeat response assigns to the member."""
    return len(_assigned(response) or ())


def _assigned(response: Container) -> frozenset[tuple[Any, int]] | None:
    """Return the partitions that a heartbeat response assigns; None without an assignment."""
    if response.assignment is None:
        return None
    topics = response.assignment.get("topic_partitions") or ()
    return frozenset((topic.topic_id, each) for topic in topics for each in topic.partitions)


_EVENT_READERS: dict[str, Callable[[Container, Message | None], GroupEvent]] = {
    "JoinGroup": _join_event,
    "LeaveGroup": _leave_event,
    "SyncGroup": _sync_event,
    "Heartbeat": _heartbeat_event,
    "OffsetCommit": _commit_event,
    "ConsumerGroupHeartbeat": _epoch_heartbeat_event,
    "ShareGroupHeartbeat": _epoch_heartbeat_event,
}


class GroupHistory(NamedTuple):
    """
    The group events of a capture, by step.

    Attributes:
        before_rebalance: Steps with a response that confirms a membership, followed by a rebalance
            or a new join of the member.
        generation_sizes: Group and generation -> number of its members with a captured join.
        last_steps: Group and member -> the last step in which it joins, stays or leaves.
        before_assignment: Steps of a member from its join until it is assigned partitions, and from
            an assignment until the rest of it: coordinators hand partitions out in steps.
        sync_steps: Group, member and generation -> the step that fetches its assignment.
        uncaptured_members: Group -> members without a captured join, with requests before the
            assignments of the joined ones -> the first step of each.
        first_joins: Group -> the first step with a join.
    """

    before_rebalance: frozenset[int] = frozenset()
    generation_sizes: Mapping[tuple[str, int], int] = MappingProxyType({})
    last_steps: Mapping[tuple[str, str], int] = MappingProxyType({})
    before_assignment: frozenset[int] = frozenset()
    sync_steps: Mapping[tuple[str, str, int], int] = MappingProxyType({})
    uncaptured_members: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    first_joins: Mapping[str, int] = MappingProxyType({})


class GroupOrder:
    """Collects the group events of exchanges, and derives the order of requests from them."""

    def __init__(self) -> None:
        self._by_group: dict[str, list[tuple[int, GroupEvent]]] = {}

    def add(self, number: int, event: GroupEvent) -> None:
        """Add the group event of an exchange, by its number."""
        self._by_group.setdefault(event.group, []).append((number, event))

    def dependencies(
        self,
        step_of: NDArray[np.int32],
        connections: NDArray[np.int32],
        times_ns: Callable[[int], tuple[int, int | None]],
    ) -> Iterator[tuple[int, int]]:
        """
        Yield pairs of a step and an overlapping earlier step that must be answered before it.

        Args:
            step_of: For each exchange its step; -1 if it is not sent.
            connections: For each step its connection.
            times_ns: Returns when request and response of an exchange were complete.
        """
        for events in self._by_group.values():
            waiting: list[tuple[int, int, GroupEvent]] = []
            for number, event in _in_order(events, step_of):
                step = int(step_of[number])
                begun_ns, done_ns = times_ns(number)
                while waiting and waiting[0][0] < begun_ns:
                    heappop(waiting)
                for _, other, earlier in waiting:
                    if connections[other] != connections[step] and _precedes(earlier, event):
                        yield step, other
                if event.is_stable and done_ns is not None:
                    heappush(waiting, (done_ns, step, event))

    def history(self, step_of: NDArray[np.int32]) -> GroupHistory:
        """
        Return the group events by step.

        Args:
            step_of: For each exchange its step; -1 if it is not sent.
        """
        return GroupHistory(
            frozenset(self._before_rebalance(step_of)),
            self._generation_sizes(step_of),
            self._last_steps(step_of),
            frozenset(self._before_assignment(step_of)),
            self._sync_steps(step_of),
            *self._uncaptured_members(step_of),
        )

    def _uncaptured_members(
        self, step_of: NDArray[np.int32]
    ) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
        joining: dict[str, dict[str, int]] = {}
        joins: dict[str, int] = {}
        for group, events in self._by_group.items():
            joined: set[str] = set()
            for number, event in _in_order(events, step_of):
                if event.action is GroupAction.JOINS:
                    joined.add(event.member)
                    joins.setdefault(group, int(step_of[number]))
                    continue
                if (
                    joins.get(group) is not None
                    and event.generation > 0
                    and event.has_assignment is None
                ):
                    break  # from the first assignment on, new members are late
                is_member = event.member not in joined and (
                    event.is_stable or event.reports_rebalance
                )
                if event.action is GroupAction.STAYS and event.member and is_member:
                    members = joining.setdefault(group, {})
                    members.setdefault(event.member, int(step_of[number]))
        return joining, joins

    def _sync_steps(self, step_of: NDArray[np.int32]) -> dict[tuple[str, str, int], int]:
        return {
            (group, event.member, event.generation): int(step_of[number])
            for group, events in self._by_group.items()
            for number, event in _in_order(events, step_of)
            if event.action is GroupAction.STAYS
            and event.generation > 0
            and event.has_assignment is None
        }

    def _before_assignment(self, step_of: NDArray[np.int32]) -> Iterator[int]:
        for events in self._by_group.values():
            waiting: dict[str, list[int]] = {}
            latest: dict[str, GroupEvent] = {}
            for number, event in _in_order(events, step_of):
                if event.action is GroupAction.LEAVES:
                    waiting.pop(event.member, None)
                elif event.has_assignment:
                    before = waiting.pop(event.member, [])
                    if _is_rest(event, latest.get(event.member)):
                        yield from before
                    latest[event.member] = event
                    waiting[event.member] = [int(step_of[number])]
                elif event.has_assignment is not None and event.action is GroupAction.JOINS:
                    latest.pop(event.member, None)
                    waiting[event.member] = [int(step_of[number])]
                elif event.member in waiting:
                    waiting[event.member].append(int(step_of[number]))

    def _last_steps(self, step_of: NDArray[np.int32]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for group, events in self._by_group.items():
            for number, event in _in_order(events, step_of):
                names = event.members if event.action is GroupAction.LEAVES else (event.member,)
                found.update(dict.fromkeys([(group, each) for each in names], int(step_of[number])))
        return found

    def _generation_sizes(self, step_of: NDArray[np.int32]) -> dict[tuple[str, int], int]:
        joined: dict[tuple[str, int], set[str]] = {}
        members: dict[tuple[str, int], tuple[str, ...]] = {}
        for group, events in self._by_group.items():
            for number, event in events:
                if event.action is GroupAction.JOINS and event.is_stable and step_of[number] >= 0:
                    joined.setdefault((group, event.generation), set()).add(event.member)
                    members[group, event.generation] = event.members or members.get(
                        (group, event.generation), ()
                    )
        return {place: len(joined[place].intersection(each)) for place, each in members.items()}

    def _before_rebalance(self, step_of: NDArray[np.int32]) -> array[int]:
        found = array("i")
        for events in self._by_group.values():
            newest: dict[str, list[int]] = {}
            for number, event in _in_order(events, step_of):
                before = newest.pop(event.member, [])
                if event.reports_rebalance or event.action is GroupAction.JOINS:
                    found.extend(before)
                if event.is_stable and event.member and event.action is not GroupAction.LEAVES:
                    confirmed = (
                        before
                        if event.action is GroupAction.STAYS and not event.excludes_rebalance
                        else []
                    )
                    confirmed.append(int(step_of[number]))
                    newest[event.member] = confirmed
        return found


def _is_rest(event: GroupEvent, before: GroupEvent | None) -> bool:
    """Return whether a member is assigned its first partitions, or others beside those it had."""
    if before is None:
        return True
    is_same_epoch = event.generation == before.generation
    return is_same_epoch and (before.assigned or frozenset()) < (event.assigned or frozenset())


def _in_order(
    events: list[tuple[int, GroupEvent]], step_of: NDArray[np.int32]
) -> Iterator[tuple[int, GroupEvent]]:
    """Yield the events of steps that are sent, in the order of the steps."""
    sent = [(number, event) for number, event in events if step_of[number] >= 0]
    yield from sorted(sent, key=lambda each: step_of[each[0]])


def _precedes(earlier: GroupEvent, later: GroupEvent) -> bool:
    """Return whether a coordinator served an earlier request before one that changes the group."""
    if later.action is GroupAction.STAYS:
        # A leader may assign before another member has received its id.
        return earlier.action is GroupAction.JOINS and earlier.member in later.members
    if later.action is GroupAction.LEAVES:
        return earlier.action is GroupAction.STAYS
    return later.action is GroupAction.JOINS and earlier.generation < later.generation
