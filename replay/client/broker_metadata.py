"""What the target told of itself: its brokers, its topics, and who leads what."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from construct import Container

NO_ID = UUID(int=0)
"""In the place of a topic id: there is none."""


class Broker(NamedTuple):
    """A broker as the target advertises it."""

    node: int
    host: str
    port: int


class Leader(NamedTuple):
    """Who leads a partition; node -1 for nobody, epoch -1 where it is not told."""

    node: int
    epoch: int


@dataclass(slots=True)
class Topic:
    """
    A topic of the target.

    Attributes:
        name: Its name.
        topic_id: Its id; None where the target has none.
        leaders: Of the partitions.
    """

    name: str
    topic_id: UUID | None
    leaders: dict[int, Leader] = field(default_factory=dict)


class Topology:
    """
    Brokers, topics and leaders, as Metadata answers told.

    Attributes:
        brokers: By node id.
        topics: By name: those that exist, as far as is known.
        controller: Node id; -1 where it is not told.
        cluster_id: The id of the cluster; None where it is not told.
        revision: Is another when any of these may be others.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.controller = -1
        self.cluster_id: str | None = None
        self.revision = 0
        self._names: dict[UUID, str] = {}

    @property
    def any_node(self) -> int:
        """A node for what any broker can answer: the lowest id, so that it is always the same."""
        return min(self.brokers)

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Return the leader of a partition, or None where it is not known or there is none."""
        found = self.topics.get(topic)
        leader = found.leaders.get(partition) if found else None
        return leader if leader is not None and leader.node in self.brokers else None

    def topic_id(self, name: str) -> UUID | None:
        """Return the id of a topic, or None."""
        found = self.topics.get(name)
        return found.topic_id if found else None

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id, or None."""
        return self._names.get(topic_id)

    def update(self, body: Container) -> None:
        """Take over what a Metadata answer of the target says; also one that was not ours."""
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
        known = Topic(topic.name, None if topic_id == NO_ID else topic_id)
        for each in topic.partitions:
            epoch = each.get("leader_epoch", -1)
            known.leaders[each.partition_index] = Leader(each.leader_id, epoch)
        self._forget(topic.name)
        self.topics[topic.name] = known
        if known.topic_id is not None:
            self._names[known.topic_id] = topic.name

    def forget(self, names: Collection[str] | None = None) -> None:
        """Forget some topics, or all."""
        self.revision += 1
        for name in list(self.topics) if names is None else names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        before = self.topics.pop(name, None)
        if before is not None and before.topic_id is not None:
            self._names.pop(before.topic_id, None)
