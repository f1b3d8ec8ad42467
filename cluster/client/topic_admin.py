"""Topics of the target: creates missing ones, lists offsets and fetches records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from construct import Container

from cluster.client.broker_metadata import NO_ID
from cluster.client.cluster import Cluster
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code, error_name

_EXISTS = frozenset({error_code("TOPIC_ALREADY_EXISTS")})

_TopicPartition = tuple[str, int]
"""Topic of the target, and partition."""

_NO_LEADER = "the target has no such topic, or the partition has no leader"

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels of Fetch (KIP-98)."""

LATEST, EARLIEST = -1, -2
"""Special timestamps of ListOffsets (KIP-79)."""


_FETCH_BYTES = 1 << 20

Replicas = Sequence[Sequence[int]]
"""For each partition of a topic the node ids of its replicas, the preferred leader first."""

_ANYWHERE: Mapping[str, Replicas] = {}

_MAX_CREATED = 100_000
"""Partitions of a created topic; a damaged capture may name any partition."""


async def create_topics(
    cluster: Cluster, topics: Mapping[str, int], replicas: Mapping[str, Replicas] = _ANYWHERE
) -> list[str]:
    """
    Create the topics that do not exist, and wait until all their partitions have leaders.

    Args:
        cluster: The target.
        topics: Topic -> number of partitions.
        replicas: Topic -> where its replicas are to be, as far as the target lets clients choose.

    Returns:
        The names of the created topics.

    Raises:
        ReplayError: The target refuses, or a topic would have too many partitions.
    """
    missing = {name: count for name, count in topics.items() if name not in cluster.topics}
    if not missing:
        return []
    for name, count in missing.items():
        if count > _MAX_CREATED:
            reason = f"topic {name!r} is not created: the capture names its partition {count - 1}"
            raise ReplayError(cluster.addresses, reason, "create the topic, or leave it out")
    placed = {name: replicas[name] for name in missing if name in replicas}
    await _create(cluster, missing, placed)
    async for _ in cluster.attempts(
        f"created {', '.join(missing)} but their partitions have no leaders"
    ):
        await cluster.refresh(missing)
        if all(len(cluster.led_partitions(n)) >= count for n, count in missing.items()):
            break
    return list(missing)


async def _create(
    cluster: Cluster, wanted: Mapping[str, int], placed: Mapping[str, Replicas]
) -> None:
    async for _ in cluster.attempts("found no controller to create topics"):
        # Before v4 the replication factor is mandatory (KIP-464).
        high = cluster.versions.get(KEYS["CreateTopics"], (0, 0))[1]
        body = {
            "topics": [
                {
                    "name": name,
                    "num_partitions": -1 if name in placed else count,
                    "replication_factor": -1 if high >= 4 or name in placed else 1,
                    "assignments": [
                        {"partition_index": partition, "broker_ids": list(nodes)}
                        for partition, nodes in enumerate(placed.get(name, ()))
                    ],
                    "configs": [],
                }
                for name, count in wanted.items()
            ],
            "timeout_ms": int(cluster.timeout_s * 1000),
        }
        node = cluster.controller if cluster.controller in cluster.brokers else None
        response = await cluster.request(node, "CreateTopics", body)
        errors = {topic.name: topic for topic in response.topics if topic.error_code}
        if any(topic.error_code == error_code("NOT_CONTROLLER") for topic in errors.values()):
            await cluster.refresh(())
            continue
        if placed and not _EXISTS.issuperset(topic.error_code for topic in errors.values()):
            placed = {}  # the target places replicas itself
            continue
        for name, topic in errors.items():
            if topic.error_code not in _EXISTS:
                reason = topic.get("error_message") or error_name(topic.error_code)
                raise ReplayError(cluster.addresses, f"topic {name!r} cannot be created: {reason}")
        return


async def offsets(
    cluster: Cluster, partitions: Iterable[_TopicPartition], when_ms: int
) -> dict[_TopicPartition, int]:
    """
    Request the offset of the first record at or after a time, or at `LATEST` or `EARLIEST`.

    Returns:
        Topic and partition -> offset; partitions without an offset are missing.

    Raises:
        ReplayError: A leader does not respond.
    """
    found: dict[_TopicPartition, int] = {}
    for node, topic_partitions in _by_leader(cluster, partitions).items():
        offsets_of_leader = await _list_from_leader(cluster, node, topic_partitions, when_ms)
        found |= {
            topic_partition: each
            for topic_partition, each in offsets_of_leader.items()
            if isinstance(each, int)
        }
    return found


