"""
Logs of partitions with records of clients, including transaction markers.

Source: KIP-98 (markers of transactions, the last stable offset, aborted transactions).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dissector.protocol.records import Record, new_batch
from dissector.protocol.records.layout import CONTROL
from serve.recording.captured_log import (
    BatchFile,
    PartitionLog,
    StoredBatch,
    TopicPartition,
    split_batches,
)

_MARKER_KEY, _MARKER_VALUE = struct.Struct(">hh"), struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


@dataclass(slots=True)
class ProducedLog:
    """
    The log of a partition with produced records.

    Attributes:
        log: Batches at their assigned offsets.
        start: The first produced offset; captured records precede it.
        open: Producer id -> first offset of its open transaction.
    """

    log: PartitionLog
    start: int
    open: dict[int, int] = field(default_factory=dict)

    def stable_end(self, end: int) -> int:
        """Return the last stable offset, given the log end."""
        return min((end, *self.open.values()))


class ProducedLogs:
    """Produced logs by partition, created at the first append."""

    def __init__(self) -> None:
        self._file = BatchFile()
        self._logs: dict[TopicPartition, ProducedLog] = {}

    def get(self, place: TopicPartition) -> ProducedLog | None:
        """Return the log of a partition; None without produced records."""
        return self._logs.get(place)

    def append(
        self, place: TopicPartition, batches: Iterable[StoredBatch], *, is_transactional: bool
    ) -> None:
        """Append batches with assigned offsets."""
        for batch in batches:
            found = self._logs.get(place)
            if found is None:
                found = self._logs[place] = ProducedLog(PartitionLog(self._file), batch.base)
            found.log.add(batch)
            if is_transactional:
                found.open.setdefault(batch.producer_id, batch.base)

    def end_transaction(
        self, place: TopicPartition, producer: tuple[int, int], at: int, *, is_committed: bool
    ) -> None:
        """
        Append the marker that ends a transaction.

        Args:
            place: The partition.
            producer: Producer id and epoch.
            at: Offset of the marker.
            is_committed: Commit marker if true, else abort marker.
        """
        found = self._logs.get(place)
        if found is None:
            return
        first = found.open.pop(producer[0], None)
        if first is not None and not is_committed:
            found.log.aborted.add((producer[0], first))
        for batch in split_batches(_marker(producer, at, is_committed=is_committed)):
            found.log.add(batch)


def _marker(producer: tuple[int, int], at: int, *, is_committed: bool) -> bytes:
    key = _MARKER_KEY.pack(0, _COMMIT if is_committed else _ABORT)
    now_ms = time.time_ns() // 1_000_000
    record = Record(0, 0, 0, key, _MARKER_VALUE.pack(0, 0), (), at, now_ms)
    batch = new_batch(
        [record],
        base_offset=at,
        producer_id=producer[0],
        producer_epoch=producer[1],
        transactional=True,
    )
    return replace(batch, attributes=batch.attributes | CONTROL).to_bytes()
