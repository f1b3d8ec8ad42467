"""
Appends of idempotent producers, as far as a capture proves them.

A producer writes to a partition on one connection after another, and a capture need not contain all
of them. The offsets show whether anything was appended in between: two batches without a gap in
their offsets follow each other directly. So sequences are compared only within such a *run*.

Source: ProducerAppendInfo.java, ProducerStateEntry.java (NUM_BATCHES_TO_RETAIN).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from conform.evidence.bounded_memory import MOST_KEPT, Newest
from conform.evidence.observation import Turn
from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch

SEQUENCES = 1 << 31
"""Number of sequences; after the last a producer starts at 0 again."""

RETAINED = 5
"""Batches of a producer that a broker keeps for each partition, to detect duplicates."""

_MOST_PRODUCERS = 1000
"""Limit of the producers kept for one run."""

Place: TypeAlias = tuple[str, str | UUID, int]
"""Address of the broker, name or id of the topic, number of the partition."""


class Append(NamedTuple):
    """
    One batch of an idempotent producer, and its result.

    Attributes:
        message: The request.
        path: Path of its `records` field.
        place: Broker, topic and partition.
        batch: The batch.
        error: The error code of the response.
        offset: The base offset of the response; -1 for none.
    """

    message: Message
    path: str
    place: Place
    batch: RecordBatch
    error: int
    offset: int

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return (self.batch.base_sequence + self.batch.last_offset_delta) % SEQUENCES


@dataclass(slots=True)
class Producer:
    """State of one producer in a run: its epoch, the last sequence, the last batches."""

    epoch: int
    last: int
    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=RETAINED))


@dataclass(slots=True)
class Run:
    """
    Batches of a partition that follow each other without a gap.

    Attributes:
        end: The offset behind the last batch.
        producers: State of the producers, by their ids.
    """

    end: int
    producers: Newest[int, Producer] = field(default_factory=lambda: Newest(_MOST_PRODUCERS))

    def take(self, append: Append) -> None:
        """Add the next batch."""
        batch = append.batch
        self.end = append.offset + batch.last_offset_delta + 1
        known = self.producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self.producers[batch.producer_id] = Producer(batch.producer_epoch, 0)
        known.last = append.last_sequence
        known.recent.append((batch.base_sequence, append.offset))


class Runs(Newest[Place, Run]):
    """The newest run of each partition."""

    def __init__(self) -> None:
        super().__init__(MOST_KEPT // 10)

    def known(self, append: Append) -> Producer | None:
        """Return the producer state that a batch follows directly; None where that is unknown."""
        run = self.get(append.place)
        if run is None or run.end != append.offset:
            return None
        return run.producers.get(append.batch.producer_id)

    def take(self, append: Append) -> None:
        """Add an appended batch: to the run that it follows, or as the first of a new run."""
        run = self.get(append.place)
        if run is not None and append.offset < run.end and self._is_retry(run, append):
            return
        if run is None or run.end != append.offset:
            run = self[append.place] = Run(append.offset)
        run.take(append)

    @staticmethod
    def _is_retry(run: Run, append: Append) -> bool:
        known = run.producers.get(append.batch.producer_id)
        return known is not None and (append.batch.base_sequence, append.offset) in known.recent


def appends(turn: Turn) -> list[Append]:
    """Return the batches of idempotent producers in a Produce exchange with a response."""
    told = turn.told
    if told is None:
        return []
    answers = {
        (topic.get("name", topic.get("topic_id")), each.index): each
        for topic in told.responses or ()
        for each in topic.partition_responses or ()
    }
    found = []
    for message, carried in turn.carried:
        topic = carried.topic_id if carried.topic is None else carried.topic
        if topic is None:  # a null name violates E09
            continue
        answer = answers.get((topic, carried.partition))
        for batch in carried.batches:
            if answer is not None and isinstance(batch, RecordBatch) and batch.producer_id >= 0:
                place = turn.talk.broker.address, topic, carried.partition
                error, offset = answer.error_code, answer.base_offset
                found.append(Append(message, carried.path, place, batch, error, offset))
    return found
