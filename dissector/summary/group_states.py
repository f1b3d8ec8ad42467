"""The state of each group of a capture: members, generation, assignments, offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dissector.summary.group_events import (
    CLASSIC,
    Assignment,
    Committed,
    Generation,
    GroupEvent,
    Joining,
    Left,
    MemberFacts,
    Topic,
    TransactionEnded,
)
from dissector.summary.transactional_commits import TransactionalCommits

_MAX_FORMER = 1_000
"""Maximum number of kept former members per group."""


@dataclass(slots=True)
class GroupState:
    """
    A group according to its messages, at the end of the reading.

    Attributes:
        group_id: Its name.
        coordinator: The broker that answered last.
        kind: `classic`, `consumer`, `share` or `streams`; empty if only offsets were seen.
        protocol_type: Of a classic group.
        state: Kafka's name of the state; empty if unknown.
        generation: Generation, or epoch; None if unknown.
        assignor: The assignor.
        leader: The member that assigns.
        rebalances: Number of increases of the generation.
        members: Members by id.
        former: Members that left, or are not in the last generation.
        offsets: Committed offsets.
    """

    group_id: str
    coordinator: str = ""
    kind: str = ""
    protocol_type: str | None = None
    state: str = ""
    generation: int | None = None
    assignor: str | None = None
    leader: str | None = None
    rebalances: int = 0
    members: dict[str, MemberFacts] = field(default_factory=dict)
    former: dict[str, MemberFacts] = field(default_factory=dict)
    offsets: dict[tuple[Topic, int], int | None] = field(default_factory=dict)
    _instances: dict[str, str] = field(default_factory=dict)

    def apply_generation(self, event: Generation) -> None:
        """Apply a generation and its member states."""
        if event.number is not None:
            if self.generation is not None and event.number < self.generation:
                # Members of a group with epochs catch up one by one; others are fenced.
                if event.kind == self.kind != CLASSIC:
                    self._update(event)
                return
            if self.generation is not None and event.number > self.generation:
                self.rebalances += 1
                if event.kind == CLASSIC:
                    self._dismiss(set(self.members))  # rejoining ones are added
            self.generation = event.number
        if event.is_complete:
            self._dismiss(set(self.members) - set(event.members))
        self._update(event)
        self.kind = event.kind
        self.state = event.state or self.state
        self.protocol_type = event.protocol_type or self.protocol_type
        self.assignor = event.assignor or self.assignor
        self.leader = event.leader or self.leader

    def remove(self, members: tuple[str, ...]) -> None:
        """Remove members, given by member id or instance id."""
        ids = {self._instances.get(each, each) for each in members}
        self._dismiss({each for each in (*ids, *members) if each in self.members})
        if not self.members:
            self.state = "Empty"
        elif self.kind == CLASSIC:
            self.state = "PreparingRebalance"

    def _dismiss(self, members: set[str]) -> None:
        for name in sorted(members):
            self.former[name] = self.members.pop(name)
        for name in list(self.former)[:-_MAX_FORMER]:
            self._instances.pop(self.former.pop(name).instance_id or "", None)

    def _update(self, event: Generation) -> None:
        for name, facts in event.members.items():
            known = self.members.get(name) or self.former.pop(name, None)
            self.members[name] = _merged(known, facts)
            if facts.instance_id is not None:
                self._replace(name, facts.instance_id)

    def _replace(self, member: str, instance_id: str) -> None:
        """Remove the former id of a static member; it gets a new one at each start (KIP-345)."""
        old = self._instances.get(instance_id, member)
        self._instances[instance_id] = member
        if old != member:
            self.members.pop(old, None)
            self.former.pop(old, None)


def _merged(old: MemberFacts | None, new: MemberFacts) -> MemberFacts:
    if old is None:
        return new
    return MemberFacts(
        new.instance_id if new.instance_id is not None else old.instance_id,
        new.client_id if new.client_id is not None else old.client_id,
        new.client if new.client is not None else old.client,
        new.topics if new.topics is not None else old.topics,
        new.assignment if new.assignment is not None else old.assignment,
    )


class GroupStates:
    """
    The groups of a capture.

    Attributes:
        groups: By name.
    """

    def __init__(self) -> None:
        self.groups: dict[str, GroupState] = {}
        self._commits = TransactionalCommits()

    def apply(self, event: GroupEvent, coordinator: str) -> None:
        """Apply an event; events must be in the order of the capture."""
        if isinstance(event, Committed | TransactionEnded):
            for each in self._commits.settle(event):
                self._group(each.group_id).offsets.update(each.offsets)
        if isinstance(event, TransactionEnded):
            return
        group = self._group(event.group_id)
        group.coordinator = coordinator or group.coordinator
        match event:
            case Joining():
                group.state = "PreparingRebalance"
                group.kind = group.kind or CLASSIC
            case Generation():
                group.apply_generation(event)
            case Left():
                group.remove(event.members)

    def _group(self, group_id: str) -> GroupState:
        return self.groups.setdefault(group_id, GroupState(group_id))

    def resolve(self, name: Callable[[Topic], str]) -> None:
        """Replace topic ids by names."""
        for group in self.groups.values():
            group.offsets = {
                (name(topic), number): offset for (topic, number), offset in group.offsets.items()
            }
            for members in (group.members, group.former):
                for each, facts in members.items():
                    members[each] = replace(facts, assignment=_named(facts.assignment, name))


def _named(assignment: Assignment | None, name: Callable[[Topic], str]) -> Assignment | None:
    if assignment is None:
        return None
    return tuple((name(topic), numbers) for topic, numbers in assignment)
