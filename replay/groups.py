"""
Classic groups: who leads them on the target, what their leader assigns, and who joins again.

How many members come together depends on how long the coordinator waits for more. A group that was
captured to form at once may do so step by step; a client that is told of that joins again. It joins
when it is told, by an answer or by one of the heartbeats that are sent for it, and not before: a
leader that joins for nothing would have all others join once more.

Source: KIP-62, KIP-394; Kafka, ClassicGroup.java, ConsumerCoordinator.java.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from construct import Container

from dissector.errors import DissectorError
from dissector.protocol.messages import Message
from replay.again import Again, rebalances
from replay.outcome import REJOINED, Change
from replay.plan import Plan
from replay.refusal import Refused
from replay.roles import Role
from replay.step import Captured, Step
from replay.world import World

Repeat = Callable[[int, str], Awaitable[Container | None]]
"""Asks a step once more for a member, by its captured id, and returns the answer."""

_Key = tuple[str, str]
"""Group and member, as they were captured."""

_Place = tuple[str, int]
"""Group and generation, as they were captured."""

_TELLS = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""APIs by which a member is told that its group rebalances."""

_NO_STEP = -1

_OF_MEMBERS = _TELLS | {"JoinGroup", "LeaveGroup"}


@dataclass(slots=True)
class _Member:
    """
    A member that has joined.

    Attributes:
        join: The step by which it did; -1 where the capture does not show it.
        repeat: Asks for it.
        sync: The step by which it was told its part since; -1 for none.
        said: The last step in which it was told that it is one.
        is_unsettled: Whether the capture shows next that it is told of a rebalance.
        has_rejoined: Whether it joined again while it had nothing to ask.
        joining: Set while it joins again.
        assigning: Set while it assigns before the capture shows that it asks for its own part.
    """

    join: int
    repeat: Repeat
    sync: int = -1
    said: int = -1
    is_unsettled: bool = False
    has_rejoined: bool = False
    joining: asyncio.Task[None] | None = None
    assigning: asyncio.Task[None] | None = None


