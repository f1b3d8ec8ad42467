"""
Holes in the sequences of producers: batches that a broker took and that the capture lacks.

A broker takes a batch only if it goes on from the one before. One that it took although the capture
lacks what comes before proves a hole, which a target must not see. Source: KIP-98;
Kafka, ProducerAppendInfo.java.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from construct import Container

from dissector.protocol.messages import Message
from replay.batches import pieces
from replay.footprint import Log

SEQUENCES = 1 << 31
"""After 2^31 - 1 a sequence goes on with 0 (Kafka, DefaultRecordBatch.incrementSequence)."""


@dataclass(slots=True)
class Holes:
    """
    The holes in what one producer wrote to one partition.

    Attributes:
        first: The first captured sequence.
        following: The sequence with which the next batch goes on.
        ends: Where each hole ends, counted from the first sequence.
        missing: How many records are missing up to there.
    """

    first: int
    following: int
    ends: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)

    def note(self, sequence: int, records: int) -> bool:
        """Take the next batch that the broker took; return whether a hole is before it."""
        ahead = (sequence - self.following) % SEQUENCES
        if ahead >= SEQUENCES // 2:
            return False  # it was captured before
        if ahead:
            self.ends.append((sequence - self.first) % SEQUENCES)
            self.missing.append(ahead + (self.missing[-1] if self.missing else 0))
        self.following = (sequence + records) % SEQUENCES
        return ahead > 0

    def before(self, sequence: int) -> int:
        """Return how many records are missing before a captured sequence."""
        at = bisect_right(self.ends, (sequence - self.first) % SEQUENCES)
        return self.missing[at - 1] if at else 0

    def with_missing(self, sequence: int) -> int:
        """Return the captured sequence for one that counts only what was captured."""
        distance = (sequence - self.first) % SEQUENCES
        for end, missing in zip(reversed(self.ends), reversed(self.missing), strict=True):
            if distance + missing >= end:
                return (sequence + missing) % SEQUENCES
        return sequence


_Batch = tuple[Log | None, tuple[int, int, int, int]]
"""Where a batch was written; producer id, epoch, sequence, and how many records there are."""


class HolesSeen:
    """Gathers the batches of a capture that brokers took."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, Log], Holes] = {}

    def note_all(self, batches: Iterable[_Batch]) -> bool:
        """Take the batches of a request; return whether a hole is before one of them."""
        has_hole = False
        for log, (producer_id, epoch, sequence, records) in batches:
            if log is None or producer_id < 0 or sequence < 0:
                continue
            key = producer_id, epoch, log
            known = self._known.get(key)
            if known is None:
                self._known[key] = Holes(sequence, (sequence + records) % SEQUENCES)
            else:
                has_hole |= known.note(sequence, records)
        return has_hole

    def found(self, name: Callable[[UUID], str | None]) -> dict[tuple[int, int, str, int], Holes]:
        """
        Return the producers, with topic and partition, in what they wrote there are holes.

        Args:
            name: Returns the name of a topic id.
        """
        titled = (
            (producer_id, epoch, name(topic) if isinstance(topic, UUID) else topic, partition, each)
            for (producer_id, epoch, (topic, partition)), each in self._known.items()
            if each.ends
        )
        return {(*key, topic, at): each for *key, topic, at, each in titled if topic}


def taken(asked: Message, answered: Message | None) -> Iterator[_Batch]:
    """Yield the batches of a Produce request; those that were refused belong to no log."""
    if asked.api != "Produce" or asked.body is None:
        return
    refused = set(_refused(answered.body)) if answered is not None and answered.body else set()
    for topic in asked.body.topic_data:
        title = topic.get("name") or topic.get("topic_id")
        for each in topic.partition_data:
            log = None if (title, each.index) in refused else (title, each.index)
            for piece in pieces(each.records or b""):
                if piece.producer is not None:
                    yield log, (*piece.producer, piece.records)


def _refused(answer: Container) -> Iterator[Log]:
    for topic in answer.responses:
        for each in topic.partition_responses:
            if each.error_code:
                yield (topic.get("name") or topic.get("topic_id")), each.index
