"""
Time order of events, with bounded memory.

An event is complete at its last exchange, a rebalance for instance seconds after it began. It is
held back until no earlier event can follow: until the oldest request in flight and the oldest open
state are younger.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from timeline.events.event import Event

MAX_WAITING = 20_000
"""Limit of events held back; beyond it the first are yielded, possibly out of order."""

HORIZON_NS = 3600 * 10**9
"""Limit of the time an event is held back: the hour of a summary, or of a run of equal events."""


class EventOrder:
    """Holds events back until no earlier ones can follow."""

    def __init__(self, horizon_ns: int = HORIZON_NS) -> None:
        """Start; no event waits for longer than `horizon_ns`."""
        self._horizon_ns = horizon_ns
        self._waiting: list[tuple[int, int, int, Event]] = []
        self._number = 0

    def add(self, events: Iterable[Event]) -> None:
        """Add events."""
        for event in events:
            heapq.heappush(self._waiting, (event.time_ns, event.end_ns, self._number, event))
            self._number += 1

    def ready(self, before_ns: int, now_ns: int) -> Iterator[Event]:
        """
        Yield the events that need not be held back.

        Args:
            before_ns: All events before this time are known.
            now_ns: Newest time in the capture.
        """
        limit_ns = max(before_ns, now_ns - self._horizon_ns)
        while self._waiting and (
            self._waiting[0][0] < limit_ns or len(self._waiting) > MAX_WAITING
        ):
            yield heapq.heappop(self._waiting)[-1]

    def drain(self) -> Iterator[Event]:
        """Yield the remaining events at the end of the capture."""
        while self._waiting:
            yield heapq.heappop(self._waiting)[-1]
