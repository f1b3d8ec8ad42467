"""The base of all trackers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.api import Kind
from timeline.events.closes import Close
from timeline.events.connect_attempts import Attempt
from timeline.events.event import Event, Evidence, Needs, in_packet_order
from timeline.events.fetch_counts import FetchCounts
from timeline.events.followed_records import FollowedRecord
from timeline.events.observed_exchange import Mark, ObservedExchange
from timeline.events.produce_counts import ProduceCounts

ObservedAt: TypeAlias = Callable[[int], ObservedExchange]
"""Returns the exchange of a row in the window."""

MAX_PROOFS = 64
"""Maximum number of exchanges retained by a state as evidence."""


class Selection(NamedTuple):
    """
    Selects exchanges of an API by the value of a body field, given by its path.

    Attributes:
        api_key: The API.
        side: The message with the field.
        field: Path of the field.
        test: Whether an exchange with a value is selected.
        first_version: Older versions are not selected.
    """

    api_key: int
    side: Kind
    field: str
    test: Callable[[object], bool]
    first_version: int = 0


def is_positive(value: object) -> bool:
    """Return whether a value is a number above 0."""
    return isinstance(value, int) and value > 0


class Tracker:
    """
    A state machine that processes exchanges in the order of their ends.

    Attributes:
        kind: Kind of its events.
        apis: Keys of APIs with all exchanges observed.
        data_apis: Keys of APIs with only unusual exchanges observed: those with an error, or
            without an expected response.
        sees_unanswered: Whether all unanswered requests are observed.
        counts_fetches: Whether counts of Fetch are observed.
        counts_produces: Whether counts of Produce are observed.
        follows_lags: Whether changes of the lag of groups are observed.
        sees_closes: Whether ends of connections are observed.
        errors: Names of errors; all exchanges with one of them are observed.
        selections: Further observed exchanges.
        logged: Columns of request logs with the least time in ns: exchanges with as much are
            observed.
        slow_ns: Exchanges are observed of which the network's or the broker's part of the latency
            took as long, and not by design; 0: none.
        rests_on_absence: Whether events of several exchanges rest on the absence of others too: a
            lost request to the same broker could have been their cause.
        follows_logins: Whether SASL exchanges, and the first one after them, are observed.
    """

    kind: ClassVar[str] = ""
    apis: ClassVar[frozenset[int]] = frozenset()
    data_apis: ClassVar[frozenset[int]] = frozenset()
    sees_unanswered: ClassVar[bool] = False
    counts_fetches: ClassVar[bool] = False
    counts_produces: ClassVar[bool] = False
    follows_lags: ClassVar[bool] = False
    sees_closes: ClassVar[bool] = False
    errors: ClassVar[frozenset[str]] = frozenset()
    selections: ClassVar[tuple[Selection, ...]] = ()
    logged: ClassVar[tuple[tuple[str, int], ...]] = ()
    slow_ns: ClassVar[int] = 0
    rests_on_absence: ClassVar[bool] = False
    follows_logins: ClassVar[bool] = False

    def wanted_topics(self) -> set[str]:
        """Return the topics for which all exchanges of `data_apis` are currently needed."""
        return set()

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange; yield completed events."""
        raise NotImplementedError

    def open_logins(self) -> frozenset[int]:
        """Return the connections with a login in progress, if `follows_logins`."""
        return frozenset()

    def wanted_producers(self) -> set[int]:
        """Return ids of producers with transactional records of interest."""
        return set()

    def observe_fetched(
        self, observed: ObservedExchange, producer_id: int, epoch: int
    ) -> Iterator[Event]:
        """Process a Fetch with transactional records of a wanted producer."""
        yield from ()

    def observe_fetches(self, counts: FetchCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Process the counts of Fetch on a connection in a window, if `counts_fetches`."""
        yield from ()

    def observe_produces(self, counts: ProduceCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Process the counts of Produce on a connection in a window, if `counts_produces`."""
        yield from ()

    def observe_offsets(
        self, table: Exchanges, name: Callable[[str | UUID], str], observed_at: ObservedAt
    ) -> Iterator[Event]:
        """Process the offsets and high watermarks of a window, if `follows_lags`."""
        yield from ()

    def observe_records(
        self, records: Sequence[FollowedRecord], observed_at: ObservedAt
    ) -> Iterator[Event]:
        """Process the chosen records of a window, if any are chosen."""
        yield from ()

    def observe_close(self, close: Close) -> Iterator[Event]:
        """Process the end of a connection, if `sees_closes`; exchanges before it may follow."""
        yield from ()

    def observe_attempt(self, attempt: Attempt) -> Iterator[Event]:
        """Process a failed connection attempt, if `sees_closes`."""
        yield from ()

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Yield the events open at the end of the capture, at `now_ns`."""
        yield from ()

    def open_since_ns(self) -> int | None:
        """Return the earliest begin of an open event; None without one."""
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
        repeats: str | None = None,
        connections: Iterable[int] = (),
    ) -> Event:
        """
        Return an event of this kind; since `since_ns` the capture must be complete.

        Events with the same `repeats`, subject and cause are merged. The event depends on the
        connections of its proof, and on further `connections`.
        """
        proofs = list(proof)
        needed = frozenset((*connections, *(each.connection for each in proofs)))
        absence = frozenset(brokers if self.rests_on_absence else ())
        since_ns = min(time_ns, end_ns) if since_ns is None else since_ns
        return Event(
            min(time_ns, end_ns),
            end_ns,
            self.kind,
            subject,
            event,
            cause,
            text,
            in_packet_order(proofs),
            certain,
            (Needs(needed, absence, since_ns, end_ns),),
            repeats=repeats,
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
        repeats: str | None = None,
    ) -> Event:
        """Return an event proved by a single exchange."""
        evidence, end_ns = observed.evidence, observed.end_ns
        begin_ns = min(observed.time_ns, end_ns)
        needs = Needs(frozenset((evidence.connection,)), frozenset(), begin_ns, end_ns)
        return Event(
            begin_ns,
            end_ns,
            self.kind,
            subject,
            event,
            cause,
            text,
            (evidence,),
            certain,
            (needs,),
            repeats=repeats,
        )


def keep_proof(proofs: list[Evidence], evidence: Evidence) -> None:
    """Append evidence to a list of bounded length; its first half is always retained."""
    if len(proofs) >= MAX_PROOFS:
        del proofs[MAX_PROOFS // 2]
    proofs.append(evidence)
