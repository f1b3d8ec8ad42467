"""The events of a timeline: counts of all, details of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from timeline.events.event import KINDS, Event

MAX_RETAINED = 100
"""Events of one kind and name that are retained: the first ones."""


class EventDigest:
    """
    Counts events, and retains the first of each name.

    Attributes:
        counts: Events by kind, name and cause.
    """

    def __init__(self, most: int = MAX_RETAINED) -> None:
        """Start; `most` events of one kind and name are retained."""
        self._most = most
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._by_name: Counter[tuple[str, str]] = Counter()
        self._retained: dict[str, list[Event]] = {kind: [] for kind in KINDS}

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.counts[event.kind, event.event, event.cause] += 1
        self._by_name[event.kind, event.event] += 1
        if self._by_name[event.kind, event.event] <= self._most:
            self._retained[event.kind].append(event)

    def retained(self, kind: str) -> Sequence[Event]:
        """Return the retained events of a kind by time."""
        return sorted(self._retained[kind], key=lambda each: each.time_ns)

    def total(self, kind: str) -> int:
        """Return how many events of a kind there are."""
        return sum(count for (each, *_), count in self.counts.items() if each == kind)
