"""Contents of a cluster by an independent client: records, committed offsets, groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.kafka_cluster import Cluster
from tools.record.scenario import until
from tools.record.scenarios.kafka_python import admin

_PATIENCE_S = 90.0

Record = tuple[int, bytes | None, bytes | None, Any]
"""Offset, key, value, headers."""


@dataclass(frozen=True)
class Found:
    """
    Contents under names with a common prefix.

    Attributes:
        records: Topic and partition -> all records in order.
        committed: The same with isolation level `read_committed`.
        ends: Topic and partition -> first and next offset.
        offsets: Group, topic and partition -> committed offset and its metadata.
        groups: Group -> state, type, members and their assignments.
    """

    records: dict[tuple[str, int], list[Record]]
    committed: dict[tuple[str, int], list[Record]]
    ends: dict[tuple[str, int], tuple[int, int]]
    offsets: dict[tuple[str, str, int], tuple[int, str | None]]
    groups: dict[str, tuple[Any, ...]]


def found(cluster: Cluster, beginning: str, at_rest: bool = False) -> Found:
    """
    Return all topics and groups of a cluster with this prefix.

    Args:
        cluster: The cluster.
        beginning: Of the names.
        at_rest: Wait until incomplete members have expired, and offsets of deleted topics are
            deleted too.
    """
    if not at_rest:
        return _found(cluster, beginning)

    def attempt() -> Found | None:
        now = _found(cluster, beginning)
        rebalances = any(state.endswith("_REBALANCING") for state, *_ in now.groups.values())
        topics = {topic for topic, _ in now.ends}
        return None if rebalances or any(at[1] not in topics for at in now.offsets) else now

    return until("what comes to rest by itself", attempt)


def _found(cluster: Cluster, beginning: str) -> Found:
    settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap(), "log_level": 0}
    admin = AdminClient(settings)
    topics = admin.list_topics(timeout=_PATIENCE_S).topics.items()
    places = [
        TopicPartition(name, partition, OFFSET_BEGINNING)
        for name, topic in sorted(topics)
        if name.startswith(beginning)
        for partition in sorted(topic.partitions)
    ]
    groups = sorted(
        each.group_id
        for each in admin.list_consumer_groups().result(_PATIENCE_S).valid
        if each.group_id.startswith(beginning)
    )
    reader = Consumer({**settings, "group.id": "nobody"})
    ends = {
        (at.topic, at.partition): reader.get_watermark_offsets(at, _PATIENCE_S) for at in places
    }
    reader.close()
    with ThreadPoolExecutor() as pool:
        read = partial(records, cluster.bootstrap(), places)
        uncommitted, committed = pool.map(read, ("read_uncommitted", "read_committed"))
    return Found(
        uncommitted,
        committed,
        ends,
        _offsets(cluster, groups),
        _groups(admin, groups),
    )


def records(
    bootstrap: str, places: list[TopicPartition], isolation: str
) -> dict[tuple[str, int], list[Record]]:
    """
    Read partitions to their ends.

    Args:
        bootstrap: Where.
        places: The partitions, and from where on.
        isolation: `read_committed`, or `read_uncommitted`.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "group.id": "nobody",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # otherwise each end offset takes half a second
        "isolation.level": isolation,
    }
    out: dict[tuple[str, int], list[Record]] = {(at.topic, at.partition): [] for at in places}
    waiting = set(out)
    reader = Consumer(settings)
    reader.assign(places)
    while waiting:
        message = reader.poll(_PATIENCE_S)
        assert message is not None, f"no end of {waiting}"
        at = message.topic(), message.partition()
        error = message.error()
        if error is None:
            out[at].append((message.offset(), message.key(), message.value(), message.headers()))
            continue
        assert error.code() == KafkaError._PARTITION_EOF, error
        waiting.discard(at)
    reader.close()
    return out


def _offsets(
    cluster: Cluster, groups: list[str]
) -> dict[tuple[str, str, int], tuple[int, str | None]]:
    # Not by confluent-kafka, which reads metadata up to a zero byte that may be missing.
    if not groups:
        return {}
    with admin(cluster.bootstrap()) as client:
        offsets_of_groups = client.list_group_offsets(dict.fromkeys(groups))
    return {
        (group, at.topic, at.partition): (committed.offset, committed.metadata or None)
        for group, offsets in offsets_of_groups.items()
        for at, committed in offsets.items()
    }


def _groups(admin: AdminClient, groups: list[str]) -> dict[str, tuple[Any, ...]]:
    if not groups:
        return {}
    out = {}
    for group, pending in admin.describe_consumer_groups(groups).items():
        description = pending.result(_PATIENCE_S)
        members = sorted(
            (
                each.group_instance_id or "",
                sorted((at.topic, at.partition) for at in each.assignment.topic_partitions),
            )
            for each in description.members
        )
        out[group] = (
            description.state.name,
            description.type.name,
            description.partition_assignor,
            members,
        )
    return out
