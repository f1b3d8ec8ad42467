"""
Captured state of partition logs: appends, log start and high watermark.

Topics identified by name alone may be deleted and recreated: once topics are created or deleted in
the capture, the state of all logs is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID
from weakref import ref

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.producer_appends import PartitionKey, produce_results
from conform.registry.partition_results import PartitionResult, PlainBatch
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.protocol.records import RecordBatch

_MAX_LOGS = 10_000
_MAX_RANGES = 50
"""Limit of the retained appends of one partition."""

_LIST_OFFSETS, _DELETE_RECORDS = 2, 21
TOPIC_CHANGES = 19, 20
"""The keys of CreateTopics and DeleteTopics."""

_LATEST, _EARLIEST = -1, -2
_ALL = -1
_NO_ACKS = 0


class AppendedRange(NamedTuple):
    """
    One append.

    Attributes:
        first: Its first offset.
        end: The offset after its last.
        connection: Number of the connection on which it was produced.
        response_ns: Time of the response.
        producer: Producer id, epoch and base sequence, which identify a batch.
    """

    first: int
    end: int
    connection: int
    response_ns: int
    producer: tuple[int, int, int]


class OffsetBound(NamedTuple):
    """A lower bound of a log's end or start, with the time and connection of its response."""

    offset: int
    response_ns: int
    connection: int


@dataclass(slots=True)
class LogExtent:
    """
    The log of one partition at one broker.

    Attributes:
        ranges: The newest appends.
        ranges_end: None of them ends above this offset.
        end: The highest high watermark in a response, or the end of an append with acks = -1.
        start: The highest log start offset in a response.
        topic_id: Id of the topic; None if no message contained it.
    """

    ranges: deque[AppendedRange] = field(default_factory=lambda: deque(maxlen=_MAX_RANGES))
    ranges_end: int = 0
    end: OffsetBound | None = None
    start: OffsetBound | None = None
    topic_id: UUID | None = None


class LogClaim(NamedTuple):
    """
    Evidence of a response about a log: its end or start at the broker, or an append.

    Attributes:
        path: Path of the partition in the response, or of an offset there.
        offset_name: The field of the partition with the offset; empty if the path names it.
    """

    partition_key: PartitionKey
    topic_id: UUID | None
    path: str
    end: int | None = None
    start: int | None = None
    append: AppendedRange | None = None
    offset_name: str = ""


JudgedClaim: TypeAlias = tuple[LogClaim, LogExtent | None]
"""A claim, and the log before its exchange; None if it was unknown or another topic's."""


class LogExtents(BoundedDict[PartitionKey, LogExtent]):
    """All logs of a capture; claims of an exchange are applied after all rules have run on it."""

    def __init__(self) -> None:
        super().__init__(_MAX_LOGS)
        self._current: Callable[[], Observation | None] = lambda: None
        self._claims: list[JudgedClaim] = []
        self._response_time_and_connection: tuple[int, int] = (0, 0)

    def claims_of(self, observation: Observation) -> list[JudgedClaim]:
        """Apply the claims of the previous exchange; return the claims of this one."""
        if self._current() is not observation:
            self._apply_claims()
            if observation.api_key in TOPIC_CHANGES:
                self.clear()
            claims = _claims(observation)
            self._current = ref(observation)
            self._claims = [
                (each, self.extent_of(each.partition_key, each.topic_id)) for each in claims
            ]
            self._response_time_and_connection = (
                observation.row.response_ns or 0,
                observation.connection.number,
            )
        return self._claims

    def extent_of(self, partition_key: PartitionKey, topic_id: UUID | None) -> LogExtent | None:
        """Return the log of a partition; None if it is unknown or the topic was recreated."""
        log = self.get(partition_key)
        if log is not None and topic_id and log.topic_id and topic_id != log.topic_id:
            return None
        return log

    def _apply_claims(self) -> None:
        response_ns, connection = self._response_time_and_connection
        is_alone = len(self._claims) == 1
        for claim, log in self._claims:
            if not is_alone:  # one before it may have changed which log it is
                log = self.extent_of(claim.partition_key, claim.topic_id)
            if log is None:
                log = self[claim.partition_key] = LogExtent()
            log.topic_id = claim.topic_id or log.topic_id
            if claim.append is not None:
                log.ranges.append(claim.append)
                log.ranges_end = max(log.ranges_end, claim.append.end)
            if claim.end is not None and (log.end is None or claim.end >= log.end.offset):
                log.end = OffsetBound(claim.end, response_ns, connection)
            if claim.start is not None and (log.start is None or claim.start >= log.start.offset):
                log.start = OffsetBound(claim.start, response_ns, connection)


