"""
Topics that are deleted and created anew: another topic id under the same name.

Source: KIP-516 (topic ids; Metadata v10, CreateTopics v7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from timeline.events.event import Evidence
from timeline.events.observed_exchange import Mark, ObservedExchange
from timeline.events.states import Fresh, States

UNKNOWN_CLUSTER = "unknown"
"""Stands for the cluster id that Metadata before v2 lacks."""

MAX_TOPICS = 100_000
MAX_FORMER = 8
"""Maximum number of former ids of a topic; an answer that has one is stale."""


class Recreation(NamedTuple):
    """
    A topic with another id than before.

    Attributes:
        topic: Name of the topic.
        before: Its former id.
        after: Its id now.
        since_ns: The last time that the former id was seen.
        evidence: The exchange that showed it.
    """

    topic: str
    before: UUID
    after: UUID
    since_ns: int
    evidence: Evidence

    def __str__(self) -> str:
        return f"topic id {self.before} before, {self.after} now"


@dataclass(slots=True)
class TopicId:
    """
    The id of a topic.

    Attributes:
        current: The id; None if unknown.
        former: Its ids before.
        seen: The last exchange that showed it.
        is_announced: Whether its creation is reported, so that the next id is no news.
    """

    current: UUID | None = None
    former: list[UUID] = field(default_factory=list)
    seen: Mark | None = None
    is_announced: bool = False


class TopicIds:
    """Follows the ids of topics in each cluster."""

    def __init__(self) -> None:
        self._ids: States[tuple[str, str], TopicId] = States(Fresh(TopicId), MAX_TOPICS)
        self._clusters: States[str, str] = States(Fresh(str))

    def learn(self, observed: ObservedExchange) -> Iterator[Recreation]:
        """Process a Metadata exchange; yield the topics with a new id."""
        response = observed.response
        if response is None:
            return
        cluster = cluster_of(response)
        for each in response.brokers or ():
            self._clusters.put(f"{each['host']}:{each['port']}", cluster)
        self._clusters.put(observed.broker, cluster)
        for topic in response.topics or ():
            # Items, not attributes, which take ten times as long: answers have many topics.
            if not topic["error_code"] and topic["name"]:
                anew = self._learn((cluster, topic["name"]), topic, observed)
                if anew is not None:
                    yield anew

    def cluster_at(self, broker: str) -> str:
        """Return the cluster of a broker, as Metadata shows it; else the broker."""
        return self._clusters.get(broker, broker)

    def is_stale(self, response: Any, topic: Any) -> bool:
        """Return whether a Metadata response has a former id of one of its topics."""
        known = self._ids.get((cluster_of(response), topic["name"]))
        return known is not None and topic.get("topic_id") in known.former

    def create(self, observed: ObservedExchange, topic: Any) -> Recreation | None:
        """Process a topic in a CreateTopics response; return its former id if it had one."""
        key = self.cluster_at(observed.broker), topic.name
        found = self._learn(key, topic, observed)
        self._ids.use(key).is_announced = not topic.get("topic_id")
        return found

    def delete(self, observed: ObservedExchange, topic: str) -> None:
        """Process a deleted topic."""
        known = self._ids.get((self.cluster_at(observed.broker), topic))
        if known is not None and known.current is not None:
            known.former = [*known.former, known.current][-MAX_FORMER:]
            known.current = None

    def _learn(
        self, key: tuple[str, str], topic: Any, observed: ObservedExchange
    ) -> Recreation | None:
        topic_id: UUID | None = topic.get("topic_id")
        known, found = self._ids.use(key), None
        if not topic_id or topic_id in known.former:
            return None
        if topic_id != known.current:
            before = known.current or (known.former[-1] if known.former else None)
            if before is not None and known.seen is not None and not known.is_announced:
                seen = known.seen
                found = Recreation(key[1], before, topic_id, seen.end_ns, seen.evidence)
            if known.current is not None:
                known.former = [*known.former, known.current][-MAX_FORMER:]
            known.current, known.is_announced = topic_id, False
        known.seen = observed.mark
        return found


def cluster_of(response: Any) -> str:
    """Return the cluster id in a Metadata response."""
    return response.get("cluster_id") or UNKNOWN_CLUSTER
