"""Our batches and records by the names of Kafka's getters."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from dissector.protocol.records import Batch, LegacyBatch, LegacyRecord, Record, RecordBatch

_TIMESTAMP_TYPES = {
    "CreateTime": "CREATE_TIME",
    "LogAppendTime": "LOG_APPEND_TIME",
    None: "NO_TIMESTAMP_TYPE",
}


def assert_agrees(expected: list[dict[str, Any]], batches: Iterable[Batch]) -> None:
    """Assert that Kafka decodes the same batches in a records field."""
    ours = [_batch(batch) for batch in batches]
    assert [_like(theirs, one) for theirs, one in zip(expected, ours, strict=True)] == ours


def _like(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Select the values of Kafka that we decode too; the rest is derived."""
    out = {key: theirs[key] for key in ours}
    if "records" in out:
        inside = zip(theirs["records"], ours["records"], strict=True)
        out["records"] = [_like(record, one) for record, one in inside]
    return out


def _batch(batch: Batch) -> dict[str, Any]:
    """Return the values of a batch under the names of Kafka's RecordBatch."""
    assert isinstance(batch, RecordBatch | LegacyBatch)
    out = {
        "magic": batch.magic,
        "isValid": batch.crc_ok,
        "checksum": batch.crc,
        "compressionType": batch.codec.upper(),
        "timestampType": _TIMESTAMP_TYPES[batch.timestamp_type],
        "sizeInBytes": len(batch.to_bytes()),
        "records": [_record(record) for record in batch.records],
    }
    if isinstance(batch, RecordBatch):
        return out | {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.base_offset + batch.last_offset_delta,
            "partitionLeaderEpoch": batch.partition_leader_epoch,
            "maxTimestamp": batch.max_timestamp,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "baseSequence": batch.base_sequence,
            "isTransactional": batch.transactional,
            "isControlBatch": batch.control,
            "countOrNull": batch.records_count,
            "deleteHorizonMs": batch.base_timestamp if batch.has_delete_horizon else None,
        }
    return out | {
        "baseOffset": batch.records[0].offset,
        "lastOffset": batch.offset,
        "maxTimestamp": -1 if batch.timestamp is None else batch.timestamp,
    }


def _record(record: Record | LegacyRecord) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": -1 if record.timestamp is None else record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[key, _base64(value)] for key, value in record.headers],
    }


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
