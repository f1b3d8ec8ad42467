"""Records without their batches: the rows of the `records` command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dissector.protocol.records.batch import RecordBatch
from dissector.protocol.records.field import Batch, UnreadBatch
from dissector.protocol.records.record import Headers

SEQUENCE_MASK = (1 << 31) - 1


class Row(NamedTuple):
    """
    A record and the fields that it has from its batch.

    Attributes:
        offset: In the log; in Produce requests counted from 0.
        timestamp_ms: Since the epoch; None in magic 0.
        key: None without one.
        value: None is a tombstone.
        headers: (key, value) in order.
        magic: 0, 1 or 2.
        codec: Of the batch or wrapper.
        producer_id: -1 if the producer is not idempotent.
        producer_epoch: -1 if the producer is not idempotent.
        sequence: Of this record; -1 in the same case.
        transactional: Whether it is part of a transaction.
        control: The type of a control record (`COMMIT`); None for a client's record.
    """

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    magic: int
    codec: str
    producer_id: int
    producer_epoch: int
    sequence: int
    transactional: bool
    control: str | None


def iter_records(batches: Iterable[Batch]) -> Iterator[Row]:
    """
    Yield every record of the batches, in order.

    A record's sequence follows its offset delta, as compaction leaves holes, and continues at 0
    after 2^31 - 1.

    Source: Kafka's DefaultRecord.java and DefaultRecordBatch.incrementSequence.
    """
    for batch in batches:
        if isinstance(batch, RecordBatch):
            yield from _rows(batch)
            continue
        if isinstance(batch, UnreadBatch):
            continue  # has no records
        for record in batch.records:
            yield Row(
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                (),
                record.magic,
                batch.codec,
                -1,
                -1,
                -1,
                False,
                None,
            )


def _rows(batch: RecordBatch) -> Iterator[Row]:
    """Yield the records of a batch of magic 2."""
    codec, transactional = batch.codec, batch.transactional
    sequence = batch.base_sequence
    for record in batch.records:
        yield Row(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            2,
            codec,
            batch.producer_id,
            batch.producer_epoch,
            sequence + record.offset_delta & SEQUENCE_MASK if sequence >= 0 else -1,
            transactional,
            record.control_type,
        )
