"""
Producers: ids and epochs, refused and repeated batches, leader changes, fencing, quotas.

Source: KIP-98 and KIP-360 (idempotent producers), KIP-219 (throttling).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, ClassVar, NamedTuple

from dissector.protocol.error_codes import error_name
from timeline.events.closes import Close
from timeline.events.event import Event
from timeline.events.observed_exchange import Mark, ObservedExchange
from timeline.events.plain_data import PlainExchange
from timeline.events.produce_counts import ProduceCounts
from timeline.events.states import Fresh, States
from timeline.events.words import duration
from timeline.trackers.outages import NO_RESPONSE, Outages
from timeline.trackers.produce_hours import ProduceHours
from timeline.trackers.throttling import Throttling
from timeline.trackers.tracker import ObservedAt, Selection, Tracker, is_positive
from timeline.trackers.transaction_state import client_of

PRODUCE, METADATA, INIT = 0, 3, 22

TOO_LARGE = {"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}
FENCED = {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}
SEQUENCE_EVENTS = {
    "DUPLICATE_SEQUENCE_NUMBER": "duplicate",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "sequence gap",
    "UNKNOWN_PRODUCER_ID": "producer id unknown",
}

_HEAD = Struct(">8x4x4xb4x2x4x8x8xqhi")
"""Start of a batch: magic, producer id, epoch and base sequence."""


HANG_UP_NS = 10**9
"""Limit between a Produce with acks=0 and the close by which a broker reports an error."""


class Batch(NamedTuple):
    """The first batch of a partition, to identify a repeated request."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    sequence: int