def _claims(observation: Observation) -> list[LogClaim]:
    """Return the claims of an exchange about logs."""
    key = observation.api_key
    if observation.row.response_ns is None or observation.unreadable_reason():
        return []
    if key == PRODUCE:
        return _produce_claims(observation)
    if key == FETCH:
        return _fetch_claims(observation)
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        return []
    if key == _LIST_OFFSETS and observation.version:
        return _list_offsets_claims(observation, request, response)
    if key == _DELETE_RECORDS:
        broker = observation.connection.broker.address
        return [
            LogClaim(
                (broker, topic.name, each.partition_index),
                None,
                f"topics[{at}].partitions[{number}].low_watermark",
                start=each.low_watermark,
            )
            for at, topic in enumerate(response.topics or ())
            for number, each in enumerate(topic.partitions or ())
            if not each.error_code and each.low_watermark >= 0
        ]
    return []


def _produce_claims(observation: Observation) -> list[LogClaim]:
    found = []
    connection, response_ns = observation.connection.number, observation.row.response_ns or 0
    for each in produce_results(observation):
        batch = each.batches[0] if each.batches is not None and len(each.batches) == 1 else None
        if each.error_code or each.offset < 0:
            continue
        if isinstance(batch, (PlainBatch, RecordBatch)) and batch.last_offset_delta >= 0:
            end = each.offset + batch.last_offset_delta + 1
            producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
            found.append(
                LogClaim(
                    partition_key_of(observation, each),
                    each.topic_id,
                    each.path,
                    end if each.acks == _ALL else None,
                    each.start if each.start >= 0 else None,
                    AppendedRange(each.offset, end, connection, response_ns, producer),
                    "base_offset",
                )
            )
    return found


def partition_key_of(observation: Observation, result: PartitionResult) -> PartitionKey:
    """Return the log of a partition in a Produce or Fetch exchange."""
    topic = result.topic
    name = topic if isinstance(topic, str) else observation.topic_name(None, topic)
    return observation.connection.broker.address, name, result.partition


def _fetch_claims(observation: Observation) -> list[LogClaim]:
    return [
        LogClaim(
            partition_key_of(observation, each),
            each.topic_id,
            each.path,
            each.offset,
            each.start if each.start >= 0 else None,
        )
        for each in fetch_results(observation)
        if not each.error_code and each.offset >= 0
    ]


def fetch_results(observation: Observation) -> list[PartitionResult]:
    """Return the partitions of a Fetch response whose request is known."""
    if observation.results is not None:
        return observation.results
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        return []
    batches = {field.path: field.batches for _, field in observation.record_fields}
    found = []
    for at, topic in enumerate(response.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            path = f"responses[{at}].partitions[{number}]"
            found.append(
                PartitionResult(
                    topic.get("topic", topic.get("topic_id")) or "",
                    each.partition_index,
                    path,
                    f"{path}.records",
                    _NO_ACKS,
                    each.error_code,
                    each.high_watermark,
                    each.get("log_start_offset", -1),
                    batches.get(f"{path}.records"),
                    None,
                )
            )
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
            partition_key = observation.connection.broker.address, topic.name, each.partition_index
            path = f"topics[{at}].partitions[{number}].offset"
            if time == _LATEST and not request.get("isolation_level"):
                found.append(LogClaim(partition_key, None, path, end=each.offset))
            elif time == _EARLIEST:
                found.append(LogClaim(partition_key, None, path, start=each.offset))
    return found
