"""
Classic groups: their leaders on the target, assignments, and members that rejoin.

How many members join together depends on how long the coordinator waits for more. A group captured
to form at once may need several rebalances on the target; its members then rejoin. A member does so
when a response, or a heartbeat sent for it, reports the rebalance, and not before: a leader that
rejoins without need would make all others rejoin.

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
from replay.fields.field_layout import Role
from replay.mapping.id_map import IdMap
from replay.model.outcome import REJOINED, Change
from replay.model.refusal import RewriteError
from replay.model.step import CapturedExchange, Step
from replay.plan.plan import Plan
from replay.sessions.retry_policy import Again, rebalances

Repeat = Callable[[int, str], Awaitable[Container | None]]
"""Repeats a step for a member, by its captured id, and returns the response."""

_Key = tuple[str, str]
"""Captured group and member."""

_Place = tuple[str, int]
"""Captured group and generation."""

_TELLS = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""APIs whose responses report a rebalance to a member."""

_NO_STEP = -1

_OF_MEMBERS = _TELLS | {"JoinGroup", "LeaveGroup"}


@dataclass(slots=True)
class _Member:
    """
    A member that has joined.

    Attributes:
        join: The step of its JoinGroup; -1 if not captured.
        repeat: Repeats a step for it.
        sync: The step of its last SyncGroup since; -1 for none.
        said: The last step whose response confirmed its membership.
        is_unsettled: Whether the next captured response reports a rebalance to it.
        has_rejoined: Whether it rejoined between its captured requests.
        joining: The task of its rejoin.
        assigning: The task of a SyncGroup sent before the captured one, to assign as leader.
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

    def __init__(self, plan: Plan, world: IdMap) -> None:
        self._plan = plan
        self._world = world
        self._leaders: dict[str, str] = {}
        self._members: dict[_Key, _Member] = {}
        self._short: dict[_Place, int] = {}
        self._due: dict[str, int] = {}

    def answered(self, step: Step, answer: Container, repeat: Repeat) -> None:
        """
        Update leaders and members from a response.

        Args:
            step: The step.
            answer: The response body of the target.
            repeat: Repeats a step for the member.
        """
        name = step.captured.api
        if name not in _OF_MEMBERS or answer.get("error_code"):
            return
        body, told = step.captured.request_message().body, _body(step.captured.response_message())
        if body is None:
            return
        group = body.group_id
        if name == "JoinGroup":
            self._leaders[group] = self._world.members.captured(group, answer.leader)
            if told is not None and not told.error_code:
                member = _Member(step.number, repeat, is_unsettled=step.is_before_rebalance)
                self._join((group, told.member_id), member)
                self._have_assigned(group)
        elif name == "LeaveGroup":
            for each in body.get("members") or [body]:
                self._members.pop((group, each.member_id), None)
        elif (known := self._members.get((group, _member_id(body)))) is not None:
            known.is_unsettled, known.said = step.is_before_rebalance, step.number
            if name == "SyncGroup":
                known.sync = step.number
                self._due.pop(group, None)

    def introduce(self, group: str, member: str, repeat: Repeat) -> None:
        """Add a member whose join was not captured; `repeat` makes it rejoin."""
        self._members[group, member] = _Member(_NO_STEP, repeat)

    def _join(self, key: _Key, member: _Member) -> None:
        """Add a member; one that joined again by the same step keeps its state."""
        before = self._members.get(key)
        if before is not None and before.join == member.join:
            before.is_unsettled = member.is_unsettled
        else:
            self._members[key] = member

    def why_again(self, step: Step, answer: Container, version: int) -> Again | None:
        """
        Return why to retry a request of a member; None if its response is final.

        Args:
            step: The step.
            answer: The response body of the target.
            version: The version of the response.
        """
        name, told = step.captured.api, step.captured.response_message()
        if told is None or told.body is None:
            return None
        if name == "JoinGroup" and self._awaits_others(step.captured, told.body, answer):
            return Again.MEMBERS
        if name not in _TELLS or step.is_before_rebalance or self._key(step) is None:
            return None
        assert told.schema is not None
        assert told.api_version is not None
        was_told = rebalances(told.schema, told.api_version, told.body)
        is_told = rebalances(told.schema, version, answer)
        return Again.REJOIN if is_told and not was_told else None

    def _awaits_others(self, asked: CapturedExchange, told: Container, answer: Container) -> bool:
        """
        Return whether other members of the captured generation have yet to join.

        Only the leader gets the list of members. Members that joined before the others rejoin.
        """
        body = asked.request_message().body
        if body is None or answer.error_code:
            return False
        place, generation = (body.group_id, told.generation_id), answer.generation_id
        leads, size = answer.leader == answer.member_id, self._plan.groups.sizes.get(place, 0)
        if leads and len(answer.members) < size:
            self._short[place] = generation
        return bool(self._short.get(place) == generation)

    def _key(self, step: Step) -> _Key | None:
        """Return group and member of a step, if the member has joined."""
        body = step.captured.request_message().body
        key = (body.group_id, _member_id(body)) if body is not None else ("", "")
        return key if key in self._members else None

    async def until_joined(self, step: Step) -> None:
        """Wait for a rejoin of the member: else the request would carry its old generation."""
        key = self._key(step) if step.captured.api in _TELLS else None
        joining = self._members[key].joining if key is not None else None
        if joining is not None:
            await asyncio.shield(joining)

    async def rejoin(self, step: Step, request: Container) -> Change:
        """
        Make the member of a step rejoin after a rebalance; return the change for the report.

        Args:
            step: The step.
            request: The body that was sent: if of an earlier generation, it has rejoined since.
        """
        key, body = self._key(step), step.captured.request_message().body
        assert key is not None
        assert body is not None
        if _generation(request) == self._world.members.live_generation(*key, _generation(body)):
            await asyncio.shield(self._rejoin(key))
        self._members[key].has_rejoined = False
        return self._change(key)

    async def told(self, group: str, member: str) -> bool:
        """
        Make a member rejoin after a heartbeat between its captured requests reports a rebalance.

        It does not if the capture has a rebalance next too, and so its own rejoin.

        Returns:
            Whether it still is a member: not if the capture has no further requests of it.
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
        """Return the change for a rejoin of the member since its last request, if any."""
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
        Make the leader on the target send the assignments of the captured leader.

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
            told = self._plan.step(number).captured.request_message().body
            body.assignments = told.assignments if told is not None else []
        if len(before) == len(body.assignments):
            return []
        why = "the group has another leader"
        return [Change("assignments", Role.EMBEDDED, len(before), len(body.assignments), why)]

    def _have_assigned(self, group: str) -> None:
        """
        Send the SyncGroup of the leader on the target, which is not the captured leader.

        Its own step may come only after that of the captured leader, whose response depends on it.
        """
        key = group, self._leaders[group]
        number = self._plan.groups.parts.get((*key, self._due.get(group, 0)))
        leader = self._members.get(key)
        if leader is not None and number is not None:
            del self._due[group]
            leader.assigning = asyncio.create_task(_ask_for_part(key[1], leader, number))


async def _ask_for_part(name: str, member: _Member, number: int) -> None:
    """Repeat a SyncGroup; failures show at the next request."""
    with suppress(DissectorError, RewriteError):
        await member.repeat(number, name)


async def _join_again(name: str, member: _Member) -> None:
    """Repeat JoinGroup, and SyncGroup if it was sent; failures show at the next request."""
    with suppress(DissectorError, RewriteError):
        answer = await member.repeat(member.join, name)
        if answer is not None and not answer.error_code and member.sync >= 0:
            await _ask_for_part(name, member, member.sync)


def _generation(body: Container) -> int:
    """Return the generation of a request."""
    return int(body.get("generation_id", body.get("generation_id_or_member_epoch")))


def _member_id(body: Container) -> str:
    """Return the member id of a request; empty without one, as in OffsetCommit v0."""
    return str(body.get("member_id", ""))


def _body(message: Message | None) -> Container | None:
    return None if message is None else message.body