class Producers(Tracker):
    """Follows clients that produce."""

    kind: ClassVar[str] = "producer"
    apis: ClassVar[frozenset[int]] = frozenset((METADATA, INIT))
    data_apis: ClassVar[frozenset[int]] = frozenset((PRODUCE,))
    sees_closes: ClassVar[bool] = True
    counts_produces: ClassVar[bool] = True
    selections: ClassVar[tuple[Selection, ...]] = (
        Selection(PRODUCE, "response", "throttle_time_ms", is_positive),
    )

    def __init__(self) -> None:
        self._hours = ProduceHours(self)
        self._outages = Outages(self)
        self._throttling = Throttling(self)
        self._lost: States[Batch, list[Mark]] = States(Fresh(list))
        self._epochs: States[int, list[tuple[int, str, Any]]] = States(Fresh(list))

    def wanted_topics(self) -> set[str]:
        """Return topics with unavailable partitions."""
        return self._outages.topics()

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange of a producer."""
        yield from self._outages.expire(observed.time_ns)
        match observed.api_key:
            case 3:
                self._outages.refresh(observed)
            case 22:
                yield from self._init(observed)
            case _ if (plain := self._plain(observed)) is not None:
                yield from self._throttling.wait(observed, plain.throttle_ms)
            case _:
                yield from self._throttling.observe(observed)
                yield from self._produce(observed)

    def observe_produces(self, counts: ProduceCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Process the counts of Produce on a connection in a window."""
        yield from self._hours.add(counts, observed_at)

    def observe_close(self, close: Close) -> Iterator[Event]:
        """
        Report a broker that closed the connection after a Produce with acks=0.

        Such requests have no response, so the close reports an error.
        Source: Kafka, KafkaApis.handleProduceRequest.
        """
        last = close.last
        if close.closer != "broker" or last.status != "no_response" or close.idle_ns > HANG_UP_NS:
            return
        text = (
            f"{close.broker} closed connection {close.connection} {duration(close.idle_ns)} after "
            "a Produce with acks=0, which reports an error; records may be lost"
        )
        yield self.event(
            close.client,
            "hung up",
            text,
            time_ns=last.time_ns,
            end_ns=close.time_ns,
            proof=[last.evidence],
            brokers=[close.broker],
            cause="acks=0",
            certain=False,
            repeats=close.broker,
        )

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the state at the end of the capture."""
        yield from self._hours.finish()
        yield from self._outages.finish()
        yield from self._throttling.finish()

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest hour, outage, or run of throttled requests."""
        parts = (self._hours, self._outages, self._throttling)
        begins = [each.open_since_ns() for each in parts]
        return min((each for each in begins if each is not None), default=None)

    def _plain(self, observed: ObservedExchange) -> PlainExchange | None:
        """Return what a plain Produce says; None if it may end something, or is not plain."""
        if self._lost or self._outages.may_concern(client_of(observed)):
            return None
        return observed.plain

    def _init(self, observed: ObservedExchange) -> Iterator[Event]:
        request, response = observed.request, observed.response
        if request is None or response is None or observed.error:
            return
        owners = self._epochs.use(response.producer_id)
        owners.append((response.producer_epoch, client_of(observed), observed.evidence))
        del owners[:-8]
        if not request.get("transactional_id"):
            text = f"producer id {response.producer_id}, epoch {response.producer_epoch}"
            yield self.instant(observed, client_of(observed), "initialized", text)

    def _produce(self, observed: ObservedExchange) -> Iterator[Event]:
        request = observed.request
        if request is None:
            return
        if observed.ended:
            for lost in _batches(observed):
                if lost.producer_id >= 0:
                    self._lost.use(lost).append(observed.mark)
                self._outages.fail(observed, lost.topic, lost.partition, NO_RESPONSE)
            return
        if observed.response is None:
            return
        if observed.response.get("responses") is None:
            return
        batches = {(each.topic, each.partition): each for each in _batches(observed)}
        for topic in observed.response.responses or ():
            name = observed.topic(topic)
            for partition in topic.partition_responses or ():
                batch = batches.get((name, partition.index))
                code = partition.error_code
                if not code:
                    yield from self._repeated(observed, batch)
                    yield from self._outages.succeed(observed, name, partition.index)
                    continue
                yield from self._failed(observed, name, partition, error_name(code), batch)

    def _failed(
        self,
        observed: ObservedExchange,
        topic: str,
        partition: Any,
        error: str,
        batch: Batch | None,
    ) -> Iterator[Event]:
        """Process the error of a partition."""
        place = f"{topic} {partition.index}"
        message = partition.get("error_message")
        words = f" ({message})" if message else ""
        client = client_of(observed)
        if error in TOO_LARGE:
            size = observed.exchange.request_bytes or 0
            text = f"{place}: {error}{words}; the request has {size:,} bytes"
            yield self.instant(
                observed, client, "batch too large", text, cause=error, repeats=place
            )
        elif error in FENCED:
            yield self._fenced(observed, place, error, batch)
        elif error in SEQUENCE_EVENTS:
            sequence = f" at sequence {batch.sequence}" if batch else ""
            text = f"{place}: {error}{sequence}{words}"
            yield self.instant(
                observed, client, SEQUENCE_EVENTS[error], text, cause=error, repeats=place
            )
        else:
            self._outages.fail(observed, topic, partition.index, error)

    def _fenced(
        self, observed: ObservedExchange, place: str, error: str, batch: Batch | None
    ) -> Event:
        """Report a fenced producer, and the producer with the next epoch."""
        client, proof = client_of(observed), [observed.evidence]
        text, cause = f"{place}: {error}", error
        owners = [] if batch is None else self._epochs.get(batch.producer_id, [])
        newer = [each for each in owners if batch is not None and each[0] > batch.epoch]
        if batch is not None:
            text += f" for producer id {batch.producer_id}, epoch {batch.epoch}"
        if newer:
            epoch, culprit, evidence = newer[0]
            text += f": {culprit} got epoch {epoch}"
            cause = "new producer"
            proof.append(evidence)
        return self.event(
            client,
            "fenced",
            text,
            time_ns=observed.time_ns,
            end_ns=observed.end_ns,
            proof=proof,
            brokers=[observed.broker],
            cause=cause,
            certain=bool(newer),
        )

    def _repeated(self, observed: ObservedExchange, batch: Batch | None) -> Iterator[Event]:
        """Report a batch sent again after its response was lost."""
        lost = None if batch is None else self._lost.pop(batch, None)
        if not lost or batch is None:
            return
        first = lost[0]
        if first.time_ns > observed.time_ns:
            return
        text = (
            f"{batch.topic} {batch.partition}: batch at sequence {batch.sequence} of producer id "
            f"{batch.producer_id} sent again {duration(observed.time_ns - first.time_ns)} after it "
            "got no answer; the broker appends it once"
        )
        yield self.event(
            client_of(observed),
            "batch repeated",
            text,
            time_ns=first.time_ns,
            end_ns=observed.end_ns,
            proof=[*(each.evidence for each in lost), observed.evidence],
            brokers=[first.broker, observed.broker],
            cause=NO_RESPONSE,
            repeats=f"{batch.topic} {batch.partition}",
        )


def _batches(observed: ObservedExchange) -> Iterator[Batch]:
    """Yield the first batch of each partition, for idempotent producers."""
    for topic in observed.request.topic_data or ():
        name = observed.topic(topic)
        for partition in topic.partition_data or ():
            data = bytes(partition.records or b"")[: _HEAD.size]
            magic, producer_id, epoch, sequence = 0, -1, -1, -1
            if len(data) == _HEAD.size:
                magic, producer_id, epoch, sequence = _HEAD.unpack(data)
            if magic < 2:
                producer_id, epoch, sequence = -1, -1, -1
            yield Batch(name, partition.index, producer_id, epoch, sequence)
