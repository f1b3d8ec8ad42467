"""Waits of clients at a broker, and throttling by quotas: runs of responses that came later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration
from timeline.trackers.tracker import Tracker, keep_proof
from timeline.trackers.transaction_state import client_of

PAUSE_NS = 10 * 10**9
"""A run ends after this time without a wait."""

_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Run:
    """Responses of a broker to a client that waited."""

    time_ns: int = 0
    end_ns: int = 0
    count: int = 0
    total_ms: float = 0
    longest_ms: float = 0
    apis: set[str] = field(default_factory=set)
    proof: list[Evidence] = field(default_factory=list)


class WaitWords(NamedTuple):
    """
    What is said of a run.

    Attributes:
        event: Name of the event.
        cause: Its cause.
        text: What the broker did with the requests, as `throttled`.
    """

    event: str
    cause: str
    text: str


THROTTLED = WaitWords("throttled", "quota", "throttled")


class WaitRuns:
    """
    Runs of all clients, for one tracker.

    Args:
        tracker: The tracker.
        words: What is said of them.
    """

    def __init__(self, tracker: Tracker, words: WaitWords) -> None:
        self._tracker = tracker
        self._words = words
        self._runs: States[tuple[str, str], Run] = States(Fresh(Run))

    def add(self, observed: ObservedExchange, wait_ms: float) -> Iterator[Event]:
        """Add an exchange that waited; yield the run that ended before it."""
        key = client_of(observed), observed.broker
        run = self._runs.use(key)
        if run.count and observed.time_ns - run.end_ns > PAUSE_NS:
            yield self._event(key, run)
            del self._runs[key]
            run = self._runs.use(key)
        if not run.count:
            run.time_ns = observed.time_ns
        run.end_ns = max(run.end_ns, observed.end_ns)
        run.count += 1
        run.total_ms += wait_ms
        run.longest_ms = max(run.longest_ms, wait_ms)
        run.apis.add(observed.api or "")
        keep_proof(run.proof, observed.evidence)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest run."""
        return min((each.time_ns for each in self._runs.values()), default=None)

    def finish(self) -> Iterator[Event]:
        """Report the runs open at the end of the capture."""
        for key, run in self._runs.items():
            yield self._event(key, run)
        self._runs.clear()

    def _event(self, key: tuple[str, str], run: Run) -> Event:
        client, broker = key
        text = (
            f"{broker} {self._words.text} {counted(run.count, 'request')} "
            f"({', '.join(sorted(run.apis))}) "
            f"for {duration(round(run.total_ms * _NS_PER_MS))} in all, "
            f"{round(run.longest_ms)} ms at most, in {duration(run.end_ns - run.time_ns)}"
        )
        subject = f"{client} to {broker}" if self._tracker.kind == "connection" else client
        return self._tracker.event(
            subject,
            self._words.event,
            text,
            time_ns=run.time_ns,
            end_ns=run.end_ns,
            proof=run.proof,
            brokers=[broker],
            cause=self._words.cause,
        )


class Throttling(WaitRuns):
    """Runs of responses with a throttle time."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__(tracker, THROTTLED)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange; yield the run that ended before it."""
        yield from self.wait(observed, throttle_time_ms(observed))

    def wait(self, observed: ObservedExchange, wait_ms: int) -> Iterator[Event]:
        """Process an exchange with its throttle time, 0 without one."""
        if wait_ms > 0:
            yield from self.add(observed, wait_ms)


def throttle_time_ms(observed: ObservedExchange) -> int:
    """Return the throttle time in a response; 0 without one."""
    return 0 if observed.response is None else observed.response.get("throttle_time_ms") or 0
