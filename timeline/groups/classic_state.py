"""State of a classic group: members and generations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from timeline.events.event import Evidence
from timeline.events.words import client_name, member_name

Assignment: TypeAlias = Mapping[str, tuple[int, ...]]
"""Partitions by topic."""

MAX_PROOFS = 16
"""Maximum number of exchanges that show an absence."""


@dataclass(slots=True)
class Sync:
    """A successful SyncGroup: times of request and response, and the exchange."""

    request_ns: int
    response_ns: int
    evidence: Evidence


@dataclass(slots=True)
class Member:
    """
    A member in one generation, with its JoinGroup.

    Attributes:
        member_id: Member id in the response.
        instance_id: Instance id of a static member.
        request_ns: Time of its JoinGroup request.
        response_ns: Time of the JoinGroup response, sent when all members have joined.
        evidence: The JoinGroup exchange.
        session_timeout_ms: Session timeout; 0 if the JoinGroup is not captured.
        rebalance_timeout_ms: Rebalance timeout; JoinGroup v0 has none, so the session timeout
            applies.
        protocols: Metadata by name of the protocol.
        reason: Reason given by the member (v8+).
        active_ns: Time of the last accepted request, which restarts the session timeout.
        active_evidence: The exchange of that request.
        signal_ns: Time of the first REBALANCE_IN_PROGRESS from the coordinator.
        signal_evidence: The exchange of that signal.
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
        """Name of the member for texts."""
        return member_name(self.member_id, self.instance_id)

    @property
    def client(self) -> str:
        """Client id and host."""
        return client_name(self.evidence.client_id, self.evidence.client)

    @property
    def connection(self) -> int:
        """Number of the connection of its last accepted request."""
        return (self.active_evidence or self.evidence).connection

    @property
    def has_joined(self) -> bool:
        """Whether the JoinGroup is captured."""
        return self.session_timeout_ms > 0


@dataclass(slots=True)
class Leave:
    """Departure of a member: time, reason given by it (v5+), and exchange."""

    member_id: str
    name: str
    time_ns: int
    reason: str
    evidence: Evidence


class Absence(NamedTuple):
    """
    A time in which the coordinator of a group was away: stopped, elsewhere, or not ready.

    Attributes:
        time_ns: Begin: the first connection that it closed, or the first answer.
        end_ns: Its first answer afterwards. It loads the group then, and restarts the session
            timeouts of all members. Source: Kafka, GroupMetadataManager.onLoaded.
        word: Event, and cause of the rebalance that follows.
        evidence: Exchanges that show it.
        is_proven: Whether answers or refused connections show it; else only closed connections.
    """

    time_ns: int
    end_ns: int
    word: str
    evidence: tuple[Evidence, ...] = ()
    is_proven: bool = False

    @property
    def duration_ns(self) -> int:
        """How long it was away."""
        return self.end_ns - self.time_ns


@dataclass(slots=True)
class Generation:
    """
    A generation, from its first JoinGroup.

    Attributes:
        number: Generation number.
        joins: Captured members by id.
        member_ids: All member ids, from the leader's response; None if that is not captured.
        leader: Member id of the leader.
        protocol_type: `consumer`, `connect` or another type; empty if unknown.
        protocol: Protocol chosen by the coordinator: an assignor.
        syncs: SyncGroup responses by member id.
        assignments: Assignments by member id, from the leader's SyncGroup or the responses.
        leaves: Members that left during this generation.
        absence: The last time in it that the coordinator was away.
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
    absence: Absence | None = None

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
        """Whether all members are known, with captured JoinGroup requests."""
        joined = {each for each, member in self.joins.items() if member.has_joined}
        return self.member_ids is not None and set(self.member_ids) <= joined

    @property
    def is_stable(self) -> bool:
        """Whether all known members have an assignment."""
        return bool(self.joins) and self.members <= self.syncs.keys()

    @property
    def joined_ns(self) -> int:
        """Time of the first JoinGroup response, sent when all members have joined."""
        return min(join.response_ns for join in self.joins.values())

    @property
    def end_ns(self) -> int:
        """Time of the last captured assignment."""
        ends = [each.response_ns for each in self.joins.values()]
        return max([*ends, *(each.response_ns for each in self.syncs.values())])

    @property
    def disturbed_ns(self) -> int | None:
        """Time of the first departure or rejoin signal; None if the generation is stable."""
        times = [each.time_ns for each in self.leaves]
        times += [each.signal_ns for each in self.joins.values() if each.signal_ns is not None]
        return min(times, default=None)

    @property
    def evidence(self) -> list[Evidence]:
        """Exchanges of the members."""
        joins = [each.evidence for each in self.joins.values()]
        return [*joins, *(each.evidence for each in self.syncs.values())]

    def name(self, member_id: str) -> str:
        """Return the name of a member for texts."""
        join = self.joins.get(member_id)
        return join.name if join else member_name(member_id)


@dataclass(slots=True)
class ClassicGroup:
    """
    A classic group at one coordinator.

    Attributes:
        name: Group id.
        coordinator: `address:port` of the broker.
        current: The last reported generation, or the one at the begin of the capture.
        pending: The generation in formation: members join and wait for assignments.
        joined_ns: Join times of new members by client, to detect flapping.
        absence: Since when its coordinator is away: not the coordinator, or not ready.
    """

    name: str
    coordinator: str
    current: Generation | None = None
    pending: Generation | None = None
    joined_ns: dict[str, list[int]] = field(default_factory=dict)
    absence: Absence | None = None

    def add_absence(self, time_ns: int, evidence: Evidence) -> None:
        """Add an answer that shows that the coordinator is away."""
        absence = self.absence or Absence(time_ns, time_ns, "coordinator away", is_proven=True)
        proof = (*absence.evidence, evidence)[:MAX_PROOFS]
        self.absence = absence._replace(end_ns=time_ns, evidence=proof)

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
        """Possible begin of the current rebalance; None without one."""
        if self.pending is not None:
            disturbed_ns = None if self.current is None else self.current.disturbed_ns
            begins = [join.request_ns for join in self.pending.joins.values()]
            return min(begins if disturbed_ns is None else [*begins, disturbed_ns])
        return None if self.current is None else self.current.disturbed_ns
