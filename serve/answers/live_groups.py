"""
Groups coordinated anew, as the captured assignments do not fit their members.

Members that do not offer the captured protocol choose another one. Workers of Kafka Connect assign
connectors by the offset of their configuration, and call their leader at the address in the
assignment (KIP-415): a captured assignment would lead them to a captured worker. Each generation
waits for all members, and gets the assignments of its leader.

Source: Kafka, GroupMetadataManager (classic groups).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.protocol.error_codes import error_code
from serve.answers.client_request import ClientRequest

_REBALANCES = error_code("REBALANCE_IN_PROGRESS") or 27
_UNKNOWN_MEMBER = error_code("UNKNOWN_MEMBER_ID") or 25
_OLD_GENERATION = error_code("ILLEGAL_GENERATION") or 22
_INCONSISTENT = error_code("INCONSISTENT_GROUP_PROTOCOL") or 23
_MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED") or 79
_FIRST_WITH_REQUIRED_IDS = 4
"""Version of JoinGroup (KIP-394)."""
_LOOK_AGAIN_S = 0.5
"""Interval for checks of sessions, which expire without an event."""
_PROTOCOL_TYPES = frozenset({"connect"})


@dataclass(slots=True)
class LiveMember:
    """
    A member.

    Attributes:
        protocols: Protocol -> metadata, in the order of preference.
        session_s: Session timeout, s.
        patience_s: Rebalance timeout, s.
        seen: Time of the last request, monotonic, s.
        has_joined: Whether it has joined the next generation.
    """

    protocols: Mapping[str, bytes]
    session_s: float
    patience_s: float
    seen: float = field(default_factory=time.monotonic)
    has_joined: bool = True


@dataclass(slots=True)
class LiveGroup:
    """
    A group.

    Attributes:
        members: Members by id.
        generation: The current generation.
        leader: Id of the leader.
        protocol: The protocol of the generation.
        assignments: Assignments by member id; None until the leader has sent them.
        is_joining: Whether members are joining the next generation.
        changed: Set at each change, then replaced.
    """

    members: dict[str, LiveMember] = field(default_factory=dict)
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    assignments: Mapping[str, bytes] | None = None
    is_joining: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def announce(self) -> None:
        """Wake requests waiting for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_until(self, condition: Callable[[], bool], patience_s: float) -> None:
        """Wait for a condition, at most for a time."""
        deadline = time.monotonic() + patience_s
        while not condition() and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), _LOOK_AGAIN_S)

    def start_joining(self) -> None:
        """Make all members join a new generation."""
        if not self.is_joining:
            self.is_joining = True
            for each in self.members.values():
                each.has_joined = False
        self.announce()

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        if self.members.pop(member_id, None) is not None:
            self.start_joining()

    def remove_silent(self) -> None:
        """Remove the members with expired sessions."""
        now = time.monotonic()
        for name, each in list(self.members.items()):
            waits = self.is_joining and each.has_joined
            if not waits and now - each.seen > each.session_s:
                self.remove(name)

    def is_complete(self) -> bool:
        """Return whether all members have joined."""
        self.remove_silent()
        return all(each.has_joined for each in self.members.values())

    def accepts(self, member_id: str, protocols: Mapping[str, bytes]) -> bool:
        """Return whether a member has a protocol in common with all other members."""
        self.remove_silent()
        offers = [each.protocols for name, each in self.members.items() if name != member_id]
        return any(all(name in each for each in offers) for name in protocols)

    def enter_generation(self) -> None:
        """Begin the generation of the members that have joined."""
        self.members = {name: each for name, each in self.members.items() if each.has_joined}
        self.generation += 1
        self.is_joining = False
        self.assignments = None
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        offers = [each.protocols for each in self.members.values()]
        common = (name for name in offers[0] if all(name in each for each in offers))
        self.protocol = next(common, "")
        now = time.monotonic()
        for each in self.members.values():
            each.seen = now
        self.announce()


