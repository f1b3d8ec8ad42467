"""
Consumers: fetch sessions, unavailable partitions, offsets out of range, quotas.

Source: KIP-227 (fetch sessions), KIP-320 (leader epochs), KIP-219 (throttling).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from dissector.protocol.error_codes import error_name
from timeline.events.event import Event
from timeline.events.fetch_counts import FetchCounts
from timeline.events.observed_exchange import Mark, ObservedExchange, is_follower
from timeline.events.plain_data import PlainExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration
from timeline.trackers.fetch_hours import FetchHours
from timeline.trackers.outages import NO_RESPONSE, Outages, Place
from timeline.trackers.throttling import Throttling
from timeline.trackers.tracker import ObservedAt, Selection, Tracker, is_positive
from timeline.trackers.transaction_state import client_of

FETCH, METADATA = 1, 3

OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
SESSION_ERRORS = {
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "FETCH_SESSION_TOPIC_ID_ERROR",
}


RECENT_NS = 60 * 10**9
"""A topic created anew within this time explains an offset that is out of range."""


class OutOfRange(NamedTuple):
    """A Fetch refused with OFFSET_OUT_OF_RANGE."""

    mark: Mark
    offset: int


class Consumers(Tracker):
    """Follows consumers, without followers."""

    kind: ClassVar[str] = "consumer"
    apis: ClassVar[frozenset[int]] = frozenset((METADATA,))
    data_apis: ClassVar[frozenset[int]] = frozenset((FETCH,))
    selections: ClassVar[tuple[Selection, ...]] = (
        Selection(FETCH, "response", "throttle_time_ms", is_positive),
        Selection(FETCH, "request", "session_epoch", lambda epoch: epoch == 0),
    )

    counts_fetches: ClassVar[bool] = True

    def __init__(self) -> None:
        self._hours = FetchHours(self)
        self._outages = Outages(self)
        self._throttling = Throttling(self)
        self._out_of_range: States[Place, list[OutOfRange]] = States(Fresh(list))

    def wanted_topics(self) -> set[str]:
        """Return topics with unavailable partitions."""
        return self._outages.topics() | {place.topic for place in self._out_of_range}

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange of a consumer."""
        yield from self._outages.expire(observed.time_ns)
        if observed.api_key == METADATA:
            self._outages.refresh(observed)
        elif (plain := self._plain(observed)) is not None:
            yield from self._plain_fetch(observed, plain)
        elif observed.request is not None and not is_follower(observed.request):
            yield from self._throttling.observe(observed)
            yield from self._fetch(observed)

    def observe_fetches(self, counts: FetchCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Process the counts of Fetch on a connection in a window."""
        request = observed_at(counts.first_row).request
        if request is not None and not is_follower(request):
            yield from self._hours.add(counts, observed_at)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the state at the end of the capture."""
        yield from self._hours.finish()
        yield from self._outages.finish()
        yield from self._throttling.finish()
        for place, refused in self._out_of_range.items():
            yield self._not_reset(place, refused[0])

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest open event."""
        parts = (self._hours, self._outages, self._throttling)
        begins = [each.open_since_ns() for each in parts]
        begins += [refused[0].mark.time_ns for refused in self._out_of_range.values()]
        return min((each for each in begins if each is not None), default=None)

    def _plain(self, observed: ObservedExchange) -> PlainExchange | None:
        """Return what a plain Fetch says; None if it may end something, or is not plain."""
        client = client_of(observed)
        is_refused = any(place.client == client for place in self._out_of_range)
        if is_refused or self._outages.may_concern(client):
            return None
        return observed.plain

    def _plain_fetch(self, observed: ObservedExchange, plain: PlainExchange) -> Iterator[Event]:
        """Process a Fetch of which columns say all."""
        if (plain.throttle_ms > 0 or plain.new_session) and not is_follower(observed.request):
            yield from self._throttling.wait(observed, plain.throttle_ms)
            if plain.new_session:
                count = len(_offsets(observed))
                yield self._session(observed, plain.new_session, count)

    def _session(self, observed: ObservedExchange, session: int, count: int) -> Event:
        """Report a new session with some partitions."""
        text = f"session {session} at {observed.broker} with {counted(count, 'partition')}"
        return self.instant(
            observed, client_of(observed), "fetch session", text, repeats=observed.broker
        )

    def _fetch(self, observed: ObservedExchange) -> Iterator[Event]:
        response, client = observed.response, client_of(observed)
        offsets = _offsets(observed)
        if response is None:
            if observed.ended:
                for topic, partition in offsets:
                    self._outages.fail(observed, topic, partition, NO_RESPONSE)
            return
        if observed.error in SESSION_ERRORS:
            text = f"session {observed.request.session_id} at {observed.broker}: {observed.error}"
            yield self.instant(
                observed,
                client,
                "fetch session lost",
                text,
                cause=observed.error,
                repeats=observed.broker,
            )
        elif observed.error:
            text = f"Fetch at {observed.broker}: {observed.error}"
            yield self.instant(
                observed,
                client,
                "refused",
                text,
                cause=observed.error,
                repeats=observed.broker,
            )
        elif observed.request.get("session_epoch") == 0 and response.get("session_id"):
            yield self._session(observed, response.session_id, len(offsets))
        for topic in response.responses or ():
            name = observed.topic(topic, "topic")
            for partition in topic.partitions or ():
                offset = offsets.get((name, partition.partition_index))
                yield from self._partition(observed, name, partition, offset)

    def _partition(
        self, observed: ObservedExchange, topic: str, partition: Any, offset: int | None
    ) -> Iterator[Event]:
        """Process the result of a partition."""
        error = error_name(partition.error_code) if partition.error_code else ""
        place = Place(client_of(observed), topic, partition.partition_index)
        if error == OUT_OF_RANGE:
            self._out_of_range.use(place).append(
                OutOfRange(observed.mark, -1 if offset is None else offset)
            )
            del self._out_of_range[place][1:]
        elif error:
            self._outages.fail(observed, topic, partition.partition_index, error)
        else:
            yield from self._outages.succeed(observed, topic, partition.partition_index)
            refused = self._out_of_range.get(place)
            if refused and offset is not None and offset != refused[0].offset:
                del self._out_of_range[place]
                yield self._reset(place, refused[0], observed, offset)

    def _reset(
        self, place: Place, refused: OutOfRange, observed: ObservedExchange, offset: int
    ) -> Event:
        first = refused.mark
        text = (
            f"{place.topic} {place.partition}: offset {refused.offset} is out of range; "
            f"went on at {offset} after {duration(observed.end_ns - first.time_ns)}"
        )
        begin_ns = first.time_ns - RECENT_NS
        if self._outages.is_anew(place.topic, begin_ns, observed.end_ns):
            text += "; the topic was created anew"
        if offset > refused.offset >= 0:
            text += f", {offset - refused.offset} offsets were skipped"
        return self.event(
            place.client,
            "offset reset",
            text,
            time_ns=first.time_ns,
            end_ns=observed.end_ns,
            proof=[first.evidence, observed.evidence],
            brokers=[first.broker, observed.broker],
            cause=OUT_OF_RANGE,
        )

    def _not_reset(self, place: Place, refused: OutOfRange) -> Event:
        text = (
            f"{place.topic} {place.partition}: offset {refused.offset} is out of range, "
            "no other offset was fetched afterwards"
        )
        return self.instant(
            refused.mark, place.client, "offset out of range", text, cause=OUT_OF_RANGE
        )


def _offsets(observed: ObservedExchange) -> dict[tuple[str, int], int]:
    """Return the offsets in a Fetch request; in a session only changed ones."""
    return {
        (observed.topic(topic, "topic"), each["partition"]): each["fetch_offset"]
        for topic in observed.request.topics or ()
        for each in topic["partitions"] or ()
    }
