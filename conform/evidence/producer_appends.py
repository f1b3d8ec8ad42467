"""
Appends of idempotent producers that a capture proves.

A producer may write to a partition on several connections, some of them not captured. Offsets show
whether anything was appended in between: two batches without a gap in their offsets follow each
other directly. So sequences are compared only within a *run* of such batches.

Source: ProducerAppendInfo.java, ProducerStateEntry.java (NUM_BATCHES_TO_RETAIN).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from conform.evidence.bounded_memory import MAX_ITEMS, BoundedDict
from conform.evidence.observation import Observation
from conform.registry.partition_results import PartitionResult, PlainBatch
from dissector.protocol.records import RecordBatch

SEQUENCE_COUNT = 1 << 31
"""Number of sequences; after the last, a producer continues with 0."""

RETAINED_BATCHES = 5
"""Number of batches that a broker retains per producer and partition, to detect duplicates."""

_MAX_PRODUCERS = 1000
"""Limit of the retained producers of one run."""

PartitionKey: TypeAlias = tuple[str, str | UUID, int]
"""Address of the broker, name or id of the topic, number of the partition."""


class Append(NamedTuple):
    """
    One batch of an idempotent producer, and its result.

    Attributes:
        path: Path of its `records` field in the request.
        partition_key: Broker, topic and partition.
        batch: The batch.
        error: The error code of the response.
        offset: The base offset in the response; -1 for none.
    """

    path: str
    partition_key: PartitionKey
    batch: RecordBatch | PlainBatch
    error: int
    offset: int

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return (self.batch.base_sequence + self.batch.last_offset_delta) % SEQUENCE_COUNT


@dataclass(slots=True)
class ProducerState:
    """State of one producer in a run: its epoch, the last sequence, the last batches."""

    epoch: int
    last_sequence: int
    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=RETAINED_BATCHES))


@dataclass(slots=True)
class PartitionAppends:
    """
    Batches of a partition that follow each other without a gap.

    Attributes:
        end_offset: The offset after the last batch.
        producers: State of the producers, by their ids.
    """

    end_offset: int
    producers: BoundedDict[int, ProducerState] = field(
        default_factory=lambda: BoundedDict(_MAX_PRODUCERS)
    )

    def record(self, append: Append) -> None:
        """Add the next batch."""
        batch = append.batch
        self.end_offset = append.offset + batch.last_offset_delta + 1
        producer = self.producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self.producers[batch.producer_id] = ProducerState(batch.producer_epoch, 0)
        producer.last_sequence = append.last_sequence
        producer.recent.append((batch.base_sequence, append.offset))


class AppendHistory(BoundedDict[PartitionKey, PartitionAppends]):
    """The newest run of each partition."""

    def __init__(self) -> None:
        super().__init__(MAX_ITEMS // 10)

    def producer_of(self, append: Append) -> ProducerState | None:
        """Return the state of a batch's producer directly before the batch; None if unknown."""
        run = self.get(append.partition_key)
        if run is None or run.end_offset != append.offset:
            return None
        return run.producers.get(append.batch.producer_id)

    def record(self, append: Append) -> None:
        """Add an appended batch to the run that it continues, or start a new run."""
        run = self.get(append.partition_key)
        if run is not None and append.offset < run.end_offset and self._is_retry(run, append):
            return
        if run is None or run.end_offset != append.offset:
            run = self[append.partition_key] = PartitionAppends(append.offset)
        run.record(append)

    @staticmethod
    def _is_retry(run: PartitionAppends, append: Append) -> bool:
        producer = run.producers.get(append.batch.producer_id)
        if producer is None:
            return False
        return (append.batch.base_sequence, append.offset) in producer.recent


def produce_results(observation: Observation) -> list[PartitionResult]:
    """Return the partitions with records of a Produce exchange that has a response."""
    if observation.results is not None:
        return [each for each in observation.results if each.batches is not None]
    response = observation.response_body
    if response is None:
        return []
    request = observation.request_body
    acks = 0 if request is None else request.acks
    transactional_id = None if request is None else request.get("transactional_id")
    results = {
        (topic.get("name", topic.get("topic_id")), each.index): (
            each,
            f"responses[{at}].partition_responses[{number}]",
        )
        for at, topic in enumerate(response.responses or ())
        for number, each in enumerate(topic.partition_responses or ())
    }
    found = []
    for _, records in observation.record_fields:
        topic = records.topic_id if records.topic is None else records.topic
        result, path = results.get((topic, records.partition), (None, ""))
        if result is None or topic is None:  # a null name violates E09
            continue
        found.append(
            PartitionResult(
                topic,
                records.partition,
                path,
                records.path,
                acks,
                result.error_code,
                result.base_offset,
                result.get("log_start_offset", -1),
                records.batches,
                transactional_id,
            )
        )
    return found


def appends(observation: Observation) -> list[Append]:
    """Return the batches of idempotent producers in a Produce exchange, with their results."""
    broker = observation.connection.broker.address
    return [
        Append(
            each.records_path,
            (broker, each.topic, each.partition),
            batch,
            each.error_code,
            each.offset,
        )
        for each in produce_results(observation)
        for batch in each.batches or ()
        if isinstance(batch, (PlainBatch, RecordBatch)) and batch.producer_id >= 0
    ]