class LiveGroups:
    """Answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup of such groups."""

    def __init__(self) -> None:
        self._groups: dict[str, LiveGroup] = {}

    def coordinates(self, body: Container) -> bool:
        """Return whether the group of a request is coordinated here, from its first join on."""
        is_join = "protocols" in body
        return body.group_id in self._groups or (is_join and body.protocol_type in _PROTOCOL_TYPES)

    def adopt(self, group_id: str) -> None:
        """Coordinate a group from now on: members of captured generations have to join again."""
        self._groups.setdefault(group_id, LiveGroup())

    async def join(self, request: ClientRequest) -> Container:
        """Answer when all members have joined; refuse a member without a common protocol."""
        body = request.body
        group = self._groups.setdefault(body.group_id, LiveGroup())
        member_id = body.member_id
        if not member_id:
            member_id = f"{request.client_id}-{uuid.uuid4()}"
            if request.version >= _FIRST_WITH_REQUIRED_IDS:
                return _joined(body, member_id, error_code=_MEMBER_ID_REQUIRED)
        protocols = {each.name: each.metadata for each in body.protocols}
        if not group.accepts(member_id, protocols):
            return inconsistent(body)
        known = group.members.get(member_id)
        is_follower = known is not None and group.leader != member_id
        if group.is_joining or not (is_follower and known and known.protocols == protocols):
            group.start_joining()
            session_s = body.session_timeout_ms / 1000
            patience_s = max(session_s, body.get("rebalance_timeout_ms", -1) / 1000)
            group.members[member_id] = LiveMember(protocols, session_s, patience_s)
            group.announce()
            await self._wait_for_others(group, patience_s)
        if member_id not in group.members:
            return _joined(body, member_id, error_code=_UNKNOWN_MEMBER)
        return _joined(
            body,
            member_id,
            generation_id=group.generation,
            protocol_name=group.protocol,
            leader=group.leader,
            members=[
                Container(
                    member_id=name,
                    group_instance_id=None,
                    metadata=each.protocols.get(group.protocol, b""),
                )
                for name, each in group.members.items()
                if member_id == group.leader
            ],
        )

    async def _wait_for_others(self, group: LiveGroup, patience_s: float) -> None:
        before = group.generation
        await group.wait_until(
            lambda: group.generation != before or group.is_complete(), patience_s
        )
        if group.generation == before:
            group.enter_generation()

    async def sync(self, request: ClientRequest) -> Container:
        """Answer with the assignment of the leader."""
        body = request.body
        group, generation = self._groups[body.group_id], body.generation_id
        error = self._error_of(body)
        if not error and body.member_id == group.leader and not group.is_joining:
            group.assignments = {each.member_id: each.assignment for each in body.assignments}
            group.announce()
        if not error:
            await group.wait_until(
                lambda: group.assignments is not None or group.is_joining,
                group.members[body.member_id].patience_s,
            )
            is_over = group.is_joining or group.generation != generation
            error = _REBALANCES if is_over or group.assignments is None else 0
        assignments = group.assignments or {}
        return Container(
            error_code=error,
            protocol_type=body.get("protocol_type"),
            protocol_name=group.protocol,
            assignment=b"" if error else assignments.get(body.member_id, b""),
        )

    async def heartbeat(self, request: ClientRequest) -> Container:
        """Answer whether the member has to join again."""
        group = self._groups[request.body.group_id]
        error = self._error_of(request.body)
        group.remove_silent()
        return Container(error_code=error or (_REBALANCES if group.is_joining else 0))

    async def leave(self, request: ClientRequest) -> Container:
        """Remove members."""
        group = self._groups[request.body.group_id]
        results = []
        for each in request.body.members:
            error = 0 if each.member_id in group.members else _UNKNOWN_MEMBER
            group.remove(each.member_id)
            results.append(
                Container(member_id=each.member_id, group_instance_id=None, error_code=error)
            )
        return Container(error_code=0, members=results)

    def _error_of(self, body: Container) -> int:
        """Return the error of a request of no current member, else 0."""
        group = self._groups[body.group_id]
        member = group.members.get(body.member_id)
        if member is None:
            return _UNKNOWN_MEMBER
        member.seen = time.monotonic()
        return 0 if body.generation_id == group.generation else _OLD_GENERATION


def inconsistent(body: Container) -> Container:
    """Return the answer to a member without a protocol in common with the others."""
    return _joined(body, body.member_id, error_code=_INCONSISTENT)


def _joined(body: Container, member_id: str, **more: Any) -> Container:
    settings = {"error_code": 0, "generation_id": -1, "protocol_name": "", "leader": ""}
    return Container(
        **{**settings, "members": [], **more},
        protocol_type=body.get("protocol_type"),
        skip_assignment=False,
        member_id=member_id,
    )
