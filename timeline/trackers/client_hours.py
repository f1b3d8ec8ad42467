"""Hourly activity of clients: begin, counts, evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_state import client_of

MAX_CONNECTIONS = 1_000
"""Maximum number of connections of an hour that are checked for losses."""


@dataclass(slots=True)
class Hour:
    """Activity of a client within an hour."""

    time_ns: int = 0
    end_ns: int = 0
    count: int = 0
    brokers: set[str] = field(default_factory=set)
    connections: set[int] = field(default_factory=set)
    proof: dict[str, Evidence] = field(default_factory=dict)


HourT = TypeVar("HourT", bound=Hour)


class ClientHours(ABC, Generic[HourT]):
    """The current hours of all clients, for one tracker."""

    def __init__(self, tracker: Tracker, name: str, kind: type[HourT]) -> None:
        """Create the hours of a tracker, with the name and the state type of their events."""
        self._tracker = tracker
        self._name = name
        self._hours: States[str, HourT] = States(Fresh(kind))
        self._newest = -1

    def finish(self) -> Iterator[Event]:
        """Report the hours open at the end of the capture."""
        yield from self._close(certain=False)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest hour."""
        return min((each.time_ns for each in self._hours.values()), default=None)

    def _enter(
        self,
        hour: int,
        first: ObservedExchange,
        last: ObservedExchange,
        subject: str | None = None,
    ) -> Generator[Event, None, HourT]:
        """Yield the completed hours; return the current one of a subject, by default the client."""
        if hour > self._newest:
            self._newest = hour
            yield from self._close(certain=True)
        state = self._hours.use(client_of(first) if subject is None else subject)
        if not state.count:
            state.time_ns = first.time_ns
        if first.time_ns <= state.time_ns:
            state.time_ns, state.proof["first"] = first.time_ns, first.evidence
        if last.end_ns >= state.end_ns:
            state.end_ns, state.proof["last"] = last.end_ns, last.evidence
        state.brokers.add(first.broker)
        if len(state.connections) < MAX_CONNECTIONS:
            state.connections.add(first.connection)
        return state

    def _close(self, *, certain: bool) -> Iterator[Event]:
        """Yield the events of all hours, and start anew."""
        for client, state in sorted(
            self._hours.items(), key=lambda each: (each[1].time_ns, each[0])
        ):
            yield self._event(client, state, certain=certain)
        self._hours.clear()

    def _event(self, client: str, state: HourT, *, certain: bool) -> Event:
        """Return the event of an hour, from its first exchange to its last one."""
        return self._tracker.event(
            client,
            self._name,
            self._text(state),
            time_ns=state.time_ns,
            end_ns=state.end_ns,
            proof=state.proof.values(),
            brokers=state.brokers,
            certain=certain,
            connections=state.connections,
        )

    @abstractmethod
    def _text(self, state: HourT) -> str:
        """Describe an hour."""
