"""
Replicas of partitions: clusters differ in which brokers have them, not in that some do.

A partition with a leader has replicas, and the leader is one of them and in sync with itself.
Source: Kafka, PartitionRegistration.java; KIP-966 lets only a partition without a leader have no
replica in sync.
"""

from __future__ import annotations

from collections.abc import Iterator

from construct import Container

from cluster.fields.field_layout import Scope
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference

DESCRIBING_APIS = frozenset({"Metadata", "DescribeTopicPartitions"})


def replica_faults(captured: Container, live: Container, ids: IdMap) -> Iterator[Difference]:
    """
    Yield the partitions with a leader that have no replicas, or none in sync.

    Args:
        captured: The captured response, of one of `DESCRIBING_APIS`.
        live: The response of the target.
        ids: The id mapping.
    """
    known = dict(_partitions(captured, ids, is_live=False))
    for place, each in _partitions(live, ids, is_live=True):
        if place in known:
            path = f"topics[{place[0]}].partitions[{place[1]}]"
            yield from _faults(path, known[place], each)


def _faults(path: str, captured: Container, live: Container) -> Iterator[Difference]:
    replicas = live.replica_nodes
    for name in ("replica_nodes", "isr_nodes"):
        if captured[name] and not live[name]:
            yield Difference(f"{path}.{name}", _count(captured[name]), "none")
        elif len(set(live[name])) < len(live[name]):
            yield Difference(f"{path}.{name}", "each broker once", "a broker twice")
    if replicas and live.leader_id not in replicas:
        yield Difference(f"{path}.leader_id", "one of the replicas", "none of the replicas")
    if replicas and not set(live.isr_nodes) <= set(replicas):
        yield Difference(f"{path}.isr_nodes", "replicas", "brokers without a replica")


def _count(nodes: list[int]) -> str:
    return f"{len(nodes)} broker{'s' * (len(nodes) != 1)}"


def _partitions(
    body: Container, ids: IdMap, *, is_live: bool
) -> Iterator[tuple[tuple[str, int], Container]]:
    """Yield the partitions with a leader, by captured topic."""
    for topic in body.topics:
        scope = Scope(topic=topic.name, topic_id=topic.get("topic_id"))
        title = ids.topic_of(ids.captured_scope(scope) if is_live else scope)
        if title is None or topic.error_code:
            continue
        for each in topic.partitions:
            if not each.error_code and each.leader_id >= 0:
                yield (title, each.partition_index), each
