"""Scenes with valid or invalid batches, produced or fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dissector.protocol.records import Record, RecordBatch, new_batch, parse_records
from tests.conform.scene import Scene, SceneConnection

PRODUCE, FETCH = 0, 1
NOW_MS = 1_700_000_000_000
RECORDS = [
    Record(key=b"k", value=b"one", timestamp=NOW_MS, headers=(("h", b"x"),)),
    Record(value=b"two", timestamp=NOW_MS + 5),
]
PRODUCER = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}


def batch(records: Sequence[Record] = RECORDS, **fields: Any) -> RecordBatch:
    """Return a batch as decoded from the wire."""
    (found,) = parse_records(new_batch(records, **fields).to_bytes())
    assert isinstance(found, RecordBatch)
    return found


def edited(found: RecordBatch, **fields: Any) -> bytes:
    """Return the bytes of a batch with other header fields or payload, and a matching CRC."""
    changed = replace(found, **fields)
    if "payload" in fields:
        changed.batch_length = 49 + len(fields["payload"])
    return changed.to_bytes(fix_crc=True)


def produce(
    connection: SceneConnection,
    number: int,
    *fields: bytes | None,
    version: int = 9,
    error_code: int = 0,
    base_offset: int = 0,
    **values: Any,
) -> None:
    """Produce to one partition for each records field, with a response."""
    parts = [{"index": at, "records": data} for at, data in enumerate(fields)]
    topic = {"name": "orders", "partition_data": parts}
    values = {"acks": -1, "timeout_ms": 1000} | values
    connection.request(PRODUCE, version, number, topic_data=[topic], **values)
    partitions = [
        {"index": at, "error_code": error_code, "base_offset": base_offset}
        for at in range(len(fields))
    ]
    answer = {"name": "orders", "partition_responses": partitions}
    connection.response(PRODUCE, version, number, responses=[answer])


def produced(*fields: bytes | None, version: int = 9, **values: Any) -> Scene:
    """Return a scene with one Produce request only."""
    scene = Scene()
    produce(scene.connect(), 1, *fields, version=version, **values)
    return scene


def fetch(
    connection: SceneConnection,
    number: int,
    data: bytes | None,
    *,
    version: int = 6,
    offset: int = 0,
    **values: Any,
) -> None:
    """Fetch one partition without a session, with a response."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topic = {"topic": "orders", "partitions": [partition]}
    connection.request(FETCH, version, number, replica_id=-1, max_wait_ms=500, topics=[topic])
    usual: dict[str, Any] = {"partition_index": 0, "high_watermark": 100, "records": data}
    if version >= 4:
        usual |= {"last_stable_offset": 100, "aborted_transactions": None}
    answer = {"topic": "orders", "partitions": [usual | values]}
    connection.response(FETCH, version, number, responses=[answer])


def fetched(data: bytes | None, version: int = 6, offset: int = 0, **values: Any) -> Scene:
    """Return a scene with one Fetch only, without a session."""
    scene = Scene()
    fetch(scene.connect(), 1, data, version=version, offset=offset, **values)
    return scene
