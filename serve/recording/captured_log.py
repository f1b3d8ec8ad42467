"""Logs of partitions: batches captured in Fetch and Produce, or appended by clients."""

from __future__ import annotations

import os
import struct
import tempfile
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from dissector.protocol.records import RecordBatch, parse_records
from dissector.protocol.records.layout import CONTROL

TopicPartition = tuple[str, int]

_BATCH_START = struct.Struct(">qi4xbIhi")
"""Base offset, length, magic, CRC, attributes and last offset delta."""
_MESSAGE_START = struct.Struct(">qi4xb")
_LENGTH_END, _MAGIC_AT, _PRODUCER_AT, _HEADER_BYTES = 12, 16, 43, 61
_MAGIC = 2

_MAX_OFFSET = 1 << 62
"""Limit of offsets in a log, so that clients can append to it."""


class StoredBatch(NamedTuple):
    """
    A record batch, or a message in a message set.

    Attributes:
        base: First offset; for magic 0 and 1, the offset in the header.
        last: Last offset.
        data: Encoded bytes.
        producer_id: Producer id; -1 before magic 2.
        is_control: Whether it is a control batch.
        producer_epoch: Epoch of the producer; -1 before magic 2.
    """

    base: int
    last: int
    data: bytes
    producer_id: int = -1
    is_control: bool = False
    producer_epoch: int = -1


def split_batches(data: bytes) -> Iterator[StoredBatch]:
    """Yield the complete batches and messages in a records field, without impossible ones."""
    start, size = 0, len(data)
    while start + _MAGIC_AT < size:
        base, length, magic = _MESSAGE_START.unpack_from(data, start)
        end = start + _LENGTH_END + length
        if end > size or end <= start + _MAGIC_AT:
            return
        piece = data[start:end]
        start = end
        if magic < _MAGIC:
            yield StoredBatch(base, base, piece)
        elif len(piece) >= _HEADER_BYTES:
            _, _, _, _, attributes, delta = _BATCH_START.unpack_from(piece)
            if delta < 0:
                continue
            producer_id, epoch = struct.unpack_from(">qh", piece, _PRODUCER_AT)
            is_control = bool(attributes & CONTROL)
            yield StoredBatch(base, base + delta, piece, producer_id, is_control, epoch)


def at_offset(data: bytes, base: int) -> bytes:
    """Return a batch of magic 2 with a new base offset; its CRC excludes the offset."""
    return base.to_bytes(8, "big") + data[8:]


def _cut(data: bytes, end: int) -> bytes:
    """Return a batch without the records from an offset on."""
    batches = parse_records(data)
    return b"".join(
        batch.with_records([each for each in batch.records if each.offset < end]).to_bytes()
        for batch in batches
        if isinstance(batch, RecordBatch)
    )