async def end_offsets(
    cluster: Cluster,
    partitions: Collection[_TopicPartition],
    when_ms: int = LATEST,
    *,
    with_epochs: bool = False,
) -> dict[_TopicPartition, int | str]:
    """
    Return the end of each log, with `EARLIEST` its start, or why the target has none.

    Args:
        cluster: The target.
        partitions: The logs.
        when_ms: `LATEST` or `EARLIEST`.
        with_epochs: Whether a leader that does not have the leader epoch of the metadata is to
            refuse (KIP-320).
    """
    found: dict[_TopicPartition, int | str] = dict.fromkeys(partitions, _NO_LEADER)
    for node, partitions_of_leader in _by_leader(cluster, partitions).items():
        try:
            found |= dict.fromkeys(
                partitions_of_leader, "ListOffsets: no response for the partition"
            )
            arguments = node, partitions_of_leader, when_ms, with_epochs
            found |= await _list_from_leader(cluster, *arguments)
        except ReplayError as error:
            found |= dict.fromkeys(partitions_of_leader, f"ListOffsets: {error}")
    return found


def _by_leader(
    cluster: Cluster, partitions: Iterable[_TopicPartition]
) -> dict[int, list[_TopicPartition]]:
    by_node: dict[int, list[_TopicPartition]] = {}
    for topic_partition in partitions:
        leader = cluster.leader(*topic_partition)
        if leader is not None:
            by_node.setdefault(leader.node, []).append(topic_partition)
    return by_node


async def _list_from_leader(
    cluster: Cluster,
    node: int,
    topic_partitions: Iterable[_TopicPartition],
    when_ms: int,
    with_epochs: bool = False,
) -> dict[_TopicPartition, int | str]:
    """Request offsets from one leader; return each, or its error."""
    topics: dict[str, list[dict[str, int]]] = {}
    for topic, partition in topic_partitions:
        leader = cluster.leader(topic, partition) if with_epochs else None
        epoch = -1 if leader is None else leader.epoch
        asked = {"partition_index": partition, "current_leader_epoch": epoch, "timestamp": when_ms}
        topics.setdefault(topic, []).append(asked)
    response = await cluster.request(node, "ListOffsets", _offsets_body(topics))
    found: dict[_TopicPartition, int | str] = {}
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code:
                found[topic.name, each.partition_index] = (
                    f"ListOffsets: {error_name(each.error_code)}"
                )
            elif each.get("offset", -1) >= 0:
                found[topic.name, each.partition_index] = each.offset
    return found


async def fetch_records(cluster: Cluster, topic: str, partition: int, offset: int) -> bytes:
    """
    Fetch records from an offset on, including those of open transactions; maybe none.

    Raises:
        ReplayError: There is no leader, no response, or an error.
    """
    answer = await fetch_partition(cluster, topic, partition, offset)
    if answer.error_code:
        raise ReplayError(cluster.addresses, f"Fetch: {error_name(answer.error_code)}")
    return answer.records or b""


async def fetch_partition(
    cluster: Cluster,
    topic: str,
    partition: int,
    offset: int,
    isolation_level: int = READ_UNCOMMITTED,
) -> Container:
    """
    Return the partition in the response to a Fetch from an offset on; it may have an error.

    Raises:
        ReplayError: There is no leader, no response, or an error of the whole response.
    """
    leader = cluster.leader(topic, partition)
    if leader is None:
        raise ReplayError(cluster.addresses, _NO_LEADER)
    response = await cluster.request(
        leader.node, "Fetch", _fetch_body(cluster, topic, partition, offset, isolation_level)
    )
    partition_response = next(
        (each for topic in response.responses for each in topic.partitions), None
    )
    if partition_response is None:
        error = response.get("error_code")
        why = error_name(error) if error else "no response for the partition"
        raise ReplayError(cluster.addresses, f"Fetch: {why}")
    return partition_response


def _fetch_body(
    cluster: Cluster, topic: str, partition: int, offset: int, isolation_level: int
) -> dict[str, Any]:
    partition_request = {
        "partition": partition,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": _FETCH_BYTES,
        "replica_directory_id": NO_ID,
        "high_watermark": (1 << 63) - 1,
    }
    topic_id = cluster.topic_id(topic) or NO_ID
    return {
        "cluster_id": None,
        "replica_state": {"replica_id": -1, "replica_epoch": -1},
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": _FETCH_BYTES,
        "isolation_level": isolation_level,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic_id": topic_id, "topic": topic, "partitions": [partition_request]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def _offsets_body(topics: Mapping[str, list[dict[str, int]]]) -> dict[str, Any]:
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [{"name": name, "partitions": asked} for name, asked in topics.items()],
        "timeout_ms": 0,
    }
