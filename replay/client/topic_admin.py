"""Topics of the target: made where they lack, and where their partitions begin and end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code, error_name
from replay.client.broker_metadata import NO_ID
from replay.client.cluster import Cluster

_TopicPartition = tuple[str, int]
"""Topic of the target and number of a partition."""

_NO_LEADER = "the target has no such topic, or no leader of the partition"

LATEST, EARLIEST = -1, -2
"""Times that ListOffsets has a meaning of their own for (KIP-79)."""


_FETCH_BYTES = 1 << 20


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
        answer = await cluster.request(node, "CreateTopics", body)
        errors = {topic.name: topic for topic in answer.topics if topic.error_code}
        if any(topic.error_code == error_code("NOT_CONTROLLER") for topic in errors.values()):
            await cluster.refresh(())
            continue
        for name, topic in errors.items():
            if topic.error_code != error_code("TOPIC_ALREADY_EXISTS"):
                why = topic.get("error_message") or error_name(topic.error_code)
                raise ReplayError(cluster.addresses, f"topic {name!r} can not be created: {why}")
        return


async def offsets(
    cluster: Cluster, partitions: Iterable[_TopicPartition], when_ms: int
) -> dict[_TopicPartition, int]:
    """
    Ask for offsets: of the first record that is not older, or `LATEST`, or `EARLIEST`.

    Returns:
        By topic and partition; those that there is no answer for are missing.

    Raises:
        ReplayError: A leader does not answer.
    """
    found: dict[_TopicPartition, int] = {}
    for node, places in _by_leader(cluster, partitions).items():
        answers = await _list_from_leader(cluster, node, places, when_ms)
        found |= {place: each for place, each in answers.items() if isinstance(each, int)}
    return found


async def end_offsets(
    cluster: Cluster, partitions: Collection[_TopicPartition]
) -> dict[_TopicPartition, int | str]:
    """Return behind which offset each log ends, or why the target does not say."""
    found: dict[_TopicPartition, int | str] = dict.fromkeys(partitions, _NO_LEADER)
    for node, places in _by_leader(cluster, partitions).items():
        try:
            found |= dict.fromkeys(places, "ListOffsets: no answer about the partition")
            found |= await _list_from_leader(cluster, node, places, LATEST)
        except ReplayError as error:
            found |= dict.fromkeys(places, f"ListOffsets: {error}")
    return found


def _by_leader(
    cluster: Cluster, partitions: Iterable[_TopicPartition]
) -> dict[int, list[_TopicPartition]]:
    by_node: dict[int, list[_TopicPartition]] = {}
    for place in partitions:
        leader = cluster.leader(*place)
        if leader is not None:
            by_node.setdefault(leader.node, []).append(place)
    return by_node


async def _list_from_leader(
    cluster: Cluster, node: int, places: Iterable[_TopicPartition], when_ms: int
) -> dict[_TopicPartition, int | str]:
    """Ask one leader for offsets; return each, or its error."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    answer = await cluster.request(node, "ListOffsets", _offsets_body(topics, when_ms))
    found: dict[_TopicPartition, int | str] = {}
    for topic in answer.topics:
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
    Fetch records from an offset on, maybe none; what transactions have not committed too.

    Raises:
        ReplayError: There is no leader, it does not answer, or it answers with an error.
    """
    leader = cluster.leader(topic, partition)
    if leader is None:
        raise ReplayError(cluster.addresses, _NO_LEADER)
    answer = await cluster.request(
        leader.node, "Fetch", _fetch_body(cluster, topic, partition, offset)
    )
    found = next((each for topic in answer.responses for each in topic.partitions), None)
    code = answer.get("error_code") if found is None else found.error_code
    if code:
        raise ReplayError(cluster.addresses, f"Fetch: {error_name(code)}")
    if found is None:
        raise ReplayError(cluster.addresses, "Fetch: no answer about the partition")
    return found.records or b""


def _fetch_body(cluster: Cluster, topic: str, partition: int, offset: int) -> dict[str, Any]:
    wanted = {
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
