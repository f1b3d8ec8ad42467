"""
Sequences of producers: gaps, and batches that were sent again.

Gaps are batches that a broker accepted but the capture lacks. A broker accepts a batch only if it
continues the previous one. An accepted batch without its predecessor in the capture therefore
proves a gap, which must be hidden from the target. A client sends a batch again with its sequence
if it was refused, or got no response: the target may have appended it the first time. Source:
KIP-98; Kafka, ProducerAppendInfo.java.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from uuid import UUID

import numpy as np
from construct import Container

from cluster.fields.batch_rewriter import batch_headers
from dissector.capture.columns import Int64s
from dissector.protocol.messages import Message
from replay.order.read_write_sets import Log

SEQUENCES = 1 << 31
"""Sequences wrap from 2^31 - 1 to 0 (Kafka, DefaultRecordBatch.incrementSequence)."""


@dataclass(slots=True)
class SequenceGaps:
    """
    The gaps in one producer's batches to one partition.

    Attributes:
        first: The first captured sequence.
        next_sequence: The sequence expected of the next batch.
        ends: End of each gap, as a distance from the first sequence.
        missing: Total number of missing records up to each of these ends.
    """

    first: int
    next_sequence: int
    ends: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)

    def record(self, sequence: int, records: int) -> bool:
        """Record the next accepted batch; return whether a gap precedes it."""
        ahead = (sequence - self.next_sequence) % SEQUENCES
        if ahead >= SEQUENCES // 2:
            return False  # a duplicate: it was captured before
        if ahead:
            self.ends.append((sequence - self.first) % SEQUENCES)
            self.missing.append(ahead + (self.missing[-1] if self.missing else 0))
        self.next_sequence = (sequence + records) % SEQUENCES
        return ahead > 0

    def missing_before(self, sequence: int) -> int:
        """Return the number of missing records before a captured sequence."""
        at = bisect_right(self.ends, (sequence - self.first) % SEQUENCES)
        return self.missing[at - 1] if at else 0

    def captured_sequence(self, sequence: int) -> int:
        """Return the captured sequence for a sequence without gaps."""
        distance = (sequence - self.first) % SEQUENCES
        for end, missing in zip(reversed(self.ends), reversed(self.missing), strict=True):
            if distance + missing >= end:
                return (sequence + missing) % SEQUENCES
        return sequence


ProducerPartition = tuple[int, int, str, int]
"""Captured producer id and epoch, topic and partition."""

Batch = tuple[Log, bool, tuple[int, int, int, int]]
"""Log, whether the broker accepted it; producer id, epoch, sequence and number of records."""


class SequenceFinder:
    """Collects the batches of producers; finds the gaps between them, and those sent again."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int, Log], int] = {}
        self._exchanges = array("q")
        self._writers = array("i")
        self._sequences = array("i")
        self._records = array("i")
        self._is_accepted = bytearray()

    def record(self, exchange: int, batches: Iterable[Batch]) -> None:
        """Record the batches of a request, given by its number."""
        for log, is_accepted, (producer_id, epoch, sequence, records) in batches:
            if producer_id < 0 or sequence < 0:
                continue
            key = producer_id, epoch, log
            self._exchanges.append(exchange)
            self._writers.append(self._numbers.setdefault(key, len(self._numbers)))
            self._sequences.append(sequence)
            self._records.append(records)
            self._is_accepted.append(is_accepted)

    def sent_again(self, steps: Int64s, left_out: Collection[int]) -> set[int]:
        """
        Return the steps with a batch that an earlier step sent too.

        Args:
            steps: For each exchange its step, in the order of captured requests.
            left_out: Steps that are not sent.
        """
        writers, sequences = (np.array(each, np.int64) for each in (self._writers, self._sequences))
        of_batch = steps[np.array(self._exchanges, np.int64)]
        order = np.lexsort((of_batch, sequences, writers))
        order = order[~np.isin(of_batch[order], list(left_out))]
        batches = writers[order] * SEQUENCES + sequences[order]
        is_again = batches[1:] == batches[:-1]
        return set(map(int, of_batch[order[1:]][is_again]))

    def find(
        self, steps: Sequence[int], name: Callable[[UUID], str | None]
    ) -> tuple[dict[ProducerPartition, SequenceGaps], list[int]]:
        """
        Return the gaps by producer and partition, and the steps that follow a gap.

        Args:
            steps: For each exchange its step, in the order of captured requests.
            name: Returns the name of a topic id.
        """
        by_writer: dict[int, SequenceGaps] = {}
        after = []
        columns = self._exchanges, self._writers, self._sequences, self._records
        rows = compress(zip(*columns, strict=True), self._is_accepted)
        for step, writer, sequence, records in sorted((steps[row[0]], *row[1:]) for row in rows):
            gaps = by_writer.setdefault(writer, SequenceGaps(sequence, sequence))
            if gaps.record(sequence, records):
                after.append(step)
        writers = list(self._numbers)
        with_gaps = ((writers[at], each) for at, each in by_writer.items() if each.ends)
        found: dict[ProducerPartition, SequenceGaps] = {}
        for (producer_id, epoch, (topic, partition)), each in with_gaps:
            title = name(topic) if isinstance(topic, UUID) else topic
            if title:
                found[producer_id, epoch, title, partition] = each
        return found, after


def produced_batches(request: Message, response: Message | None) -> Iterator[Batch]:
    """Yield the batches of a Produce request."""
    if request.api != "Produce" or request.body is None:
        return
    refused = (
        set(_refused_partitions(response.body)) if response is not None and response.body else set()
    )
    for topic in request.body.topic_data:
        title = topic.get("name") or topic.get("topic_id")
        for each in topic.partition_data:
            log = title, each.index
            for batch in batch_headers(each.records or b""):
                if batch.producer is not None:
                    yield log, log not in refused, (*batch.producer, batch.record_count)


def _refused_partitions(response: Container) -> Iterator[Log]:
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code:
                yield (topic.get("name") or topic.get("topic_id")), each.index
