"""The sweep's first part: topics, Produce, Fetch, offsets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.records import LegacyRecord, build_records, new_batch, new_message_set
from tools.record.scenario import orders
from tools.record.sweep.client import SweepClient, patiently

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS = 0, 1, 2, 3, 19
DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_TOPIC_PARTITIONS = 21, 23, 75
KEYS = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    DELETE_RECORDS,
    OFFSET_FOR_LEADER_EPOCH,
    DESCRIBE_TOPIC_PARTITIONS,
)

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ZSTD_SINCE = 7
_TIMESTAMP_MS = 1_700_000_000_000
_LATEST, _EARLIEST = -1, -2
_NEW_MARKS = {7: -3, 8: -4, 9: -5, 11: -6}
"""Special timestamps of ListOffsets, and their first version: by time, local, tiered."""


def records(magic: int = 2, codec: str = "none", count: int = 2, **of_producer: Any) -> bytes:
    """Return the records of a Produce request in any message format."""
    made = [
        LegacyRecord(offset=index, timestamp=_TIMESTAMP_MS + index, key=key, value=value)
        for index, (key, value) in enumerate(orders(count))
    ]
    if magic == 2:
        return build_records([new_batch(made, codec=codec, **of_producer)])
    return build_records(new_message_set(made, magic=magic, codec=codec))


def produce(
    client: SweepClient,
    version: int,
    name: str,
    topic_id: UUID,
    data: bytes,
    transactional_id: str | None = None,
) -> None:
    """Produce to partition 0."""
    partitions = [{"index": 0, "records": data}]
    topic = {"name": name, "topic_id": topic_id, "partition_data": partitions}
    client.request(
        PRODUCE,
        version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[topic],
    )


def create_topics(client: SweepClient, *names: str, partitions: int = 1) -> dict[str, UUID]:
    """Create topics, wait for leaders of all partitions, return topic ids."""
    topics = [
        {"name": name, "num_partitions": partitions, "replication_factor": 1} for name in names
    ]
    client.newest(CREATE_TOPICS, topics=topics, timeout_ms=5000)
    wanted = [{"name": name} for name in names]

    def led() -> list[Container] | None:
        body = client.newest(METADATA, topics=wanted, allow_auto_topic_creation=False)
        assert body is not None
        ready = all(
            len(topic.partitions) == partitions
            and all(each.leader_id >= 0 for each in topic.partitions)
            for topic in body.topics
        )
        return body.topics if ready else None

    return {topic.name: topic.topic_id for topic in patiently("leaders", led)}


def data(client: SweepClient) -> None:
    """Send all versions of the requests that write and read records."""
    names = ("sweep.data.written", "sweep.data.read")
    ids = create_topics(client, *names)
    _produce_all(client, names[0], ids[names[0]])
    produce(client, client.versions(PRODUCE)[-1], names[1], ids[names[1]], records(count=3))
    _fetch_all(client, names[1], ids[names[1]])
    for version in client.versions(LIST_OFFSETS):
        _list_offsets(client, version, names[1])
    for version in client.versions(METADATA):
        requested: list[dict[str, Any]] = [{"name": names[0]}, {"name": "sweep.unknown"}]
        if version >= 12:
            requested = [{"topic_id": ids[names[0]], "name": None}, {"topic_id": UUID(int=9)}]
        client.request(
            METADATA,
            version,
            topics=requested,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
    epochs = [{"partition": 0, "leader_epoch": 0}, {"partition": 7, "leader_epoch": 0}]
    client.every(OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": names[0], "partitions": epochs}])
    requested = [{"name": name} for name in (*names, "sweep.unknown")]
    client.every(DESCRIBE_TOPIC_PARTITIONS, topics=requested, response_partition_limit=1)
    for version in client.versions(DELETE_RECORDS):
        partitions = [{"partition_index": 0, "offset": version + 1}]
        topics = [{"name": names[1], "partitions": partitions}]
        client.request(DELETE_RECORDS, version, topics=topics, timeout_ms=5000)
    client.rest(KEYS)


def _produce_all(client: SweepClient, name: str, topic_id: UUID) -> None:
    for version in client.versions(PRODUCE):
        magic = 2 if version > 2 else int(version == 2)
        codecs = _CODECS if version >= _ZSTD_SINCE else _CODECS[:4]
        # Many versions are equal: only codecs differ.
        codec = codecs[version % len(codecs)]
        produce(client, version, name, topic_id, records(magic, codec))
    newest = client.versions(PRODUCE)[-1]
    produce(client, newest, "sweep.unknown", UUID(int=9), records())


def _fetch_all(client: SweepClient, name: str, topic_id: UUID) -> None:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10_000}
    beyond = {"partition": 0, "fetch_offset": 1000, "partition_max_bytes": 10_000}
    there = {"topic": name, "topic_id": topic_id}
    waits = {"replica_id": -1, "max_wait_ms": 100, "min_bytes": 1, "max_bytes": 20_000}
    for version in client.versions(FETCH):
        client.request(FETCH, version, topics=[{**there, "partitions": [partition]}], **waits)
    newest = client.versions(FETCH)[-1]
    client.request(FETCH, newest, topics=[{**there, "partitions": [beyond]}], **waits)
    nowhere = {"topic": "sweep.unknown", "topic_id": UUID(int=9), "partitions": [partition]}
    client.request(FETCH, newest, topics=[nowhere], **waits)
    whole = {**waits, "topics": [{**there, "partitions": [partition]}], "session_epoch": 0}
    session = client.request(FETCH, newest, **whole)
    if session is not None:
        of_session = {**waits, "session_id": session.session_id}
        client.request(FETCH, newest, **of_session, session_epoch=1)
        forgotten = [{**there, "partitions": [0]}]
        client.request(
            FETCH, newest, **of_session, session_epoch=2, forgotten_topics_data=forgotten
        )


def _list_offsets(client: SweepClient, version: int, name: str) -> None:
    marks = [_LATEST, _EARLIEST, *(mark for since, mark in _NEW_MARKS.items() if version >= since)]
    for timestamp in (marks[-1], _TIMESTAMP_MS + 1):
        partition = {"partition_index": 0, "timestamp": timestamp, "max_num_offsets": 2}
        topics = [{"name": name, "partitions": [{**partition, "current_leader_epoch": -1}]}]
        client.request(LIST_OFFSETS, version, replica_id=-1, topics=topics, timeout_ms=1000)
