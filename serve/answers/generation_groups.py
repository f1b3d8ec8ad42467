"""
Answers to members of classic groups.

A member gets the captured responses to its JoinGroup requests in order. After another member
joins or leaves, heartbeats return REBALANCE_IN_PROGRESS if the capture has a later generation. A
member that does not offer the captured protocol is a miss: the group is then coordinated anew, with
a protocol that all its members offer, or the member is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from construct import Container

from dissector.protocol.error_codes import error_code
from serve.answers.client_request import ClientRequest, Unmatched
from serve.answers.live_groups import LiveGroups, inconsistent
from serve.answers.served_state import ServedState
from serve.matching.exchange_keys import join_keys, sync_keys

REBALANCES = error_code("REBALANCE_IN_PROGRESS")
FENCED = error_code("FENCED_INSTANCE_ID")
MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_FIRST_WITH_REQUIRED_IDS = 4
"""First version of JoinGroup with MEMBER_ID_REQUIRED (KIP-394)."""
_LOOK_AGAIN_S = 0.5
"""Interval of checks for expired sessions."""


@dataclass(slots=True)
class Member:
    """
    A member of a served group.

    Attributes:
        generation: Current generation of the member.
        instance: Group instance id; None for dynamic members.
        session_s: Session timeout.
        seen: Monotonic time of the last request.
        has_left: Whether a LeaveGroup request removed it.
        offers: The protocols that it offers.
    """

    generation: int
    instance: str | None = None
    session_s: float = 10.0
    seen: float = 0.0
    has_left: bool = False
    offers: frozenset[str] = frozenset()

    @property
    def is_gone(self) -> bool:
        """Whether the member has left, or its session has expired."""
        return self.has_left or time.monotonic() - self.seen > self.session_s


@dataclass(slots=True)
class Group:
    """
    A served group.

    Attributes:
        members: Members by member id.
        instances: Group instance id -> current member id.
        changed: Set, then replaced, when a member joins or leaves.
    """

    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def announce(self) -> None:
        """Wake members waiting for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def generation(self) -> int:
        """Return the highest generation of any member."""
        return max((each.generation for each in self.members.values()), default=-1)

    def others(self, member_id: str) -> Iterator[Member]:
        """Yield all members except one."""
        return (each for name, each in self.members.items() if name != member_id)


def check_group(state: ServedState, group: str) -> None:
    """
    Check that a group is in the capture.

    Raises:
        Unmatched: The capture lacks the group.
    """
    if group not in state.recording.groups:
        raise Unmatched(f"group {group}")


