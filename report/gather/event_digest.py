"""Events of a timeline: counts of all, details of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from timeline.events.event import KINDS, Event

MAX_RETAINED = 100
"""Maximum number of retained events per kind and name; the first ones are retained."""


class EventDigest:
    """
    Counts events, and retains the first events of each name.

    Attributes:
        counts: Number of events by kind, name and cause, equal ones too.
    """

    def __init__(self, most: int = MAX_RETAINED) -> None:
        """Start; `most` limits retained events per kind and name."""
        self._most = most
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._by_name: Counter[tuple[str, str]] = Counter()
        self._retained: dict[str, list[Event]] = {kind: [] for kind in KINDS}

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.counts[event.kind, event.event, event.cause] += event.count
        self._by_name[event.kind, event.event] += 1
        if self._by_name[event.kind, event.event] <= self._most:
            self._retained[event.kind].append(event)

    def retained(self, kind: str) -> Sequence[Event]:
        """Return the retained events of a kind in time order."""
        return sorted(self._retained[kind], key=lambda each: each.time_ns)

    def total(self, kind: str) -> int:
        """Return the number of events of a kind; equal ones are one."""
        return sum(count for (each, _), count in self._by_name.items() if each == kind)
