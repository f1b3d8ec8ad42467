"""Throttling of clients by quotas: runs of responses with a throttle time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration
from timeline.trackers.tracker import Tracker, keep_proof
from timeline.trackers.transaction_state import client_of

PAUSE_NS = 10 * 10**9
"""A run ends after this time without a throttled response."""


@dataclass(slots=True)
class Run:
    """Throttled responses of a broker to a client."""

    time_ns: int = 0
    end_ns: int = 0
    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    apis: set[str] = field(default_factory=set)
    proof: list[Evidence] = field(default_factory=list)


class Throttling:
    """Runs of all clients, for one tracker."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._runs: States[tuple[str, str], Run] = States(Fresh(Run))

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange; yield the run that ended before it."""
        throttle_ms = (
            0 if observed.response is None else observed.response.get("throttle_time_ms") or 0
        )
        if throttle_ms <= 0:
            return
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
        run.total_ms += throttle_ms
        run.longest_ms = max(run.longest_ms, throttle_ms)
        run.apis.add(observed.exchange.api or "")
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
            f"{broker} throttled {counted(run.count, 'request')} ({', '.join(sorted(run.apis))}) "
            f"for {duration(run.total_ms * 1_000_000)} in all, "
            f"{run.longest_ms} ms at most, in {duration(run.end_ns - run.time_ns)}"
        )
        return self._tracker.event(
            client,
            "throttled",
            text,
            time_ns=run.time_ns,
            end_ns=run.end_ns,
            proof=run.proof,
            brokers=[broker],
            cause="quota",
        )