class ClassicGroups:
    """Answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(self, state: ServedState, add_miss: Callable[[ClientRequest, str], None]) -> None:
        self._state = state
        self._add_miss = add_miss
        self._groups: dict[str, Group] = {}
        self._live = LiveGroups()

    async def join(self, request: ClientRequest) -> Container:
        """Return the captured response with the member's next generation."""
        body = request.body
        if self._live.coordinates(body):
            check_group(self._state, body.group_id)
            return await self._live.join(request)
        group = self._groups.setdefault(body.group_id, Group())
        instance = body.group_instance_id
        keys = join_keys(body.group_id, body.member_id, instance, request.client_id)
        found = self._state.take_response(keys)
        if found is None:
            who = f"member {body.member_id}" if body.member_id else "a new member"
            raise Unmatched(f"{who} of group {body.group_id}")
        if (
            found.error_code == MEMBER_ID_REQUIRED
            and request.version < _FIRST_WITH_REQUIRED_IDS
            and found.member_id
        ):
            keys = join_keys(body.group_id, found.member_id, instance, request.client_id)
            found = self._state.take_response(keys) or found
        offers = frozenset(each.name for each in body.protocols)
        if offers and not found.error_code and found.protocol_name not in offers:
            return await self._join_anew(request, group, found.protocol_name, offers)
        if not found.error_code:
            session_s = body.session_timeout_ms / 1000
            member = Member(found.generation_id, instance, session_s, time.monotonic())
            member.offers = offers
            group.members[found.member_id] = member
            if instance is not None:
                group.instances[instance] = found.member_id
            group.announce()
            patience_s = max(body.session_timeout_ms, body.get("rebalance_timeout_ms", -1)) / 1000
            await self._wait_for_others(body.group_id, found, patience_s)
            member.seen = time.monotonic()
        return found

    async def _join_anew(
        self, request: ClientRequest, group: Group, captured: str, offers: frozenset[str]
    ) -> Container:
        """Answer a member that does not offer the captured protocol, as a coordinator would."""
        group_id = request.body.group_id
        shown = ", ".join(sorted(offers)) or "none"
        self._add_miss(
            request,
            f"a generation of group {group_id} with an assignor that the member offers ({shown}); "
            f"the captured one is {captured}",
        )
        present = [each.offers for each in group.members.values() if not each.is_gone]
        if not offers.intersection(*present):
            return inconsistent(request.body)
        self._live.adopt(group_id)
        group.announce()
        return await self._live.join(request)

    async def _wait_for_others(self, group_id: str, joined: Container, patience_s: float) -> None:
        """Wait until all members with this generation in the capture have joined it."""
        group = self._groups[group_id]
        deadline = time.monotonic() + patience_s
        generation = joined.generation_id
        while time.monotonic() < deadline and any(
            self._is_expected(group_id, name, generation)
            for name in group.members
            if name != joined.member_id
        ):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(group.changed.wait(), _LOOK_AGAIN_S)

    def _is_expected(self, group_id: str, member_id: str, generation: int) -> bool:
        member = self._groups[group_id].members[member_id]
        if member.is_gone or member.generation >= generation:
            return False
        answer = self._next_answer(group_id, member_id)
        if answer is None or answer.error_code:
            return False
        joins: int = answer.generation_id
        return member.generation < joins <= generation

    async def sync(self, request: ClientRequest) -> Container:
        """Return the captured assignment of the member."""
        body = request.body
        if self._live.coordinates(body):
            return await self._live.sync(request)
        self._see(body.group_id, body.member_id)
        found = self._state.take_response(
            sync_keys(body.group_id, body.member_id, body.generation_id)
        )
        if found is None:
            raise Unmatched(
                f"assignment of member {body.member_id!r} of group {body.group_id} "
                f"in generation {body.generation_id}"
            )
        return found

    async def heartbeat(self, request: ClientRequest) -> Container:
        """Return success, or REBALANCE_IN_PROGRESS if the member must rejoin."""
        body = request.body
        if self._live.coordinates(body):
            return await self._live.heartbeat(request)
        check_group(self._state, body.group_id)
        error = self.error_of(body.group_id, body.member_id, body.get("group_instance_id"))
        if not error and self._must_rejoin(body.group_id, body.member_id):
            error = REBALANCES or 0
        return Container(error_code=error)

    async def leave(self, request: ClientRequest) -> Container:
        """Remove members from a group."""
        body = request.body
        if self._live.coordinates(body):
            return await self._live.leave(request)
        check_group(self._state, body.group_id)
        group = self._groups.setdefault(body.group_id, Group())
        results = []
        for each in body.members:
            member_id = each.member_id or group.instances.get(each.get("group_instance_id") or "")
            member = group.members.get(member_id or "")
            if member is not None:
                member.has_left = True
                group.announce()
            results.append(
                Container(
                    member_id=each.member_id,
                    group_instance_id=each.get("group_instance_id"),
                    error_code=0,
                )
            )
        return Container(error_code=0, members=results)

    def error_of(self, group_id: str, member_id: str, instance: str | None) -> int:
        """Return the error code that fences a member; 0 without one."""
        group = self._groups.get(group_id)
        if group is None:
            return 0
        self._see(group_id, member_id)
        current = group.instances.get(instance) if instance is not None else None
        if current is not None and current != member_id:
            return FENCED or 0
        return 0

    def _see(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if member is not None:
            member.seen = time.monotonic()

    def _must_rejoin(self, group_id: str, member_id: str) -> bool:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return False
        is_behind = group.generation() > member.generation
        has_lost_one = any(each.is_gone for each in group.others(member_id))
        if not is_behind and not has_lost_one:
            return False
        return self._has_next_generation(group_id, member_id, member.generation)

    def _has_next_generation(self, group_id: str, member_id: str, generation: int) -> bool:
        answer = self._next_answer(group_id, member_id)
        return answer is not None and (bool(answer.error_code) or answer.generation_id > generation)

    def _next_answer(self, group_id: str, member_id: str) -> Container | None:
        """Return the member's next captured response to JoinGroup."""
        key: Hashable = join_keys(group_id, member_id, None, None)[0]
        number = self._state.recording.index.next_unused(key)
        return None if number is None else self._state.recording.response(number)
