"""Records, Produce requests and Fetch requests for probes."""

from __future__ import annotations

import time
from typing import Any

from conform.probe.probe_fixtures import Topic
from conform.probe.probe_target import Target
from conform.probe.raw_exchange import RawExchange
from dissector.protocol.records import (
    Batch,
    LegacyRecord,
    build_records,
    new_batch,
    new_message_set,
    parse_records,
)


def encode_batch(*values: bytes, key: bytes | None = b"k", **more: Any) -> bytes:
    """Encode a batch of magic 2 with these values; `more` as for `new_batch`."""
    now_ms = int(time.time() * 1000)
    records = [
        LegacyRecord(offset=index, timestamp=now_ms, key=key, value=value)
        for index, value in enumerate(values)
    ]
    return build_records([new_batch(records, **more)])


def encode_one_record(value: bytes, magic: int = 2) -> bytes:
    """Encode one record in a batch, or in a message set of magic 0 or 1."""
    if magic == 2:
        return encode_batch(value)
    record = LegacyRecord(offset=0, timestamp=int(time.time() * 1000), key=b"k", value=value)
    return build_records(new_message_set([record], magic=magic))


def produce_fields(
    topic: Topic, records: bytes | None, acks: int = -1, transactional_id: str | None = None
) -> dict[str, Any]:
    """Return the fields of a Produce request to partition 0."""
    partition = {"index": 0, "records": records}
    topic_data = {"name": topic.name, "topic_id": topic.topic_id, "partition_data": [partition]}
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout_ms": 10_000,
        "topic_data": [topic_data],
    }


PRODUCE_PARTITION = "responses[0].partition_responses[0]"
"""Path of the partition in a Produce response."""


def fetch_fields(topic: Topic, offset: int, **more: Any) -> dict[str, Any]:
    """Return the fields of a Fetch request for partition 0, without a session."""
    partition = {
        "partition": 0,
        "fetch_offset": offset,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    for name in list(more):
        if name in partition:
            partition[name] = more.pop(name)
    return {
        "replica_id": -1,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}],
        **more,
    }


_MAX_RECORDS = 10_000
"""More than any probe produces; bounds the loop for a broker that returns more."""

FETCH_PARTITION = "responses[0].partitions[0]"
"""Path of the partition in a Fetch response."""


async def produce(
    target: Target, topic: Topic, records: bytes | None, version: int | None = None, **more: Any
) -> RawExchange:
    """Produce to partition 0; `more` as for `produce_fields`."""
    return await target.request(
        "Produce", produce_fields(topic, records, **more), version, topic.leader_id
    )


async def fetch(
    target: Target, topic: Topic, offset: int, version: int | None = None, **more: Any
) -> RawExchange:
    """Fetch from partition 0; `more` as for `fetch_fields`."""
    return await target.request(
        "Fetch", fetch_fields(topic, offset, **more), version, topic.leader_id
    )


async def fetch_all(
    target: Target, topic: Topic, version: int | None = None
) -> tuple[list[tuple[int, bytes | None]], list[str], RawExchange]:
    """
    Fetch partition 0 from its start to its end, with as many requests as necessary.

    Returns:
        Offsets and values, the problems of the batches, and the last exchange.
    """
    records: list[tuple[int, bytes | None]] = []
    problems: list[str] = []
    while True:
        offset = records[-1][0] + 1 if records else 0
        exchange = await fetch(target, topic, offset, version, max_wait_ms=0)
        new = [each for each in fetched_values(exchange) if each[0] >= offset]
        problems += [
            str(problem) for each in fetched_batches(exchange) for problem in each.problems
        ]
        if not new or problems or len(records) > _MAX_RECORDS:
            return records + new, problems, exchange
        records += new


def fetched_batches(exchange: RawExchange) -> list[Batch]:
    """Return the batches in a Fetch response."""
    return parse_records(exchange.field(f"{FETCH_PARTITION}.records") or b"", may_be_cut=True)


def fetched_values(exchange: RawExchange) -> list[tuple[int, bytes | None]]:
    """Return offsets and values of the records in a Fetch response, without control records."""
    return [
        (record.offset, record.value)
        for each in fetched_batches(exchange)
        if not getattr(each, "control", False)
        for record in getattr(each, "records", ())
    ]