class Groups:
    """The groups of a pass, by their captured names."""

    def __init__(self, plan: Plan, world: World) -> None:
        self._plan = plan
        self._world = world
        self._leaders: dict[str, str] = {}
        self._members: dict[_Key, _Member] = {}
        self._short: dict[_Place, int] = {}
        self._due: dict[str, int] = {}

    def answered(self, step: Step, answer: Container, repeat: Repeat) -> None:
        """
        Note what an answer tells of who leads a group, and who is in it.

        Args:
            step: What was asked.
            answer: What the target answered.
            repeat: Asks for the member that is told.
        """
        name = step.captured.api
        if name not in _OF_MEMBERS or answer.get("error_code"):
            return
        body, told = step.captured.asked().body, _body(step.captured.answered())
        if body is None:
            return
        group = body.group_id
        if name == "JoinGroup":
            self._leaders[group] = self._world.members.captured(group, answer.leader)
            if told is not None and not told.error_code:
                member = _Member(step.number, repeat, is_unsettled=step.is_unsettled)
                self._join((group, told.member_id), member)
                self._have_assigned(group)
        elif name == "LeaveGroup":
            for each in body.get("members") or [body]:
                self._members.pop((group, each.member_id), None)
        elif (known := self._members.get((group, _member_id(body)))) is not None:
            known.is_unsettled, known.said = step.is_unsettled, step.number
            if name == "SyncGroup":
                known.sync = step.number
                self._due.pop(group, None)

    def introduce(self, group: str, member: str, repeat: Repeat) -> None:
        """Take over a member whose join the capture does not show; `repeat` has it join again."""
        self._members[group, member] = _Member(_NO_STEP, repeat)

    def _join(self, key: _Key, member: _Member) -> None:
        """Note who has joined; who did so again by the same step goes on as it was."""
        before = self._members.get(key)
        if before is not None and before.join == member.join:
            before.is_unsettled = member.is_unsettled
        else:
            self._members[key] = member

    def why_again(self, step: Step, answer: Container, version: int) -> Again | None:
        """
        Tell why a member is to ask again; None where it is not.

        Args:
            step: What was asked.
            answer: The body that the target answered.
            version: Its version.
        """
        name, told = step.captured.api, step.captured.answered()
        if told is None or told.body is None:
            return None
        if name == "JoinGroup" and self._awaits_others(step.captured, told.body, answer):
            return Again.MEMBERS
        if name not in _TELLS or step.is_unsettled or self._key(step) is None:
            return None
        assert told.schema is not None
        assert told.api_version is not None
        was_told = rebalances(told.schema, told.api_version, told.body)
        is_told = rebalances(told.schema, version, answer)
        return Again.REJOIN if is_told and not was_told else None

    def _awaits_others(self, asked: Captured, told: Container, answer: Container) -> bool:
        """
        Tell whether others are still to join, whom the capture shows in the same generation.

        Only the leader is told who has joined. Who has come before the others joins again.
        """
        body = asked.asked().body
        if body is None or answer.error_code:
            return False
        place, generation = (body.group_id, told.generation_id), answer.generation_id
        leads, size = answer.leader == answer.member_id, self._plan.groups.sizes.get(place, 0)
        if leads and len(answer.members) < size:
            self._short[place] = generation
        return bool(self._short.get(place) == generation)

    def _key(self, step: Step) -> _Key | None:
        """Return whom a step is asked for, if that member has joined."""
        body = step.captured.asked().body
        key = (body.group_id, _member_id(body)) if body is not None else ("", "")
        return key if key in self._members else None

    async def until_joined(self, step: Step) -> None:
        """Wait while the member that is to ask joins again: else it would ask as who it was."""
        key = self._key(step) if step.captured.api in _TELLS else None
        joining = self._members[key].joining if key is not None else None
        if joining is not None:
            await asyncio.shield(joining)

    async def rejoin(self, step: Step, request: Container) -> Change:
        """
        Have the member join again that was told of a rebalance; tell of it.

        Args:
            step: What was asked.
            request: What was sent: if that was in an earlier generation, it has joined since.
        """
        key, body = self._key(step), step.captured.asked().body
        assert key is not None
        assert body is not None
        if _generation(request) == self._world.members.turn(*key, _generation(body)):
            await asyncio.shield(self._rejoin(key))
        self._members[key].has_rejoined = False
        return self._change(key)

    async def told(self, group: str, member: str) -> bool:
        """
        Have a member join again that is told of a rebalance while it has nothing to ask.

        It does not where the capture shows that it was told of one too, and what it did then.

        Returns:
            Whether it still is a member: not where the capture shows no more of it.
        """
        key = group, member
        known = self._members.get(key)
        if known is None or known.is_unsettled:
            return True
        if known.said >= self._plan.groups.last.get(key, -1):
            return False
        known.has_rejoined = True
        await asyncio.shield(self._rejoin(key))
        return True

    def rejoined(self, step: Step) -> list[Change]:
        """Tell that the member joined again that asks, if it did so since it asked last."""
        key = self._key(step) if step.captured.api in _TELLS else None
        if key is None or not self._members[key].has_rejoined:
            return []
        self._members[key].has_rejoined = False
        return [self._change(key)]

    def _change(self, key: _Key) -> Change:
        return Change("member_id", Role.MEMBER, key[1], self._world.members.live(*key), REJOINED)

    def _rejoin(self, key: _Key) -> asyncio.Task[None]:
        member = self._members[key]
        if member.joining is None or member.joining.done():
            member.joining = asyncio.create_task(_join_again(key[1], member))
        return member.joining

    def assign(self, message: Message) -> list[Change]:
        """
        Have the member that leads the group of the target send what the captured leader assigned.

        Args:
            message: A captured SyncGroup, whose body may be changed.
        """
        body = message.body
        assert body is not None
        leader = self._leaders.get(body.group_id)
        if leader is None:
            return []
        before = body.assignments
        number = self._plan.assignments.get((body.group_id, body.generation_id))
        if body.member_id != leader:
            body.assignments = []
            if before:
                self._due[body.group_id] = body.generation_id
                self._have_assigned(body.group_id)
        elif not before and number is not None:
            told = self._plan.step(number).captured.asked().body
            body.assignments = told.assignments if told is not None else []
        if len(before) == len(body.assignments):
            return []
        why = "the group has another leader"
        return [Change("assignments", Role.EMBEDDED, len(before), len(body.assignments), why)]

    def _have_assigned(self, group: str) -> None:
        """
        Have the leader assign what the captured one does, which the target has not for a leader.

        The leader's own turn may come only after that of the captured one, who waits for it.
        """
        key = group, self._leaders[group]
        number = self._plan.groups.parts.get((*key, self._due.get(group, 0)))
        leader = self._members.get(key)
        if leader is not None and number is not None:
            del self._due[group]
            leader.assigning = asyncio.create_task(_ask_for_part(key[1], leader, number))


async def _ask_for_part(name: str, member: _Member, number: int) -> None:
    """Ask for a part; who asks for it next is told what fails."""
    with suppress(DissectorError, Refused):
        await member.repeat(number, name)


async def _join_again(name: str, member: _Member) -> None:
    """Join, and ask for its part where it had one; who asks for it next is told what fails."""
    with suppress(DissectorError, Refused):
        answer = await member.repeat(member.join, name)
        if answer is not None and not answer.error_code and member.sync >= 0:
            await _ask_for_part(name, member, member.sync)


def _generation(body: Container) -> int:
    """Return in which generation somebody asks."""
    return int(body.get("generation_id", body.get("generation_id_or_member_epoch")))


def _member_id(body: Container) -> str:
    """Return who asks; empty for nobody, as in OffsetCommit v0."""
    return str(body.get("member_id", ""))


def _body(message: Message | None) -> Container | None:
    return None if message is None else message.body
