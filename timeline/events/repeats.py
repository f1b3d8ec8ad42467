"""
Repeated events as one, with their number: a cause that acts many times is one event.

Equal events are those of one client and subject, with the same name, cause and `repeats`. They need
not follow one another directly: a client that connects and is refused a thousand times makes two
events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from timeline.events.event import MAX_EVIDENCE, Event, Evidence, Needs, in_packet_order
from timeline.events.words import client_name

PAUSE_NS = 600 * 10**9
"""Longest pause within a run: clients refresh metadata, and fail again, each 5 minutes."""

RUN_NS = 3600 * 10**9
"""Longest run, as events of the same time wait for its end."""

MAX_RUNS = 10_000
"""Limit of open runs; beyond it the oldest is complete."""

MAX_NEEDS = 64
"""Maximum number of events of a run that may prove it."""


class RunKey(NamedTuple):
    """What equal events have in common."""

    client: str
    kind: str
    subject: str
    event: str
    cause: str
    repeats: str

    @classmethod
    def of(cls, event: Event) -> RunKey:
        """Return the key of an event."""
        first = event.evidence[0]
        client = client_name(first.client_id, first.client)
        return cls(client, event.kind, event.subject, event.event, event.cause, event.repeats or "")


class Run:
    """
    Equal events.

    Attributes:
        time_ns: Begin of the first.
        end_ns: End of the last.
    """

    def __init__(self, event: Event) -> None:
        self.time_ns, self.end_ns = event.time_ns, event.end_ns
        self._first = self._last = event
        self._count = event.count
        self._begin: list[Evidence] = list(event.evidence[:MAX_EVIDENCE])
        self._end: deque[Evidence] = deque(maxlen=MAX_EVIDENCE // 2)
        self._needs: list[Needs] = list(event.needs) if event.certain else []

    def add(self, event: Event) -> None:
        """Add an event."""
        self._count += event.count
        if event.time_ns < self.time_ns:
            self._first = event
        if event.time_ns >= self._last.time_ns:
            self._last = event
        self.time_ns = min(self.time_ns, event.time_ns)
        self.end_ns = max(self.end_ns, event.end_ns)
        room = MAX_EVIDENCE // 2 - len(self._begin)
        if room > 0:
            self._begin += event.evidence[:room]
        self._end += event.evidence
        if event.certain and len(self._needs) < MAX_NEEDS:
            self._needs += event.needs

    def event(self) -> Event:
        """Return the run as an event, with the first text, and the last one if it differs."""
        first, last = self._first, self._last
        if self._count == first.count:
            return first
        more = "" if last.text == first.text else f"; the last: {last.text}"
        return replace(
            first,
            end_ns=self.end_ns,
            text=f"{first.text}{more}",
            evidence=in_packet_order((*self._begin, *self._end)),
            certain=bool(self._needs),
            count=self._count,
            needs=tuple(self._needs),
        )


class Repeats:
    """Joins equal events into runs."""

    def __init__(self, pause_ns: int = PAUSE_NS, run_ns: int = RUN_NS) -> None:
        """Start; a run has no pause above `pause_ns`, and is no longer than `run_ns`."""
        self._pause_ns, self._run_ns = pause_ns, run_ns
        self._runs: dict[RunKey, Run] = {}

    def add(self, events: Iterable[Event]) -> Iterator[Event]:
        """Add events; yield those that are complete: unique ones, and runs that they end."""
        for event in events:
            if event.repeats is None:
                yield event
                continue
            key = RunKey.of(event)
            run = self._runs.get(key)
            if run is not None and self._continues(run, event):
                run.add(event)
                continue
            if run is not None:
                yield self._runs.pop(key).event()
            self._runs[key] = Run(event)
            if len(self._runs) > MAX_RUNS:
                yield self._runs.pop(next(iter(self._runs))).event()

    def expire(self, before_ns: int) -> Iterator[Event]:
        """Yield the runs that no event from `before_ns` on continues."""
        for key, run in list(self._runs.items()):
            if before_ns - run.end_ns > self._pause_ns or before_ns - run.time_ns > self._run_ns:
                yield self._runs.pop(key).event()

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest run."""
        return min((each.time_ns for each in self._runs.values()), default=None)

    def finish(self) -> Iterator[Event]:
        """Yield the runs open at the end of the capture."""
        for run in self._runs.values():
            yield run.event()
        self._runs.clear()

    def _continues(self, run: Run, event: Event) -> bool:
        pause_ns = max(event.time_ns - run.end_ns, run.time_ns - event.end_ns)
        begin_ns, end_ns = min(run.time_ns, event.time_ns), max(run.end_ns, event.end_ns)
        return pause_ns <= self._pause_ns and end_ns - begin_ns <= self._run_ns
