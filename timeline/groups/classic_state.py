"""The state of a classic group: its members, and one generation after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from timeline.events.event import Evidence
from timeline.events.words import member_name

Assignment: TypeAlias = Mapping[str, tuple[int, ...]]
"""Partitions by topic."""


@dataclass(slots=True)
class Sync:
    """A successful SyncGroup: times of request and response, and the exchange."""

    request_ns: int
    response_ns: int
    evidence: Evidence


@dataclass(slots=True)
class Member:
    """
    A member of one generation, with its JoinGroup.

    Attributes:
        member_id: Its id, from the response.
        instance_id: Of a static member.
        request_ns: Time of its JoinGroup request.
        response_ns: When the coordinator answered, with all members.
        evidence: The exchange.
        session_timeout_ms: Its session timeout; 0 if its JoinGroup is not in the capture.
        rebalance_timeout_ms: Its rebalance timeout; JoinGroup v0 has none, and the session timeout
            applies.
        protocols: The metadata by the name of the protocol.
        reason: Why it joined, by its own words (v8+).
        active_ns: Its last accepted request, which restarts its session timeout.
        active_evidence: That exchange.
        signal_ns: When the coordinator first asked it to rejoin: an answer with
            REBALANCE_IN_PROGRESS.
        signal_evidence: That exchange.
    """

    member_id: str
    instance_id: str | None
    request_ns: int
    response_ns: int
    evidence: Evidence
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: dict[str, bytes] = field(default_factory=dict)
    reason: str = ""
    active_ns: int = 0
    active_evidence: Evidence | None = None
    signal_ns: int | None = None
    signal_evidence: Evidence | None = None

    @property
    def name(self) -> str:
        """The member for people."""
        return member_name(self.member_id, self.instance_id)

    @property
    def has_joined(self) -> bool:
        """Whether its JoinGroup is in the capture."""
        return self.session_timeout_ms > 0


@dataclass(slots=True)
class Leave:
    """A member that left: when, why by its own words (v5+), and the exchange."""

    member_id: str
    name: str
    time_ns: int
    reason: str
    evidence: Evidence


@dataclass(slots=True)
class Generation:
    """
    A generation, from its first JoinGroup on.

    Attributes:
        number: Its number.
        joins: The captured members, by id.
        member_ids: All members, from the response to the leader; None if it was not captured.
        leader: The id of the leader.
        protocol_type: `consumer`, `connect` or another one; empty if unknown.
        protocol: The protocol that the coordinator chose, an assignor.
        syncs: Answers to SyncGroup by member id.
        assignments: By member id, from the leader's SyncGroup or from each answer.
        leaves: Members that left while it was the current one.
    """

    number: int
    joins: dict[str, Member] = field(default_factory=dict)
    member_ids: tuple[str, ...] | None = None
    leader: str = ""
    protocol_type: str = ""
    protocol: str = ""
    syncs: dict[str, Sync] = field(default_factory=dict)
    assignments: dict[str, Assignment | None] = field(default_factory=dict)
    leaves: list[Leave] = field(default_factory=list)

    def replace(self, former: str, member_id: str) -> None:
        """Transfer the state of a member to its replacement."""
        self.joins.pop(former, None)
        if former in self.syncs:
            self.syncs[member_id] = self.syncs.pop(former)
        if former in self.assignments:
            self.assignments[member_id] = self.assignments.pop(former)
        if self.member_ids is not None:
            ids = self.member_ids
            self.member_ids = tuple(member_id if each == former else each for each in ids)

    @property
    def members(self) -> set[str]:
        """All known members."""
        return set(self.member_ids or ()) | self.joins.keys()

    @property
    def is_complete(self) -> bool:
        """Whether all its members are known, and all of them joined in the capture."""
        joined = {each for each, member in self.joins.items() if member.has_joined}
        return self.member_ids is not None and set(self.member_ids) <= joined

    @property
    def is_stable(self) -> bool:
        """Whether each known member has its assignment."""
        return bool(self.joins) and self.members <= self.syncs.keys()

    @property
    def joined_ns(self) -> int:
        """When the coordinator had all members: its first answer to JoinGroup."""
        return min(join.response_ns for join in self.joins.values())

    @property
    def end_ns(self) -> int:
        """When the last member had its assignment, as far as captured."""
        ends = [each.response_ns for each in self.joins.values()]
        return max([*ends, *(each.response_ns for each in self.syncs.values())])

    @property
    def disturbed_ns(self) -> int | None:
        """When it began to end: a member left, or had to rejoin; None if it is stable."""
        times = [each.time_ns for each in self.leaves]
        times += [each.signal_ns for each in self.joins.values() if each.signal_ns is not None]
        return min(times, default=None)

    @property
    def evidence(self) -> list[Evidence]:
        """The exchanges of its members."""
        joins = [each.evidence for each in self.joins.values()]
        return [*joins, *(each.evidence for each in self.syncs.values())]

    def name(self, member_id: str) -> str:
        """Return a member for people."""
        join = self.joins.get(member_id)
        return join.name if join else member_name(member_id)


@dataclass(slots=True)
class ClassicGroup:
    """
    A classic group at one coordinator.

    Attributes:
        name: Its id.
        coordinator: `address:port` of the broker.
        current: The last generation with an event, or the one at the begin of the capture.
        pending: The generation that is formed: its members join, and wait for their assignment.
        joined_ns: Times of new members by client, to detect flapping.
        moved_ns: When it answered that it is no longer the coordinator.
    """

    name: str
    coordinator: str
    current: Generation | None = None
    pending: Generation | None = None
    joined_ns: dict[str, list[int]] = field(default_factory=dict)
    moved_ns: int | None = None

    @property
    def newest(self) -> Generation | None:
        """The newest generation."""
        return self.pending or self.current

    def generation(self, number: int) -> Generation | None:
        """Return the current or the pending generation, by number."""
        for each in (self.pending, self.current):
            if each is not None and each.number == number:
                return each
        return None

    @property
    def since_ns(self) -> int | None:
        """When a rebalance under way may have begun; None without one."""
        if self.pending is not None:
            disturbed_ns = None if self.current is None else self.current.disturbed_ns
            begins = [join.request_ns for join in self.pending.joins.values()]
            return min(begins if disturbed_ns is None else [*begins, disturbed_ns])
        return None if self.current is None else self.current.disturbed_ns
