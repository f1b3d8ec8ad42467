"""The base of all trackers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple, TypeAlias

from dissector.protocol.api import Kind
from timeline.events.closes import Close
from timeline.events.connect_attempts import Attempt
from timeline.events.event import Event, Evidence, Needs, in_packet_order
from timeline.events.fetch_counts import FetchCounts
from timeline.events.observed_exchange import Mark, ObservedExchange
from timeline.events.produce_counts import ProduceCounts

ObservedAt: TypeAlias = Callable[[int], ObservedExchange]
"""Returns the exchange of a row of the window."""

MAX_PROOFS = 64
"""Exchanges that a state retains for its event."""


class Selection(NamedTuple):
    """Exchanges of an API with a value in a field of a body, by its path."""

    api_key: int
    side: Kind
    field: str
    test: Callable[[object], bool]


def is_positive(value: object) -> bool:
    """Return whether a value is a number above 0."""
    return isinstance(value, int) and value > 0


class Tracker:
    """
    A state machine, fed by exchanges in the order of their ends.

    Attributes:
        kind: The kind of its events.
        apis: The keys of APIs whose exchanges it sees all.
        data_apis: The keys of APIs whose exchanges it sees only if unusual: with an error, or
            without the response that is due.
        sees_unanswered: Whether it sees all requests without the response that is due.
        counts_fetches: Whether it sees how much clients fetch.
        counts_produces: Whether it sees how much clients produce.
        sees_closes: Whether it sees how connections end.
        selections: Further exchanges that it sees.
    """

    kind: ClassVar[str] = ""
    apis: ClassVar[frozenset[int]] = frozenset()
    data_apis: ClassVar[frozenset[int]] = frozenset()
    sees_unanswered: ClassVar[bool] = False
    counts_fetches: ClassVar[bool] = False
    counts_produces: ClassVar[bool] = False
    sees_closes: ClassVar[bool] = False
    selections: ClassVar[tuple[Selection, ...]] = ()

    def wanted_topics(self) -> set[str]:
        """Return the topics for which it currently needs all exchanges of its `data_apis`."""
        return set()

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Take an exchange; yield the events that it completes."""
        raise NotImplementedError

    def wanted_producers(self) -> set[int]:
        """Return the ids of producers whose transactional records it looks for in fetches."""
        return set()

    def observe_fetched(
        self, observed: ObservedExchange, producer_id: int, epoch: int
    ) -> Iterator[Event]:
        """Take a Fetch with transactional records of a wanted producer."""
        yield from ()

    def observe_fetches(self, counts: FetchCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Take the fetches of a connection in a window, if it `counts_fetches`."""
        yield from ()

    def observe_produces(self, counts: ProduceCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Take the Produce requests of a connection in a window, if it `counts_produces`."""
        yield from ()

    def observe_close(self, close: Close) -> Iterator[Event]:
        """Take the end of a connection, after its exchanges, if it `sees_closes`."""
        yield from ()

    def observe_attempt(self, attempt: Attempt) -> Iterator[Event]:
        """Take a connection to a broker that was not accepted, if it `sees_closes`."""
        yield from ()

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Yield the events that are open at the end of the capture, `now_ns`."""
        yield from ()

    def open_since_ns(self) -> int | None:
        """Return the earliest time of an event that may still come; None: no such event."""
        return None

    def event(
        self,
        subject: str,
        event: str,
        text: str,
        *,
        time_ns: int,
        end_ns: int,
        proof: Iterable[Evidence],
        brokers: Iterable[str],
        cause: str = "",
        certain: bool = True,
        since_ns: int | None = None,
    ) -> Event:
        """Return an event of this kind; `since_ns`: from when on the capture must be complete."""
        return Event(
            min(time_ns, end_ns),
            end_ns,
            self.kind,
            subject,
            event,
            cause,
            text,
            in_packet_order(proof),
            certain,
            Needs(frozenset(brokers), time_ns if since_ns is None else since_ns),
        )

    def instant(
        self,
        observed: ObservedExchange | Mark,
        subject: str,
        event: str,
        text: str,
        *,
        cause: str = "",
        certain: bool = True,
    ) -> Event:
        """Return the event that a single exchange proves."""
        return self.event(
            subject,
            event,
            text,
            time_ns=observed.time_ns,
            end_ns=observed.end_ns,
            proof=[observed.evidence],
            brokers=[observed.broker],
            cause=cause,
            certain=certain,
        )


def keep_proof(proofs: list[Evidence], evidence: Evidence) -> None:
    """Append evidence to a list of bounded length, which retains its first half."""
    if len(proofs) >= MAX_PROOFS:
        del proofs[MAX_PROOFS // 2]
    proofs.append(evidence)
