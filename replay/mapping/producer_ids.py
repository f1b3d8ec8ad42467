"""Mapping of producer ids, epochs and sequences between capture and target."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from replay.plan.sequence_gaps import SEQUENCES, ProducerPartition, SequenceGaps


@dataclass(slots=True)
class _Direction:
    """One direction: id -> its epochs, and (id, epoch) -> id and epoch of the other side."""

    epochs: dict[int, list[int]] = field(default_factory=dict)
    others: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def learn(self, producer: tuple[int, int], other: tuple[int, int]) -> None:
        if producer not in self.others:
            insort(self.epochs.setdefault(producer[0], []), producer[1])
        self.others[producer] = other

    def find(self, producer_id: int, epoch: int | None) -> tuple[int, int] | None:
        """Look up a producer; epochs after a known one are counted from it (KIP-360)."""
        epochs = self.epochs.get(producer_id)
        if not epochs:
            return None
        at = len(epochs) - 1 if epoch is None else max(bisect_right(epochs, epoch) - 1, 0)
        other_id, other = self.others[producer_id, epochs[at]]
        return other_id, other if epoch is None else max(other + epoch - epochs[at], 0)


class ProducerMap:
    """
    Producers of a run, in both directions.

    Attributes:
        revision: Incremented whenever the mapping changes.
        holes: Holes in the captured sequences.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.holes: Mapping[ProducerPartition, SequenceGaps] = MappingProxyType({})
        self._missing: dict[ProducerPartition, int] = {}
        self._live = _Direction()
        self._captured = _Direction()
        self._first_sequences: dict[ProducerPartition, int] = {}
        self._next_sequences: dict[tuple[tuple[int, int] | None, str, int], int] = {}

    def learn(self, captured: tuple[int, int], live: tuple[int, int]) -> None:
        """Learn the live producer (id, epoch) of a captured one."""
        if min(captured[0], live[0]) >= 0:
            self.revision += 1
            self._live.learn(captured, live)
            self._captured.learn(live, captured)

    def knows(self, producer_id: int, epoch: int) -> bool:
        """Return whether a captured producer's mapping was learned rather than counted."""
        return (producer_id, epoch) in self._live.others

    def live(self, producer_id: int, epoch: int | None) -> tuple[int, int] | None:
        """Return id and epoch on the target; None if unknown."""
        return self._live.find(producer_id, epoch)

    def captured(self, producer_id: int, epoch: int | None) -> tuple[int, int] | None:
        """Return id and epoch in the capture; None if unknown."""
        return self._captured.find(producer_id, epoch)

    def captured_epoch(self, captured_id: int, live_epoch: int) -> int:
        """Return the captured epoch for a live epoch of a captured producer."""
        found = self._live.find(captured_id, None)
        back = self._captured.find(found[0], live_epoch) if found else None
        return back[1] if back else live_epoch

    def sequence(self, producer: tuple[int, int], topic: str, partition: int, sequence: int) -> int:
        """
        Return the live sequence of a batch of a captured producer.

        A producer's first batch to a partition of the target has sequence 0, unless the live
        producer with this epoch has already written there under another captured one: then its
        sequence continues. A batch captured twice gets the same sequence twice, because the target
        must see the duplicate too. After a hole in the capture the target gets the sequence that it
        expects.
        """
        if sequence < 0:
            return sequence
        key = (*producer, topic, partition)
        if key in self.holes:
            missing = self.holes[key].missing_before(sequence)
            if self._missing.get(key, 0) != missing:
                self._missing[key] = missing
                self.revision += 1
            sequence = (sequence - missing) % SEQUENCES
        if key not in self._first_sequences:
            next_sequence = self._next_sequences.get((self.live(*producer), topic, partition), 0)
            self._first_sequences[key] = (sequence - next_sequence) % SEQUENCES
        return (sequence - self._first_sequences[key]) % SEQUENCES

    def record_written(
        self, live: tuple[int, int], topic: str, partition: int, sequence: int, records: int
    ) -> None:
        """Record the last sequence of a live producer in a partition."""
        key, following = (live, topic, partition), sequence + records
        if (following - self._next_sequences.get(key, 0)) % SEQUENCES < SEQUENCES // 2:
            self._next_sequences[key] = following % SEQUENCES

    def logs(self) -> set[tuple[str, int]]:
        """Return the captured topics and partitions that producers with an id wrote to."""
        return {(topic, partition) for _, topic, partition in self._next_sequences}

    def captured_sequence(
        self, producer: tuple[int, int], topic: str, partition: int, sequence: int
    ) -> int:
        """Return the captured sequence for a live one."""
        if sequence < 0:
            return sequence
        key = (*producer, topic, partition)
        captured = (sequence + self._first_sequences.get(key, 0)) % SEQUENCES
        return self.holes[key].captured_sequence(captured) if key in self.holes else captured
