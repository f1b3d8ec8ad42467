"""Topics of the target: made where they lack, and where their partitions begin and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code, error_name
from replay.cluster import Cluster
from replay.topology import NO_ID

LATEST, EARLIEST = -1, -2
"""Times that ListOffsets has a meaning of their own for (KIP-79)."""


_FETCHED_BYTES = 1 << 20


async def create_topics(cluster: Cluster, topics: Mapping[str, int]) -> list[str]:
    """
    Create the topics that are not there, and wait until they can be used.

    Args:
        cluster: The target.
        topics: The partitions of each.

    Returns:
        The names of those that were created.

    Raises:
        ReplayError: The target refuses.
    """
    wanted = {name: count for name, count in topics.items() if name not in cluster.topics}
    if not wanted:
        return []
    await _create(cluster, wanted)
    async for _ in cluster.attempts(f"created {', '.join(wanted)} but shows no leaders of them"):
        await cluster.refresh(wanted)
        leaders = (cluster.leader(n, p) for n, count in wanted.items() for p in range(count))
        if None not in leaders:
            break
    return list(wanted)


async def _create(cluster: Cluster, wanted: Mapping[str, int]) -> None:
    async for _ in cluster.attempts("found no controller to create topics"):
        # Before v4 a number of replicas had to be given (KIP-464).
        high = cluster.versions.get(KEYS["CreateTopics"], (0, 0))[1]
        body = {
            "topics": [
                {
                    "name": name,
                    "num_partitions": count,
                    "replication_factor": -1 if high >= 4 else 1,
                    "assignments": [],
                    "configs": [],
                }
                for name, count in wanted.items()
            ],
            "timeout_ms": int(cluster.timeout_s * 1000),
        }
        node = cluster.controller if cluster.controller in cluster.brokers else None
        answer = await cluster.ask(node, "CreateTopics", body)
        errors = {topic.name: topic for topic in answer.topics if topic.error_code}
        if any(topic.error_code == error_code("NOT_CONTROLLER") for topic in errors.values()):
            await cluster.refresh(())
            continue
        for name, topic in errors.items():
            if topic.error_code != error_code("TOPIC_ALREADY_EXISTS"):
                why = topic.get("error_message") or error_name(topic.error_code)
                raise ReplayError(cluster.shown, f"topic {name!r} can not be created: {why}")
        return


async def offsets(
    cluster: Cluster, partitions: Iterable[tuple[str, int]], when_ms: int
) -> dict[tuple[str, int], int]:
    """
    Ask for offsets: of the first record that is not older, or `LATEST`, or `EARLIEST`.

    Returns:
        By topic and partition; those that there is no answer for are missing.

    Raises:
        ReplayError: A leader does not answer.
    """
    by_node: dict[int, dict[str, list[int]]] = {}
    for topic, partition in partitions:
        leader = cluster.leader(topic, partition)
        if leader is not None:
            by_node.setdefault(leader.node, {}).setdefault(topic, []).append(partition)
    found: dict[tuple[str, int], int] = {}
    for node, topics in by_node.items():
        answer = await cluster.ask(node, "ListOffsets", _offsets_body(topics, when_ms))
        for topic in answer.topics:
            for each in topic.partitions:
                if not each.error_code and each.get("offset", -1) >= 0:
                    found[topic.name, each.partition_index] = each.offset
    return found


async def fetch(cluster: Cluster, topic: str, partition: int, offset: int) -> bytes | None:
    """
    Fetch records from an offset on; what transactions have not committed too.

    Returns:
        What there is, maybe nothing; None where the target gives none: an error, no leader.

    Raises:
        ReplayError: The leader does not answer.
    """
    leader = cluster.leader(topic, partition)
    if leader is None:
        return None
    answer = await cluster.ask(leader.node, "Fetch", _fetch_body(cluster, topic, partition, offset))
    for each in answer.responses:
        for found in each.partitions:
            return None if found.error_code else found.records or b""
    return None


def _fetch_body(cluster: Cluster, topic: str, partition: int, offset: int) -> dict[str, Any]:
    wanted = {
        "partition": partition,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": _FETCHED_BYTES,
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
        "max_bytes": _FETCHED_BYTES,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic_id": topic_id, "topic": topic, "partitions": [wanted]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def _offsets_body(topics: Mapping[str, list[int]], when_ms: int) -> dict[str, Any]:
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": each, "current_leader_epoch": -1, "timestamp": when_ms}
                    for each in partitions
                ],
            }
            for name, partitions in topics.items()
        ],
        "timeout_ms": 0,
    }
