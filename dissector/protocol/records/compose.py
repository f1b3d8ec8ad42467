"""Builds new batches and message sets from records, as a producer does."""

from __future__ import annotations

from collections.abc import Iterable

from dissector.errors import EncodeError
from dissector.protocol.records import layout
from dissector.protocol.records.batch import RecordBatch
from dissector.protocol.records.compression import CODEC_IDS
from dissector.protocol.records.message_set import LegacyBatch, LegacyRecord
from dissector.protocol.records.record import Record

_NO_TIMESTAMP = -1


def new_batch(
    records: Iterable[Record | LegacyRecord],
    *,
    codec: str = "none",
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    transactional: bool = False,
) -> RecordBatch:
    """
    Put records into one batch of magic 2, with the offsets of a producer: 0, 1, 2, ...

    Args:
        records: Of any magic; keys, values, headers and timestamps are used.
        codec: By name.
        base_offset: 0 in a Produce request.
        producer_id: Of an idempotent producer; -1 for none.
        producer_epoch: -1 for none.
        base_sequence: Sequence of the first record.
        partition_leader_epoch: Set by brokers.
        transactional: Whether the batch is part of a transaction.

    Raises:
        EncodeError: The codec does not exist.
    """
    sources = list(records)
    times = [_NO_TIMESTAMP if r.timestamp is None else r.timestamp for r in sources]
    base = times[0] if times else _NO_TIMESTAMP
    batch = RecordBatch(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=_codec_id(codec) | (layout.TRANSACTIONAL if transactional else 0),
        base_timestamp=base,
        max_timestamp=base,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    return batch.with_records(
        [
            Record(0, time - base, index, r.key, r.value, r.headers, base_offset + index, time)
            for index, (r, time) in enumerate(zip(sources, times, strict=True))
        ]
    )


def new_message_set(
    records: Iterable[Record | LegacyRecord],
    *,
    magic: int = 1,
    codec: str = "none",
    base_offset: int = 0,
) -> list[LegacyBatch]:
    """
    Put records into a message set: one message each, or one wrapper if there is a codec.

    Headers are lost: message sets have none.

    Raises:
        EncodeError: The codec or magic does not exist.
    """
    if magic not in (0, 1):
        raise EncodeError(f"magic {magic} has no message sets", "magic")
    number = _codec_id(codec)
    messages = [
        LegacyRecord(
            offset=base_offset + index,
            magic=magic,
            timestamp=(_NO_TIMESTAMP if r.timestamp is None else r.timestamp) if magic else None,
            key=r.key,
            value=r.value,
        )
        for index, r in enumerate(records)
    ]
    empty = LegacyBatch(magic=magic, attributes=number)
    groups = [messages] if number and messages else [[message] for message in messages]
    return [empty.with_records(group) for group in groups]


def _codec_id(name: str) -> int:
    """Return the number of a codec."""
    if name not in CODEC_IDS:
        raise EncodeError(f"codec {name!r} is unknown", "codec")
    return CODEC_IDS[name]
