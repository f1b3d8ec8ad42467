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

from cluster.conversion.change import Change
from cluster.fields.refusal import RewriteError
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.errors import DissectorError
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.model.outcome import REJOINED
from replay.model.step import Step
from replay.order.group_order import leaving_members
from replay.plan.plan import Plan
from replay.sessions.retry_policy import RetryReason, rebalances

Repeat = Callable[[int, str], Awaitable[Container | None]]
"""Repeats a step for a member, by its captured id, and returns the response."""

_GroupMember = tuple[str, str]
"""Captured group and member."""

_GroupGeneration = tuple[str, int]
"""Captured group and generation."""

_REPORTS_REBALANCE = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""APIs with responses that report a rebalance to a member."""

_NO_STEP = -1

_MEMBER_APIS = _REPORTS_REBALANCE | {"JoinGroup", "LeaveGroup"}


@dataclass(slots=True)
class _Member:
    """
    A member that has joined.

    Attributes:
        join_step: The step of its JoinGroup; -1 if not captured.
        repeat: Repeats a step for it.
        sync_step: The step of its last SyncGroup since; -1 for none.
        last_confirmed: The last step with a response that confirmed its membership.
        is_before_rebalance: Whether the next captured response reports a rebalance to it.
        has_rejoined: Whether it rejoined between its captured requests.
        rejoin_task: The task of its rejoin.
        assign_task: The task of a SyncGroup sent before the captured one, to assign as leader.
    """

    join_step: int
    repeat: Repeat
    sync_step: int = -1
    last_confirmed: int = -1
    is_before_rebalance: bool = False
    has_rejoined: bool = False
    rejoin_task: asyncio.Task[None] | None = None
    assign_task: asyncio.Task[None] | None = None


class GroupSessions:
    """The groups of a pass, by their captured names."""

    def __init__(self, plan: Plan, ids: IdMap) -> None:
        self._plan = plan
        self._ids = ids
        self._leaders: dict[str, str] = {}
        self._members: dict[_GroupMember, _Member] = {}
        self._incomplete: dict[_GroupGeneration, int] = {}
        self._pending_assignments: dict[str, int] = {}

    def record_response(self, step: Step, response: Container, repeat: Repeat) -> None:
        """
        Update leaders and members from a response.

        Args:
            step: The step.
            response: The response body of the target.
            repeat: Repeats a step for the member.
        """
        name = step.captured.api
        if name not in _MEMBER_APIS or response.get("error_code"):
            return
        body, captured_response = (
            step.captured.request_message().body,
            _body(step.captured.response_message()),
        )
        if body is None:
            return
        group = body.group_id
        if name == "JoinGroup":
            self._leaders[group] = self._ids.members.captured(group, response.leader)
            if captured_response is not None and not captured_response.error_code:
                member = _Member(step.number, repeat, is_before_rebalance=step.is_before_rebalance)
                self._join((group, captured_response.member_id), member)
                self._assign_as_leader(group)
        elif name == "LeaveGroup":
            for left in leaving_members(body):
                self._members.pop((group, left), None)
        elif (joined := self._members.get((group, _member_id(body)))) is not None:
            joined.is_before_rebalance, joined.last_confirmed = (
                step.is_before_rebalance,
                step.number,
            )
            if name == "SyncGroup":
                joined.sync_step = step.number
                self._pending_assignments.pop(group, None)

    def add_uncaptured_member(self, group: str, member: str, repeat: Repeat) -> None:
        """Add a member without a captured join; `repeat` makes it rejoin."""
        self._members[group, member] = _Member(_NO_STEP, repeat)

    def _join(self, key: _GroupMember, member: _Member) -> None:
        """Add a member; one that joined again by the same step keeps its state."""
        before = self._members.get(key)
        if before is not None and before.join_step == member.join_step:
            before.is_before_rebalance = member.is_before_rebalance
        else:
            self._members[key] = member

    def retry_reason(self, step: Step, response: Container, version: int) -> RetryReason | None:
        """
        Return why to retry a request of a member; None if its response is final.

        Args:
            step: The step.
            response: The response body of the target.
            version: The version of the response.
        """
        name, captured_response = step.captured.api, step.captured.response_message()
        if captured_response is None or captured_response.body is None:
            return None
        if name == "JoinGroup" and self._awaits_others(
            step.captured, captured_response.body, response
        ):
            return RetryReason.MEMBERS
        if name not in _REPORTS_REBALANCE or step.is_before_rebalance or self._key(step) is None:
            return None
        assert captured_response.schema is not None
        assert captured_response.api_version is not None
        was_rebalance = rebalances(
            captured_response.schema, captured_response.api_version, captured_response.body
        )
        is_rebalance = rebalances(captured_response.schema, version, response)
        return RetryReason.REJOIN if is_rebalance and not was_rebalance else None

    def _awaits_others(
        self, captured: CapturedExchange, captured_response: Container, response: Container
    ) -> bool:
        """
        Return whether other members of the captured generation have yet to join.

        Only the leader gets the list of members. Members that joined before the others rejoin.
        """
        body = captured.request_message().body
        if body is None or response.error_code:
            return False
        place, generation = (body.group_id, captured_response.generation_id), response.generation_id
        leads, size = (
            response.leader == response.member_id,
            self._plan.groups.generation_sizes.get(place, 0),
        )
        if leads and len(response.members) < size:
            self._incomplete[place] = generation
        return bool(self._incomplete.get(place) == generation)

    def _key(self, step: Step) -> _GroupMember | None:
        """Return group and member of a step, if the member has joined."""
        body = step.captured.request_message().body
        key = (body.group_id, _member_id(body)) if body is not None else ("", "")
        return key if key in self._members else None

    async def until_joined(self, step: Step) -> None:
        """Wait for a rejoin of the member: else the request would carry its old generation."""
        key = self._key(step) if step.captured.api in _REPORTS_REBALANCE else None
        joining = self._members[key].rejoin_task if key is not None else None
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
        if _generation(request) == self._ids.members.live_generation(*key, _generation(body)):
            await asyncio.shield(self._rejoin(key))
        self._members[key].has_rejoined = False
        return self._change(key)

    async def on_rebalance(self, group: str, member: str) -> bool:
        """
        Make a member rejoin after a heartbeat between its captured requests reports a rebalance.

        It does not if the capture has a rebalance next too, and so its own rejoin.

        Returns:
            Whether it still is a member: not if the capture has no further requests of it.
        """
        key = group, member
        joined = self._members.get(key)
        if joined is None or joined.is_before_rebalance:
            return True
        if joined.last_confirmed >= self._plan.groups.last_steps.get(key, -1):
            return False
        joined.has_rejoined = True
        await asyncio.shield(self._rejoin(key))
        return True

    def rejoin_changes(self, step: Step) -> list[Change]:
        """Return the change for a rejoin of the member since its last request, if any."""
        key = self._key(step) if step.captured.api in _REPORTS_REBALANCE else None
        if key is None or not self._members[key].has_rejoined:
            return []
        self._members[key].has_rejoined = False
        return [self._change(key)]

    def _change(self, key: _GroupMember) -> Change:
        return Change("member_id", Role.MEMBER, key[1], self._ids.members.live(*key), REJOINED)

    def _rejoin(self, key: _GroupMember) -> asyncio.Task[None]:
        member = self._members[key]
        if member.rejoin_task is None or member.rejoin_task.done():
            member.rejoin_task = asyncio.create_task(_repeat_join(key[1], member))
        return member.rejoin_task

    def assign(self, message: Message) -> list[Change]:
        """
        Make the leader on the target send the assignments of the captured leader.

        Args:
            message: A captured SyncGroup with a body that may change.
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
                self._pending_assignments[body.group_id] = body.generation_id
                self._assign_as_leader(body.group_id)
        elif not before and number is not None:
            captured = self._plan.step(number).captured.request_message().body
            body.assignments = captured.assignments if captured is not None else []
        if len(before) == len(body.assignments):
            return []
        why = "the group has another leader"
        return [Change("assignments", Role.EMBEDDED, len(before), len(body.assignments), why)]

    def _assign_as_leader(self, group: str) -> None:
        """
        Send the SyncGroup of the leader on the target, which is not the captured leader.

        Its own step may follow only the captured leader's step, on which its response depends.
        """
        key = group, self._leaders[group]
        number = self._plan.groups.sync_steps.get((*key, self._pending_assignments.get(group, 0)))
        leader = self._members.get(key)
        if leader is not None and number is not None:
            del self._pending_assignments[group]
            leader.assign_task = asyncio.create_task(_repeat_sync(key[1], leader, number))


async def _repeat_sync(name: str, member: _Member, number: int) -> None:
    """Repeat a SyncGroup; failures show at the next request."""
    with suppress(DissectorError, RewriteError):
        await member.repeat(number, name)


async def _repeat_join(name: str, member: _Member) -> None:
    """Repeat JoinGroup, and SyncGroup if it was sent; failures show at the next request."""
    with suppress(DissectorError, RewriteError):
        response = await member.repeat(member.join_step, name)
        if response is not None and not response.error_code and member.sync_step >= 0:
            await _repeat_sync(name, member, member.sync_step)


def _generation(body: Container) -> int:
    """Return the generation of a request."""
    return int(body.get("generation_id", body.get("generation_id_or_member_epoch")))


def _member_id(body: Container) -> str:
    """Return the member id of a request; empty without one, as in OffsetCommit v0."""
    return str(body.get("member_id", ""))


def _body(message: Message | None) -> Container | None:
    return None if message is None else message.body
