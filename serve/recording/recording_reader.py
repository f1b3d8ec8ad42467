"""Reader of captures for serving."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import UUID

from construct import Container

from cluster.fields.batch_rewriter import batch_headers, count_records
from cluster.fields.refusal import RewriteError
from dissector.engine.exchanges.captured_exchange import CapturedExchange, captured_exchange
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Options
from dissector.engine.reading.tls_report import unreadable_tls
from dissector.errors import UsageError
from dissector.protocol.broker_requests import is_between_brokers
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message
from dissector.query.capture_sources import Sources, named_inputs
from dissector.query.filtered_capture import Capture
from serve.forms.canonical_body import canonical_body
from serve.matching.exchange_keys import EPOCH_GROUPS, keys_of
from serve.recording.captured_cluster import StateHistory
from serve.recording.captured_log import at_offset, split_batches
from serve.recording.served_recording import ProduceError, Recording, producer_key

_WINDOW_BYTES = 2 << 20
_MAX_NEAREST = 500
"""Limit of candidates for the exchange nearest to a miss, per API."""

_NOT_KEPT = frozenset({"SaslHandshake", "SaslAuthenticate", "Heartbeat", "Produce", "Fetch"})
"""APIs with composed answers; their exchanges are not stored."""

_ALSO_OF_ADMINS = frozenset({"WriteTxnMarkers"})
"""APIs of brokers that admin clients also use. Source: `Admin.abortTransaction` of KIP-664."""


def read_recording(
    *captures: Sources,
    ports: Iterable[int] = (),
    keylogs: Iterable[str | Path] = (),
    decode_as: Iterable[str] = (),
) -> Recording:
    """
    Read captures into a recording.

    Args:
        captures: Parts of one capture in any order; same types as for `open_capture`. Without
            any, the recording is empty.
        ports: Kafka ports; by default Kafka is detected on all ports.
        keylogs: TLS key log files.
        decode_as: Tunnels on other UDP ports; as in `Options`.

    Raises:
        CaptureError: A file is not a capture.
        UsageError: The capture has no exchange to serve.
    """
    if not captures:
        return Recording()
    names, inputs = named_inputs(captures)
    options = Options(
        frozenset(ports),
        window_bytes=_WINDOW_BYTES,
        keylogs=tuple(map(str, keylogs)),
        decode_as=tuple(decode_as),
        inputs=inputs,
    )
    capture = Capture(names, options)
    reader = _Reader()
    reader.learn_names(capture.read_names())
    for window in capture.windows():
        reader.recording.problems += [f"{name}: {problem}" for name, problem in window.problems]
        for exchange in capture.exchanges_of(window):
            reader.add(exchange)
    recording = reader.recording
    if not len(recording):
        assert capture.reading is not None
        reason = unreadable_tls(capture.reading) or "no answered request of a client"
        raise UsageError(f"{', '.join(names)}: nothing to serve: {reason}")
    return recording


class _Reader:
    """Adds exchanges to a recording."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._learners: dict[str, Callable[[CapturedExchange, Container, Container], None]] = {
            "Metadata": self._metadata,
            "FindCoordinator": self._coordinators,
            "Produce": self._produced,
            "Fetch": self._fetched,
            "ListOffsets": self._listed,
            "OffsetFetch": self._committed,
            "SaslHandshake": self._login,
        }

    def learn_names(self, names: dict[UUID, str]) -> None:
        """Add names of topic ids."""
        self.recording.topics.known.learn({at: name for at, name in names.items() if at != NO_ID})

    def add(self, exchange: Exchange) -> None:
        """Add an exchange, unless it is between brokers or undecodable."""
        request, response = exchange.request, exchange.response
        exchange.facts  # noqa: B018 (names of topic ids)
        for facts in exchange.facts:
            self.learn_names(facts.names)
        if request is None or request.body is None:
            return
        if is_between_brokers(request) and request.api not in _ALSO_OF_ADMINS:
            return
        recording = self.recording
        captured = captured_exchange(exchange, request)
        cluster = recording.cluster
        cluster.addresses.setdefault(captured.broker, len(cluster.addresses))
        if request.api == "ApiVersions":
            self._versions(response)
        elif not request.is_assumed and request.schema is not None:
            cluster.learn_use(captured.api_key, captured.api_version)
            if response is not None and response.body is not None:
                self._add_answered(captured, request, response)

    def _add_answered(
        self, captured: CapturedExchange, request: Message, response: Message
    ) -> None:
        recording = self.recording
        try:
            asked = canonical_body(request, recording.topics)
            answered = canonical_body(response, recording.topics)
        except RewriteError as error:
            recording.problems.append(f"{captured.api} of {captured.client}: {error}")
            return
        recording.answered += 1
        if captured.api != "Fetch" or _has_records(answered):
            count, total_s = recording.latencies.get(captured.api, (0, 0.0))
            latency_s = max(0, _answer_time(captured) - captured.request_time_ns) / 1e9
            recording.latencies[captured.api] = count + 1, total_s + latency_s
        recording.groups |= _names(asked, "group_id", "groups")
        recording.transactional_ids |= _names(asked, "transactional_id", "transactions")
        learn = self._learners.get(captured.api)
        if learn is not None:
            learn(captured, asked, answered)
        if captured.api in _NOT_KEPT:
            return
        number = recording.spill.add(captured)
        keys = keys_of(captured.api_key, captured.client_id, asked, answered)
        if captured.api in EPOCH_GROUPS and asked.member_epoch == 0:
            # A member waiting for partitions repeats epoch 0; only its first heartbeat joins.
            keys = keys[:1] if recording.index.numbers(keys[0]) else keys
        recording.index.add(number, keys)
        some = recording.by_api.setdefault(captured.api_key, [])
        if len(some) < _MAX_NEAREST:
            some.append(number)

    def _versions(self, response: Message | None) -> None:
        if response is not None and response.body is not None:
            body = canonical_body(response, self.recording.topics)
            self.recording.cluster.learn_versions(body)
            self.recording.answered += 1

    def _metadata(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        self.recording.cluster.learn_metadata(
            _answer_time(at), at.client_id, answered, is_of_all=asked.topics is None
        )

    def _login(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        self.recording.cluster.login_errors.add(answered.error_code)

    def _coordinators(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        for key, each in zip(asked.coordinator_keys, answered.coordinators, strict=False):
            each.key = each.key or key
        kind = asked.get("key_type", 0)
        self.recording.cluster.learn_coordinator(_answer_time(at), kind, answered)
        if kind == 0:
            self.recording.groups |= {each.key for each in answered.coordinators}
        elif kind == 1:
            self.recording.transactional_ids |= {each.key for each in answered.coordinators}

    def _produced(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        results = {
            (topic.name, each.index): each
            for topic in answered.responses
            for each in topic.partition_responses
        }
        for topic in asked.topic_data:
            for part in topic.partition_data:
                result = results.get((topic.name, part.index))
                if result is None or not part.records:
                    continue
                self._produced_to(at, asked, (topic.name, part.index), part.records, result)

    def _produced_to(
        self,
        at: CapturedExchange,
        asked: Container,
        place: tuple[str, int],
        records: bytes,
        result: Container,
    ) -> None:
        header = next(batch_headers(records), None)
        producer = header.producer if header is not None else None
        producer_id, epoch = (producer.producer_id, producer.epoch) if producer else (-1, -1)
        key = producer_key(asked, producer_id, epoch, at.client_id), place
        if result.error_code:
            error = ProduceError(self.recording.produced_records.get(key, 0), result)
            self.recording.produce_errors.setdefault(key, []).append(error)
            self.recording.refused_topics.add(place[0])
            return
        produced = self.recording.produced_records
        produced[key] = produced.get(key, 0) + count_records(records)
        if result.base_offset < 0:
            return
        log = self.recording.logs.at(*place)
        first = log.first_produced
        log.first_produced = result.base_offset if first < 0 else min(first, result.base_offset)
        base = result.base_offset
        for batch in split_batches(records):
            if producer is None:
                break  # a message set has the producer's offsets, not the log's
            count = batch.last - batch.base + 1
            log.add(
                batch._replace(base=base, last=base + count - 1, data=at_offset(batch.data, base))
            )
            base += count

    def _fetched(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        positions = {
            (topic.topic, each.partition): each.fetch_offset
            for topic in asked.topics
            for each in topic.partitions
        }
        for topic in answered.responses:
            for part in topic.partitions:
                place = topic.topic, part.partition_index
                position = positions.get(place, -1)
                if part.error_code:
                    self.recording.refused_topics.add(topic.topic)
                    errors = self.recording.fetch_errors.setdefault((*place, position), [])
                    errors.append(part)
                    continue
                log = self.recording.logs.at(*place)
                log.learn_read(position, part.high_watermark)
                for each in part.get("aborted_transactions") or ():
                    log.aborted.add((each.producer_id, each.first_offset))
                for batch in split_batches(part.records or b""):
                    log.add(batch)

    def _listed(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        times = {
            (topic.name, each.partition_index): each.timestamp
            for topic in asked.topics
            for each in topic.partitions
        }
        for topic in answered.topics:
            for part in topic.partitions:
                place = topic.name, part.partition_index
                if place in times:
                    history = self.recording.offsets.setdefault(
                        (*place, times[place]), StateHistory()
                    )
                    history.add(_answer_time(at), part)

    def _committed(self, at: CapturedExchange, asked: Container, answered: Container) -> None:
        for group, found in zip(asked.groups, answered.groups, strict=False):
            found.group_id = found.group_id or group.group_id
            for topic in found.topics:
                for part in topic.partitions:
                    place = found.group_id, topic.name, part.partition_index
                    history = self.recording.committed.setdefault(place, StateHistory())
                    history.add(_answer_time(at), part)


def _answer_time(at: CapturedExchange) -> int:
    return at.request_time_ns if at.response_time_ns is None else at.response_time_ns


def _has_records(answered: Container) -> bool:
    return any(part.records for topic in answered.responses for part in topic.partitions)


def _names(body: Container, name: str, array: str) -> set[str]:
    """Return values of a name field in a body and in the elements of an array."""
    elements = [body, *(each for each in body.get(array) or () if isinstance(each, dict))]
    return {each[name] for each in elements if each.get(name)}
