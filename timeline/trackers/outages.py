"""
Outages of partitions for a client: from the first error to the next success.

A broker that is no longer the leader refuses requests; the client refreshes its metadata, and turns
to the new leader. The outage covers the time between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from timeline.events.denials import DENIALS
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration
from timeline.trackers.topic_recreations import TopicIds
from timeline.trackers.tracker import Tracker, keep_proof
from timeline.trackers.transaction_state import client_of

LEADER_ERRORS = {
    "NOT_LEADER_OR_FOLLOWER",
    "LEADER_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "REPLICA_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNKNOWN_TOPIC_ID",
}
"""Errors after which a client looks for the leader."""

PATIENCE_NS = 60 * 10**9
PATIENCE_EXCHANGES = 20_000
"""Limits of an outage without success: time, and number of exchanges."""

MANY = 32
"""So many outages are not searched for each exchange."""

NO_RESPONSE = "no response"


class Place(NamedTuple):
    """A partition used by a client."""

    client: str
    topic: str
    partition: int


@dataclass(slots=True)
class Outage:
    """
    An outage of a partition.

    Attributes:
        place: Partition and client.
        error: The first error.
        time_ns: Time of the first refused request.
        last_ns: Time of the last refusal.
        broker: Broker of the last refusal.
        count: Number of failed requests.
        exchanges: Number of exchanges since.
        refreshes: Metadata requests of the client.
        proof: Evidence.
        brokers: All brokers that refused requests.
        is_anew: Whether the topic was created anew meanwhile.
    """

    place: Place
    error: str
    time_ns: int
    last_ns: int
    broker: str
    count: int = 0
    exchanges: int = 0
    refreshes: int = 0
    proof: list[Evidence] = field(default_factory=list)
    brokers: set[str] = field(default_factory=set)
    is_anew: bool = False


class Outages:
    """Outages of all clients, for one tracker."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._open: States[Place, Outage] = States(_new_outage)
        self._ids = TopicIds()
        self._anew: States[str, int] = States(Fresh(int))

    def topics(self) -> set[str]:
        """Return the topics with an outage."""
        return {place.topic for place in self._open}

    def may_concern(self, client: str) -> bool:
        """Return whether an exchange without errors of a client may end an outage."""
        return len(self._open) > MANY or any(place.client == client for place in self._open)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest outage."""
        return min((each.time_ns for each in self._open.values()), default=None)

    def fail(self, observed: ObservedExchange, topic: str, partition: int, error: str) -> None:
        """Add a failure of a partition; denials are events of their own."""
        if error in DENIALS:
            return
        outage = self._open.use(Place(client_of(observed), topic, partition))
        if not outage.error:
            outage.error, outage.time_ns, outage.broker = error, observed.time_ns, observed.broker
        outage.last_ns = observed.end_ns
        outage.count += 1
        outage.brokers.add(observed.broker)
        keep_proof(outage.proof, observed.evidence)

    def refresh(self, observed: ObservedExchange) -> None:
        """Process a Metadata exchange, of any client."""
        client = client_of(observed)
        anew = {each.topic for each in self._ids.learn(observed)}
        for topic in anew:
            self._anew.put(topic, observed.end_ns)
        for place, outage in self._open.items():
            outage.is_anew |= place.topic in anew
            if place.client == client:
                outage.refreshes += 1
                if outage.refreshes == 1:
                    keep_proof(outage.proof, observed.evidence)

    def is_anew(self, topic: str, begin_ns: int, end_ns: int) -> bool:
        """Return whether a topic was created anew in a time, as Metadata shows."""
        return begin_ns <= self._anew.get(topic, -1) <= end_ns

    def succeed(self, observed: ObservedExchange, topic: str, partition: int) -> Iterator[Event]:
        """End the outage of a partition after a success."""
        if not self._open:
            return
        outage = self._open.pop(Place(client_of(observed), topic, partition), None)
        if outage is None or observed.end_ns < outage.time_ns:
            return
        keep_proof(outage.proof, observed.evidence)
        outage.brokers.add(observed.broker)
        moved = observed.broker != outage.broker and outage.error in LEADER_ERRORS | {NO_RESPONSE}
        refreshes = counted(outage.refreshes, "metadata refresh", "metadata refreshes")
        refreshed = f", {refreshes}" if outage.refreshes else ""
        where = f"went on at {observed.broker}" if moved else "succeeded"
        where += ", in the topic created anew," if outage.is_anew else ""
        text = (
            f"{topic} {partition}: {outage.error} from {outage.broker}, "
            f"{counted(outage.count, 'request')} failed{refreshed}; {where} after "
            f"{duration(observed.end_ns - outage.time_ns)}"
        )
        event = "leader changed" if moved else "retried"
        event = "topic created anew" if outage.is_anew else event
        yield self._event(outage, event, text, observed.end_ns, certain=True)

    def expire(self, now_ns: int) -> Iterator[Event]:
        """Report outages over the limits; each call counts an exchange."""
        while self._open:
            place, outage = next(iter(self._open.items()))
            outage.exchanges += 1
            if outage.exchanges < PATIENCE_EXCHANGES and now_ns - outage.last_ns < PATIENCE_NS:
                return
            del self._open[place]
            yield self._unended(outage)

    def finish(self) -> Iterator[Event]:
        """Report the outages open at the end of the capture."""
        for outage in self._open.values():
            yield self._unended(outage)
        self._open.clear()

    def _unended(self, outage: Outage) -> Event:
        place = outage.place
        text = (
            f"{place.topic} {place.partition}: {outage.error} from {outage.broker}, "
            f"{counted(outage.count, 'request')} failed, none succeeded afterwards"
        )
        return self._event(outage, "failed", text, outage.last_ns, certain=False)

    def _event(self, outage: Outage, event: str, text: str, end_ns: int, *, certain: bool) -> Event:
        return self._tracker.event(
            outage.place.client,
            event,
            text,
            time_ns=outage.time_ns,
            end_ns=end_ns,
            proof=outage.proof,
            brokers=outage.brokers,
            cause=outage.error,
            certain=certain,
        )


def _new_outage(place: Place) -> Outage:
    return Outage(place, "", 0, 0, "")
