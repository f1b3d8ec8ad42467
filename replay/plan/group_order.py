"""
What the answers to members of a group tell of the order of requests that overlapped.

A coordinator takes one request of a group at a time, in whatever order they come. Where one changes
the group, the generation that it is answered with tells which of the others came before it, and so
does a heartbeat that was told of no change. Source: KIP-62, KIP-848, KIP-932.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from construct import Container
from numpy.typing import NDArray

from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import Facts, collect
from dissector.protocol.messages import Message

_REBALANCES = "REBALANCE_IN_PROGRESS"
REBALANCES = error_code(_REBALANCES)

_ALWAYS = -1
"""The turn of what shows that nothing had begun to change."""


class Part(IntEnum):
    """What a request does to the group: members come, go, or are told how it is."""

    JOINS = 0
    LEAVES = 1
    STAYS = 2


class Turn(NamedTuple):
    """
    What an exchange tells of a group, and of a member.

    Attributes:
        group: Its name.
        member: Who is told; empty where that does not matter.
        part: What the request does.
        turn: The generation or epoch of the answer; 0 where it has none.
        is_steady: Whether the answer tells that the group was as it had been.
        settles: Whether the answer tells that the group does not rebalance: offsets may be
            committed while it does.
        rebalances: Whether the answer tells the member to join again.
        assigns: Whether the answer gives the member partitions; None where it never could.
        members: All members, where the answer tells them; or those who leave.
    """

    group: str
    member: str
    part: Part
    turn: int
    is_steady: bool
    settles: bool = True
    rebalances: bool = False
    assigns: bool | None = None
    members: tuple[str, ...] = ()


def turn_of(asked: Message, answered: Message | None) -> Turn | None:
    """Tell what an exchange says of a group; None where that is nothing."""
    find = _FINDS.get(asked.api or "")
    if find is None or asked.body is None:
        return None
    return find(asked.body, answered if answered is not None and answered.body else None)


def _joins(asked: Container, answered: Message | None) -> Turn:
    answer = answered.body if answered is not None else None
    if answer is None or answer.error_code:
        return Turn(asked.group_id, asked.member_id, Part.JOINS, 0, False)
    turn = Turn(asked.group_id, answer.member_id, Part.JOINS, answer.generation_id, True)
    return turn._replace(members=tuple(each.member_id for each in answer.members))


def _leaves(asked: Container, answered: Message | None) -> Turn:
    members = tuple(each.member_id for each in asked.get("members") or [asked])
    return Turn(asked.group_id, "", Part.LEAVES, 0, False, members=members)


def _syncs(asked: Container, answered: Message | None) -> Turn:
    answer = answered.body if answered is not None else None
    error = None if answer is None else answer.error_code
    told = asked.generation_id, error == 0
    is_told = error == REBALANCES
    return Turn(asked.group_id, asked.member_id, Part.STAYS, *told, rebalances=is_told)


def _beats(asked: Container, answered: Message | None) -> Turn:
    return _syncs(asked, answered)._replace(turn=_ALWAYS)


def _commits(asked: Container, answered: Message | None) -> Turn:
    facts = Facts()
    if answered is not None and answered.body is not None and answered.schema is not None:
        collect(answered.schema, answered.api_version or 0, answered.body, facts)
    is_steady = answered is not None and not facts.errors
    told = asked.group_id, asked.get("member_id", ""), Part.STAYS, _ALWAYS, is_steady
    return Turn(*told, settles=False, rebalances=_REBALANCES in facts.errors)


def _beats_by_epoch(asked: Container, answered: Message | None) -> Turn:
    epoch = asked.member_epoch
    part = Part.STAYS if epoch > 0 else Part.LEAVES if epoch else Part.JOINS
    answer = answered.body if answered is not None else None
    if answer is None or answer.error_code:
        return Turn(asked.group_id, asked.member_id, part, 0, False, assigns=False)
    is_steady = part is Part.JOINS or (part is Part.STAYS and answer.assignment is None)
    told = asked.group_id, asked.member_id, part, answer.member_epoch, is_steady
    return Turn(*told, assigns=has_partitions(answer))


def has_partitions(answer: Container) -> bool:
    """Tell whether a member of a group is assigned any."""
    return bool(answer.assignment is not None and answer.assignment.get("topic_partitions"))


_FINDS: dict[str, Callable[[Container, Message | None], Turn]] = {
    "JoinGroup": _joins,
    "LeaveGroup": _leaves,
    "SyncGroup": _syncs,
    "Heartbeat": _beats,
    "OffsetCommit": _commits,
    "ConsumerGroupHeartbeat": _beats_by_epoch,
    "ShareGroupHeartbeat": _beats_by_epoch,
}


class Shown(NamedTuple):
    """
    What a capture shows of groups, by its steps.

    Attributes:
        unsettled: Steps in which a member is told that all is well, and next that its group
            rebalances, or it joins again.
        sizes: Group and generation -> how many of its members are seen to join it.
        last: Group and member -> the last step in which it joins, speaks or leaves.
        unassigned: Steps in which a member is not given partitions, from when it joins until it is.
        parts: Group, member and generation -> the step in which it asks for its part.
        strangers: Group -> members that are not seen to join and speak before those that are have
            their parts, with the first step of each.
        joins: Group -> the first step in which a member of it joins.
    """

    unsettled: frozenset[int] = frozenset()
    sizes: Mapping[tuple[str, int], int] = MappingProxyType({})
    last: Mapping[tuple[str, str], int] = MappingProxyType({})
    unassigned: frozenset[int] = frozenset()
    parts: Mapping[tuple[str, str, int], int] = MappingProxyType({})
    strangers: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    joins: Mapping[str, int] = MappingProxyType({})


class Turns:
    """Gathers what exchanges tell of groups, by number, and then tells what came before what."""

    def __init__(self) -> None:
        self._by_group: dict[str, list[tuple[int, Turn]]] = {}

    def add(self, number: int, turn: Turn) -> None:
        """Take over what an exchange tells."""
        self._by_group.setdefault(turn.group, []).append((number, turn))

    def causes(
        self,
        step_of: NDArray[np.int32],
        connections: NDArray[np.int32],
        times_ns: Callable[[int], tuple[int, int | None]],
    ) -> Iterator[tuple[int, int]]:
        """
        Yield steps, and an earlier one that overlapped each and must be answered before.

        Args:
            step_of: For each exchange its step; -1 where it is not sent.
            connections: For each step its connection.
            times_ns: Returns when request and response of an exchange were complete.
        """
        for told in self._by_group.values():
            waiting: list[tuple[int, int, Turn]] = []
            for number, turn in _in_order(told, step_of):
                step = int(step_of[number])
                begun_ns, done_ns = times_ns(number)
                while waiting and waiting[0][0] < begun_ns:
                    heappop(waiting)
                for _, other, earlier in waiting:
                    if connections[other] != connections[step] and _precedes(earlier, turn):
                        yield step, other
                if turn.is_steady and done_ns is not None:
                    heappush(waiting, (done_ns, step, turn))

    def groups(self, step_of: NDArray[np.int32]) -> Shown:
        """
        Tell what is shown of groups.

        Args:
            step_of: For each exchange its step; -1 where it is not sent.
        """
        return Shown(
            frozenset(self._followed(step_of)),
            self._sizes(step_of),
            self._last(step_of),
            frozenset(self._unassigned(step_of)),
            self._parts(step_of),
            *self._strangers(step_of),
        )

    def _strangers(
        self, step_of: NDArray[np.int32]
    ) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
        strangers: dict[str, dict[str, int]] = {}
        joins: dict[str, int] = {}
        for group, told in self._by_group.items():
            joined: set[str] = set()
            for number, turn in _in_order(told, step_of):
                if turn.part is Part.JOINS:
                    joined.add(turn.member)
                    joins.setdefault(group, int(step_of[number]))
                    continue
                if joins.get(group) is not None and turn.turn > 0 and turn.assigns is None:
                    break  # those that joined are told their parts: who comes now is late
                is_member = turn.member not in joined and (turn.is_steady or turn.rebalances)
                if turn.part is Part.STAYS and turn.member and is_member:
                    members = strangers.setdefault(group, {})
                    members.setdefault(turn.member, int(step_of[number]))
        return strangers, joins

    def _parts(self, step_of: NDArray[np.int32]) -> dict[tuple[str, str, int], int]:
        return {
            (group, turn.member, turn.turn): int(step_of[number])
            for group, told in self._by_group.items()
            for number, turn in _in_order(told, step_of)
            if turn.part is Part.STAYS and turn.turn > 0 and turn.assigns is None
        }

    def _unassigned(self, step_of: NDArray[np.int32]) -> Iterator[int]:
        for told in self._by_group.values():
            waiting: dict[str, list[int]] = {}
            for number, turn in _in_order(told, step_of):
                if turn.part is Part.LEAVES:
                    waiting.pop(turn.member, None)
                elif turn.assigns:
                    yield from waiting.pop(turn.member, ())
                elif turn.assigns is not None and turn.part is Part.JOINS:
                    waiting[turn.member] = [int(step_of[number])]
                elif turn.member in waiting:
                    waiting[turn.member].append(int(step_of[number]))

    def _last(self, step_of: NDArray[np.int32]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for group, told in self._by_group.items():
            for number, turn in _in_order(told, step_of):
                names = turn.members if turn.part is Part.LEAVES else (turn.member,)
                found.update(dict.fromkeys([(group, each) for each in names], int(step_of[number])))
        return found

    def _sizes(self, step_of: NDArray[np.int32]) -> dict[tuple[str, int], int]:
        joined: dict[tuple[str, int], set[str]] = {}
        members: dict[tuple[str, int], tuple[str, ...]] = {}
        for group, told in self._by_group.items():
            for number, turn in told:
                if turn.part is Part.JOINS and turn.is_steady and step_of[number] >= 0:
                    joined.setdefault((group, turn.turn), set()).add(turn.member)
                    members[group, turn.turn] = turn.members or members.get((group, turn.turn), ())
        return {place: len(joined[place].intersection(each)) for place, each in members.items()}

    def _followed(self, step_of: NDArray[np.int32]) -> array[int]:
        found = array("i")
        for told in self._by_group.values():
            newest: dict[str, list[int]] = {}
            for number, turn in _in_order(told, step_of):
                before = newest.pop(turn.member, [])
                if turn.rebalances or turn.part is Part.JOINS:
                    found.extend(before)
                if turn.is_steady and turn.member and turn.part is not Part.LEAVES:
                    kept = before if turn.part is Part.STAYS and not turn.settles else []
                    kept.append(int(step_of[number]))
                    newest[turn.member] = kept
        return found


def _in_order(
    told: list[tuple[int, Turn]], step_of: NDArray[np.int32]
) -> Iterator[tuple[int, Turn]]:
    """Yield what is sent, in the order in which it is."""
    sent = [(number, turn) for number, turn in told if step_of[number] >= 0]
    yield from sorted(sent, key=lambda each: step_of[each[0]])


def _precedes(earlier: Turn, later: Turn) -> bool:
    """Tell whether a request that changes a group came to it after one that was sent before."""
    if later.part is Part.LEAVES:
        return earlier.part is Part.STAYS
    return later.part is Part.JOINS and earlier.turn < later.turn
