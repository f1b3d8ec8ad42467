"""
Puts events in time order, with bounded memory.

An event comes when its last exchange ends, a rebalance for instance seconds after it began. It
waits until no earlier event can come: until the oldest request in flight and the oldest state
that may still become an event are younger.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from timeline.events.event import Event

MAX_WAITING = 20_000
"""Events that may wait; beyond that the first are yielded, possibly out of order."""

HORIZON_NS = 600 * 10**9
"""How long an event waits for earlier ones; a request in flight may never be answered."""


class EventOrder:
    """Retains events until no earlier ones can come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, Event]] = []
        self._number = 0

    def add(self, events: Iterable[Event]) -> None:
        """Add events."""
        for event in events:
            heapq.heappush(self._waiting, (event.time_ns, event.end_ns, self._number, event))
            self._number += 1

    def ready(self, before_ns: int, now_ns: int) -> Iterator[Event]:
        """
        Yield the events that wait no longer.

        Args:
            before_ns: Earlier events are complete.
            now_ns: The newest time of the capture.
        """
        limit_ns = max(before_ns, now_ns - HORIZON_NS)
        while self._waiting and (
            self._waiting[0][0] < limit_ns or len(self._waiting) > MAX_WAITING
        ):
            yield heapq.heappop(self._waiting)[-1]

    def drain(self) -> Iterator[Event]:
        """Yield the rest, at the end of the capture."""
        while self._waiting:
            yield heapq.heappop(self._waiting)[-1]
