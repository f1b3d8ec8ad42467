"""
Answers to members of classic groups: captured generations, entered when members come and go.

A member gets the captured answers to its JoinGroup requests in order. When another one joins or
leaves, its heartbeats say so, as long as the capture has a further generation for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from construct import Container

from dissector.protocol.error_codes import error_code
from serve.answers.client_request import ClientRequest, Unmatched
from serve.answers.served_state import ServedState
from serve.matching.exchange_keys import join_keys, sync_keys

REBALANCES = error_code("REBALANCE_IN_PROGRESS")
FENCED = error_code("FENCED_INSTANCE_ID")
MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_FIRST_WITH_REQUIRED_IDS = 4
"""Version of JoinGroup (KIP-394)."""
_LOOK_AGAIN_S = 0.5
"""A session can end without an event."""


@dataclass(slots=True)
class Member:
    """
    A member of a served group.

    Attributes:
        generation: The one it has joined.
        instance: Of a static member.
        session_s: How long it may be silent.
        seen: When it last sent something.
        has_left: Whether it has left.
    """

    generation: int
    instance: str | None = None
    session_s: float = 10.0
    seen: float = 0.0
    has_left: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it has left, or its session is over."""
        return self.has_left or time.monotonic() - self.seen > self.session_s


@dataclass(slots=True)
class Group:
    """
    A served group.

    Attributes:
        members: Its members by id.
        instances: Static member -> its current member id.
        changed: Set when a member joins or leaves, and then replaced.
    """

    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def announce(self) -> None:
        """Wake the members that wait for others."""
        self.changed.set()
        self.changed = asyncio.Event()

    def generation(self) -> int:
        """Return the newest generation that a member has joined."""
        return max((each.generation for each in self.members.values()), default=-1)

    def others(self, member_id: str) -> Iterator[Member]:
        """Yield the members but one."""
        return (each for name, each in self.members.items() if name != member_id)


def check_group(state: ServedState, group: str) -> None:
    """
    Check that the capture has a group.

    Raises:
        Unmatched: It has not.
    """
    if group not in state.recording.groups:
        raise Unmatched(f"group {group}")


class ClassicGroups:
    """Answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(self, state: ServedState) -> None:
        self._state = state
        self._groups: dict[str, Group] = {}

    async def join(self, request: ClientRequest) -> Container:
        """Answer with the next captured generation of the member."""
        body = request.body
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
        if not found.error_code:
            session_s = body.session_timeout_ms / 1000
            member = Member(found.generation_id, instance, session_s, time.monotonic())
            group.members[found.member_id] = member
            if instance is not None:
                group.instances[instance] = found.member_id
            group.announce()
            patience_s = max(body.session_timeout_ms, body.get("rebalance_timeout_ms", -1)) / 1000
            await self._wait_for_others(body.group_id, found, patience_s)
            member.seen = time.monotonic()
        return found

    async def _wait_for_others(self, group_id: str, joined: Container, patience_s: float) -> None:
        """Wait until the members that the capture has in a generation have joined it too."""
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
        """Answer with the captured assignment of the member."""
        body = request.body
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
        """Answer whether the member has to join again."""
        body = request.body
        check_group(self._state, body.group_id)
        error = self.error_of(body.group_id, body.member_id, body.get("group_instance_id"))
        if not error and self._must_rejoin(body.group_id, body.member_id):
            error = REBALANCES or 0
        return Container(error_code=error)

    async def leave(self, request: ClientRequest) -> Container:
        """Let members leave."""
        body = request.body
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
        """Return why a member may not act in its group; 0 if it may."""
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
        """Return the next captured answer to a JoinGroup request of a member."""
        key: Hashable = join_keys(group_id, member_id, None, None)[0]
        number = self._state.recording.index.next_unused(key)
        return None if number is None else self._state.recording.response(number)