class BatchFile:
    """A temporary file for batches, to bound memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._size = 0

    def add(self, data: bytes) -> int:
        """Append bytes; return their position."""
        place = self._size
        self._size += os.pwrite(self._file.fileno(), data, place)
        return place

    def read(self, place: int, size: int) -> bytes:
        """Read bytes at a position."""
        return os.pread(self._file.fileno(), size, place)

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()


class PartitionLog:
    """
    The batches of a partition, in the order of their offsets.

    Attributes:
        high_watermark: The highest captured high watermark.
        first_produced: The lowest offset in captured Produce responses; -1 without any.
        aborted: Producer id and first offset of aborted transactions.
        first_read: The lowest position of a successful Fetch; -1 without any.
    """

    def __init__(self, file: BatchFile) -> None:
        self.high_watermark = 0
        self.first_produced = -1
        self.aborted: set[tuple[int, int]] = set()
        self.first_read = -1
        self._file = file
        self._lasts, self._bases, self._places = array("q"), array("q"), array("q")
        self._sizes = array("i")
        self._control: list[tuple[int, int]] = []
        self._of_producers: dict[tuple[int, int], set[tuple[int, int]]] = {}

    @property
    def start(self) -> int:
        """First offset of the log; the high watermark if it is empty."""
        starts = [self.first_produced, self.first_read, *self._bases[:1]]
        return min((each for each in starts if each >= 0), default=self.high_watermark)

    def learn_read(self, position: int, high_watermark: int) -> None:
        """Add position and high watermark of a successful Fetch."""
        self.high_watermark = max(self.high_watermark, high_watermark)
        if position >= 0:
            first = self.first_read
            self.first_read = position if first < 0 else min(first, position)

    @property
    def end(self) -> int:
        """The offset after the last batch; 0 without batches."""
        return self._lasts[-1] + 1 if self._lasts else 0

    def add(self, batch: StoredBatch) -> None:
        """Add a batch, unless its last offset is in the log, or beyond any log."""
        if batch.last > _MAX_OFFSET:
            return
        at = bisect_left(self._lasts, batch.last)
        if at < len(self._lasts) and self._lasts[at] == batch.last:
            return
        self._lasts.insert(at, batch.last)
        self._bases.insert(at, batch.base)
        self._places.insert(at, self._file.add(batch.data))
        self._sizes.insert(at, len(batch.data))
        if batch.is_control:
            self._control.append((batch.base, batch.producer_id))
        elif batch.producer_id >= 0:
            producer = batch.producer_id, batch.producer_epoch
            self._of_producers.setdefault(producer, set()).add((batch.base, batch.last))

    def offsets_of(self, producer: tuple[int, int]) -> Iterator[int]:
        """Yield the offsets of the records of a producer, given by id and epoch, in order."""
        for base, last in sorted(self._of_producers.get(producer, ())):
            yield from range(base, last + 1)

    def read(self, offset: int, max_bytes: int, end: int) -> tuple[bytes, int]:
        """
        Return at least one batch from an offset on, and the next offset.

        Args:
            offset: The first offset.
            max_bytes: Limit; the first batch may exceed it.
            end: Exclusive end; the last batch may be cut.
        """
        at = bisect_left(self._lasts, offset)
        found: list[bytes] = []
        size, after = 0, offset
        while at < len(self._lasts) and self._lasts[at] < end:
            if found and size + self._sizes[at] > max_bytes:
                break
            found.append(self._file.read(self._places[at], self._sizes[at]))
            size += self._sizes[at]
            after = self._lasts[at] + 1
            at += 1
        if not found and at < len(self._lasts) and offset < end and self._bases[at] < end:
            return _cut(self._file.read(self._places[at], self._sizes[at]), end), end
        return b"".join(found), after

    def find_time(self, time_ms: int) -> tuple[int, int]:
        """Return offset and timestamp of the first record at or after a time; -1 without one."""
        for place, size in zip(self._places, self._sizes, strict=True):
            for batch in parse_records(self._file.read(place, size)):
                for record in batch.records:
                    if record.timestamp is not None and record.timestamp >= time_ms:
                        return record.offset, record.timestamp
        return -1, -1

    def aborted_between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return aborted transactions with records in the range of offsets."""
        return sorted(
            (
                (producer_id, first)
                for producer_id, first in self.aborted
                if first < end and self._marker_after(producer_id, first) >= start
            ),
            key=lambda each: each[1],
        )

    def _marker_after(self, producer_id: int, first: int) -> int:
        markers = (at for at, producer in self._control if producer == producer_id and at >= first)
        return min(markers, default=1 << 62)


class CapturedLogs:
    """Logs of all partitions, created on first use."""

    def __init__(self) -> None:
        self._file = BatchFile()
        self._logs: dict[TopicPartition, PartitionLog] = {}

    def __contains__(self, at: TopicPartition) -> bool:
        return at in self._logs

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._logs)

    def at(self, topic: str, partition: int) -> PartitionLog:
        """Return the log of a partition."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = PartitionLog(self._file)
        return log

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()
