"""Comparison of produced records with the captured ones at the same offsets."""

from __future__ import annotations

from collections.abc import Iterator

from dissector.protocol.records import RecordBatch, parse_records
from serve.recording.captured_log import PartitionLog

_CONTENTS = ("key", "value", "headers")


def first_difference(log: PartitionLog, records: bytes, base: int) -> str | None:
    """
    Return the first difference to the captured records; None if all are equal.

    Args:
        log: The captured log.
        records: The produced records.
        base: Offset of the first produced record. Offsets without a captured record are skipped.
    """
    for offset, sent in enumerate(_contents(records), base):
        captured = _captured(log, offset)
        if captured is None:
            continue
        for name, before, after in zip(_CONTENTS, captured, sent, strict=True):
            if before != after:
                return f"the {name} of the record at offset {offset}"
    return None


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
