"""
Failed connection attempts, and connections closed after a silence.

Source: `connections.max.idle.ms` of brokers (10 minutes) and of Java's clients (9 minutes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from timeline.events.closes import Close
from timeline.events.connect_attempts import Attempt
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import client_name, counted, duration
from timeline.trackers.tracker import Tracker, keep_proof

IDLE_NS = 60 * 10**9
"""Minimum time without an exchange for a close to count as idle."""

PAUSE_NS = 60 * 10**9
"""A run of failed attempts ends after this time without one."""


@dataclass(slots=True)
class Run:
    """Failed attempts of a host to connect to a broker, with one cause."""

    time_ns: int = 0
    end_ns: int = 0
    count: int = 0
    proof: list[Evidence] = field(default_factory=list)


class ClosedConnections(Tracker):
    """Follows connections at their begin and end."""

    kind: ClassVar[str] = "connection"
    sees_closes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._runs: States[tuple[str, str, str], Run] = States(Fresh(Run))

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Ignore exchanges."""
        yield from ()

    def observe_close(self, close: Close) -> Iterator[Event]:
        """Report a connection closed after a silence."""
        if close.idle_ns < IDLE_NS or close.last.status not in ("answered", "no_response"):
            return
        whose = "brokers is 10" if close.closer == "broker" else "Java's clients is 9"
        text = (
            f"connection {close.connection}: the {close.closer} closed it after "
            f"{duration(close.idle_ns)} without a request; connections.max.idle.ms of {whose} "
            "minutes by default"
        )
        yield self.event(
            f"{close.client} to {close.broker}",
            "idle close",
            text,
            time_ns=close.last.end_ns,
            end_ns=close.time_ns,
            proof=[close.last.evidence],
            brokers=[close.broker],
            cause=close.closer,
            repeats="",
        )

    def observe_attempt(self, attempt: Attempt) -> Iterator[Event]:
        """Process a failed attempt; yield the run that ended before it."""
        key = client_name(None, attempt.client), attempt.broker, attempt.cause
        run = self._runs.use(key)
        if run.count and attempt.time_ns - run.end_ns > PAUSE_NS:
            yield self._failed(key, run)
            del self._runs[key]
            run = self._runs.use(key)
        if not run.count:
            run.time_ns = attempt.time_ns
        run.count += 1
        run.end_ns = max(run.end_ns, attempt.end_ns)
        keep_proof(run.proof, attempt.evidence)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest run."""
        return min((each.time_ns for each in self._runs.values()), default=None)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the runs open at the end of the capture."""
        for key, run in self._runs.items():
            yield self._failed(key, run)
        self._runs.clear()

    def _failed(self, key: tuple[str, str, str], run: Run) -> Event:
        host, broker, cause = key
        what = (
            "refused by a reset, as on a closed port"
            if cause == "refused"
            else "no answer in the capture, as where the broker is down or packets are dropped"
        )
        text = f"{what}; {counted(run.count, 'attempt')}"
        return self.event(
            f"{host} to {broker}",
            "connect failed",
            text,
            time_ns=run.time_ns,
            end_ns=run.end_ns,
            proof=run.proof,
            brokers=[broker],
            cause=cause,
            certain=cause == "refused",
        )
