"""Comparison of produced records with the captured ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from dissector.protocol.records import RecordBatch, parse_records
from serve.recording.captured_log import PartitionLog

_CONTENTS = ("key", "value", "headers")


def first_difference(log: PartitionLog, records: bytes, offsets: Iterable[int]) -> str | None:
    """
    Return the first difference to the captured records; None if all are equal.

    Args:
        log: The captured log.
        records: The produced records.
        offsets: The offsets of their captured counterparts; records without one are skipped.
    """
    for offset, sent in zip(offsets, _contents(records), strict=False):
        captured = _captured(log, offset)
        if captured is None:
            continue
        for name, before, after in zip(_CONTENTS, captured, sent, strict=True):
            if before != after:
                return f"the {name} of the record at offset {offset}"
    return None


def counterparts(log: PartitionLog, producer: tuple[int, int], sent: range) -> Iterable[int]:
    """
    Return the offsets of the captured records that a producer repeats.

    Producers of one log may append in another order than in the capture: what a producer sends is
    compared with what it sent at the same position of its own.

    Args:
        log: The captured log.
        producer: The producer, by its captured id and epoch.
        sent: Positions of the records among all of this producer in this log.
    """
    return islice(log.offsets_of(producer), sent.start, max(sent.stop, sent.start))


def _captured(log: PartitionLog, offset: int) -> tuple[object, ...] | None:
    data, _ = log.read(offset, 1, log.end)
    for batch in parse_records(data):
        if isinstance(batch, RecordBatch) and batch.control:
            continue
        for record in batch.records:
            if record.offset == offset:
                return record.key, record.value, tuple(record.headers)
    return None


def _contents(records: bytes) -> Iterator[tuple[object, ...]]:
    for batch in parse_records(records):
        for record in batch.records:
            yield record.key, record.value, tuple(record.headers)
