"""
Partition counts of the topics that a pass created or extended, against those of the target.

A count is expected only of topics whose last change was acknowledged. Source: CreateTopicsRequest
and CreatePartitionsRequest of Kafka 4.0; KIP-195.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from construct import Container

from cluster.client.cluster import Cluster
from replay.final.asking import ask_until
from replay.final.findings import Findings
from replay.mapping.id_map import IdMap

_APIS = frozenset({"CreateTopics", "CreatePartitions"})


class Wanted(NamedTuple):
    """The partition count that a step gave a topic, and the path of that field in its request."""

    partitions: int
    field: str
    step: int


class TopicChanges:
    """
    The topics of the target that a pass created, extended or deleted.

    Attributes:
        counts: Topic -> its partition count.
        deleted: The topics that the pass deleted, and did not create again.
    """

    def __init__(self) -> None:
        self.counts: dict[str, Wanted] = {}
        self.deleted: set[str] = set()

    def record_request(self, api: str, body: Container) -> None:
        """Record a request that is about to be sent: until its response nothing is expected."""
        for topic in body.topics if api in _APIS and not body.get("validate_only") else ():
            self.counts.pop(topic.name, None)

    def record_deletion(self, topic: str) -> None:
        """Record that a topic is about to be deleted."""
        self.deleted.add(topic)
        self.counts.pop(topic, None)

    def record_response(self, api: str, step: int, body: Container, response: Container) -> None:
        """Record the response to a request."""
        if api not in _APIS or body.get("validate_only"):
            return
        answers = response.topics if api == "CreateTopics" else response.results
        accepted = {each.name for each in answers if not each.error_code}
        for topic in body.topics:
            field = "num_partitions" if api == "CreateTopics" else "count"
            count = len(topic.assignments or ()) if api == "CreateTopics" else 0
            count = count or topic[field]
            if topic.name in accepted and api == "CreateTopics":
                self.deleted.discard(topic.name)
            if topic.name in accepted and count > 0:
                self.counts[topic.name] = Wanted(count, field, step)


async def check_topics(
    counts: Mapping[str, Wanted], ids: IdMap, cluster: Cluster, findings: Findings
) -> None:
    """Compare partition counts with those in Metadata; wait until all brokers may know them."""
    wanted = {
        name: each
        for name, each in counts.items()
        if ("topic", ids.names.captured_topic(name)) not in ids.foreign
    }
    if not wanted:
        return

    async def differing() -> dict[str, int]:
        await cluster.refresh(wanted.keys())
        return dict(_differing(wanted, cluster))

    # A broker may know new partitions a little later than the controller.
    for name, count in (await ask_until(cluster, differing, lambda found: not found)).items():
        topic, each = ids.names.captured_topic(name), wanted[name]
        path = f"topics[{topic}].{each.field}"
        findings.add(each.step, path, str(each.partitions), f"{count} at the end (Metadata)")


def _differing(wanted: Mapping[str, Wanted], cluster: Cluster) -> Iterator[tuple[str, int]]:
    for name, each in wanted.items():
        known = cluster.topics.get(name)
        count = len(known.leaders) if known else 0
        if count != each.partitions:
            yield name, count
