"""Metadata of the target: brokers, topics and partition leaders."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from construct import Container

NO_ID = UUID(int=0)
"""The zero UUID, which means no topic id."""


def metadata_request(names: Collection[str] | None) -> dict[str, Any]:
    """Return the body of a Metadata request for these topics, or for all; it creates none."""
    topics = (
        None if names is None else [{"topic_id": NO_ID, "name": each} for each in sorted(names)]
    )
    return {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }


class Broker(NamedTuple):
    """A broker as the target advertises it."""

    node: int
    host: str
    port: int


class Leader(NamedTuple):
    """The leader of a partition; node -1 without a leader, epoch -1 if unknown."""

    node: int
    epoch: int


@dataclass(slots=True)
class Topic:
    """
    A topic of the target.

    Attributes:
        name: The topic name.
        topic_id: The topic id; None if the target has no topic ids.
        leaders: Partition -> its leader.
    """

    name: str
    topic_id: UUID | None
    leaders: dict[int, Leader] = field(default_factory=dict)


class Topology:
    """
    Brokers, topics and leaders, from Metadata responses.

    Attributes:
        brokers: Node id -> broker.
        topics: Name -> topic, for the topics known to exist.
        controller: Node id of the controller; -1 if unknown.
        cluster_id: The cluster id; None if unknown.
        topic_names: Topic id -> name.
        revision: Changes whenever any of these may have changed.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.controller = -1
        self.cluster_id: str | None = None
        self.revision = 0
        self.topic_names: dict[UUID, str] = {}

    @property
    def any_node(self) -> int:
        """The node for requests that any broker can answer: the lowest id, so that it is stable."""
        return min(self.brokers)

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Return the leader of a partition; None if unknown or absent."""
        known_topic = self.topics.get(topic)
        leader = known_topic.leaders.get(partition) if known_topic else None
        return leader if leader is not None and leader.node in self.brokers else None

    def led_partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions that have a leader."""
        known_topic = self.topics.get(topic)
        numbers = sorted(known_topic.leaders) if known_topic else []
        return [each for each in numbers if self.leader(topic, each) is not None]

    def topic_id(self, name: str) -> UUID | None:
        """Return the id of a topic, or None."""
        known_topic = self.topics.get(name)
        return known_topic.topic_id if known_topic else None

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id, or None."""
        return self.topic_names.get(topic_id)

    def update(self, body: Container) -> None:
        """Merge a Metadata response of the target; it may answer a captured request too."""
        self.revision += 1
        brokers = {b.node_id: Broker(b.node_id, b.host, b.port) for b in body.brokers}
        if brokers:
            self.brokers = brokers
        controller = body.get("controller_id", -1)
        self.controller = controller if controller in self.brokers else -1
        self.cluster_id = body.get("cluster_id") or self.cluster_id
        for topic in body.topics:
            if topic.name is not None and not topic.error_code:
                self._update_topic(topic)

    def _update_topic(self, topic: Container) -> None:
        topic_id = topic.get("topic_id", NO_ID)
        updated = Topic(topic.name, None if topic_id == NO_ID else topic_id)
        for each in topic.partitions:
            epoch = each.get("leader_epoch", -1)
            updated.leaders[each.partition_index] = Leader(each.leader_id, epoch)
        self._forget(topic.name)
        self.topics[topic.name] = updated
        if updated.topic_id is not None:
            self.topic_names[updated.topic_id] = topic.name

    def forget(self, names: Collection[str] | None = None) -> None:
        """Drop cached topics: all by default."""
        self.revision += 1
        for name in list(self.topics) if names is None else names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        removed = self.topics.pop(name, None)
        if removed is not None and removed.topic_id is not None:
            self.topic_names.pop(removed.topic_id, None)
