"""Events of a timeline: equal ones as one, with the longest in full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from findings.registry.ranked_finding import MAX_PACKETS
from timeline.events.event import Event, Evidence

MAX_GROUPS = 10_000

GroupKey: TypeAlias = tuple[str, str, str, str]
"""Kind, subject, name and cause."""


@dataclass(slots=True)
class EventGroup:
    """
    Equal events.

    Attributes:
        longest: The longest of them.
        count: Their number.
        begin_ns: Begin of the first one.
        end_ns: End of the last one.
        evidence: The first exchanges that prove them.
        packets: All packets of that evidence.
    """

    longest: Event
    count: int = 0
    begin_ns: int = 0
    end_ns: int = 0
    evidence: dict[Evidence, None] = field(default_factory=dict)

    @property
    def packets(self) -> set[int]:
        """The packets of the evidence."""
        both = ((each.request_packet, each.response_packet) for each in self.evidence)
        return {packet for pair in both for packet in pair if packet is not None}

    def add(self, event: Event) -> None:
        """Add an event."""
        if event.end_ns - event.time_ns > self.longest.end_ns - self.longest.time_ns:
            self.longest = event
        self.count += event.count
        self.begin_ns = min(self.begin_ns or event.time_ns, event.time_ns)
        self.end_ns = max(self.end_ns, event.end_ns)
        room = MAX_PACKETS - len(self.evidence)
        self.evidence.update(dict.fromkeys(event.evidence[: max(room, 0)]))


@dataclass(slots=True)
class EventGroups:
    """
    The events of a capture.

    Attributes:
        groups: The groups, in the order of their first events.
        omitted: Number of events beyond the limit of groups.
    """

    groups: dict[GroupKey, EventGroup] = field(default_factory=dict)
    omitted: int = 0

    def add(self, event: Event) -> None:
        """Add an event."""
        key = (event.kind, event.subject, event.event, event.cause)
        if key not in self.groups and len(self.groups) >= MAX_GROUPS:
            self.omitted += event.count
            return
        self.groups.setdefault(key, EventGroup(event)).add(event)
