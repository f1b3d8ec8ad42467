"""
Logs of partitions, as far as a capture shows them: appends, log start and high watermark.

Topics that are known by name alone may be deleted and recreated; once a capture shows that topics
are created or deleted, all state of logs is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID
from weakref import ref

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.fetch_history import partitions_of
from conform.evidence.observation import Observation
from conform.evidence.producer_appends import PartitionKey
from dissector.protocol.records import RecordBatch

_MAX_LOGS = 10_000
_MAX_RANGES = 50
"""Limit of the appends kept for one partition."""

_LATEST, _EARLIEST = -1, -2
_ALL = -1


class AppendedRange(NamedTuple):
    """
    One append.

    Attributes:
        first: Its first offset.
        end: The offset behind its last.
        connection: Number of the connection on which it was produced.
        response_ns: Time of the response.
        producer: Producer id, epoch and sequence, which identify a batch.
    """

    first: int
    end: int
    connection: int
    response_ns: int
    producer: tuple[int, int, int]


class OffsetBound(NamedTuple):
    """A lower bound of a log's end or start, with the time and connection of the response."""

    offset: int
    response_ns: int
    connection: int


@dataclass(slots=True)
class LogExtent:
    """
    The log of one partition at one broker.

    Attributes:
        ranges: The newest appends.
        end: The highest high watermark in a response, or proved by an append with acks = -1.
        start: The highest log start.
        topic_id: Id of the topic, where a message carries it.
    """

    ranges: deque[AppendedRange] = field(default_factory=lambda: deque(maxlen=_MAX_RANGES))
    end: OffsetBound | None = None
    start: OffsetBound | None = None
    topic_id: UUID | None = None


class LogClaim(NamedTuple):
    """A statement of an exchange about a log: its end or start at the broker, or an append."""

    partition_key: PartitionKey
    topic_id: UUID | None
    path: str
    end: int | None = None
    start: int | None = None
    append: AppendedRange | None = None


class LogExtents(BoundedDict[PartitionKey, LogExtent]):
    """The logs that a capture shows; an exchange takes effect after all rules have examined it."""

    def __init__(self) -> None:
        super().__init__(_MAX_LOGS)
        self._current: Callable[[], Observation | None] = lambda: None
        self._claims: list[LogClaim] = []
        self._response_time_and_connection: tuple[int, int] = (0, 0)

    def claims_of(self, observation: Observation) -> list[LogClaim]:
        """Apply the statements of the previous exchange; return those of this one."""
        if self._current() is not observation:
            for claim in self._claims:
                self._apply(claim)
            self._current, self._claims = ref(observation), _claims(observation)
            self._response_time_and_connection = (
                observation.exchange.response_time_ns or 0,
                observation.connection.number,
            )
            if observation.exchange.api in ("CreateTopics", "DeleteTopics"):
                self.clear()
        return self._claims

    def extent_of(self, partition_key: PartitionKey, topic_id: UUID | None) -> LogExtent | None:
        """Return the log at a place; None where it is unknown or the topic was recreated since."""
        log = self.get(partition_key)
        if log is not None and topic_id and log.topic_id and topic_id != log.topic_id:
            return None
        return log

    def _apply(self, claim: LogClaim) -> None:
        log = self.extent_of(claim.partition_key, claim.topic_id)
        if log is None:
            log = self[claim.partition_key] = LogExtent()
        log.topic_id = claim.topic_id or log.topic_id
        told_ns, talk = self._response_time_and_connection
        if claim.append is not None:
            log.ranges.append(claim.append)
        if claim.end is not None and (log.end is None or claim.end >= log.end.offset):
            log.end = OffsetBound(claim.end, told_ns, talk)
        if claim.start is not None and (log.start is None or claim.start >= log.start.offset):
            log.start = OffsetBound(claim.start, told_ns, talk)


def _claims(observation: Observation) -> list[LogClaim]:
    """Return the statements of an exchange about logs."""
    asked, told = observation.request_body, observation.response_body
    if asked is None or told is None or observation.exchange.response_time_ns is None:
        return []
    if observation.exchange.api == "Produce":
        return _produce_claims(observation, asked, told)
    if observation.exchange.api == "Fetch":
        return _fetch_claims(observation, told)
    if observation.exchange.api == "ListOffsets" and observation.version:
        return _list_offsets_claims(observation, asked, told)
    if observation.exchange.api == "DeleteRecords":
        broker = observation.connection.broker.address
        return [
            LogClaim(
                (broker, topic.name, each.partition_index),
                None,
                f"topics[{at}].partitions[{number}].low_watermark",
                start=each.low_watermark,
            )
            for at, topic in enumerate(told.topics or ())
            for number, each in enumerate(topic.partitions or ())
            if not each.error_code and each.low_watermark >= 0
        ]
    return []


def _produce_claims(observation: Observation, request: Any, response: Any) -> list[LogClaim]:
    answers = {
        (topic.get("name", topic.get("topic_id")), each.index): (
            each,
            f"responses[{at}].partition_responses[{number}].base_offset",
        )
        for at, topic in enumerate(response.responses or ())
        for number, each in enumerate(topic.partition_responses or ())
    }
    found = []
    for _, carried in observation.record_fields:
        topic = carried.topic_id if carried.topic is None else carried.topic
        answer, path = answers.get((topic, carried.partition), (None, ""))
        batch = carried.batches[0] if len(carried.batches) == 1 else None
        if answer is None or answer.error_code or answer.base_offset < 0 or topic is None:
            continue
        if isinstance(batch, RecordBatch) and batch.last_offset_delta >= 0:
            end = answer.base_offset + batch.last_offset_delta + 1
            producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
            told_ns = observation.exchange.response_time_ns or 0
            made = AppendedRange(
                answer.base_offset, end, observation.connection.number, told_ns, producer
            )
            name = observation.topic_name(carried.topic, carried.topic_id)
            place = observation.connection.broker.address, name, carried.partition
            start = answer.get("log_start_offset", -1)
            found.append(
                LogClaim(
                    place,
                    carried.topic_id,
                    path,
                    end if request.acks == _ALL else None,
                    start if start >= 0 else None,
                    made,
                )
            )
    return found


def _fetch_claims(observation: Observation, response: Any) -> list[LogClaim]:
    found = []
    for at, topic in enumerate(response.responses or ()):
        topic_id = topic.get("topic_id")
        name = observation.topic_name(topic.get("topic"), topic_id)
        for number, ((_, partition), each) in enumerate(partitions_of([topic])):
            if each.error_code or each.high_watermark < 0:
                continue
            start = each.get("log_start_offset", -1)
            place = observation.connection.broker.address, name, partition
            path = f"responses[{at}].partitions[{number}]"
            first = start if start >= 0 else None
            found.append(LogClaim(place, topic_id, path, each.high_watermark, first))
    return found


def _list_offsets_claims(observation: Observation, request: Any, response: Any) -> list[LogClaim]:
    times = {
        (topic.name, each.partition_index): each.timestamp
        for topic in request.topics or ()
        for each in topic.partitions or ()
    }
    found = []
    for at, topic in enumerate(response.topics or ()):
        for number, each in enumerate(topic.partitions or ()):
            time = times.get((topic.name, each.partition_index))
            if each.error_code or each.offset < 0:
                continue
            place = observation.connection.broker.address, topic.name, each.partition_index
            path = f"topics[{at}].partitions[{number}].offset"
            if time == _LATEST and not request.get("isolation_level"):
                found.append(LogClaim(place, None, path, end=each.offset))
            elif time == _EARLIEST:
                found.append(LogClaim(place, None, path, start=each.offset))
    return found
