from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import cast

from construct import Container

from cluster.client.broker_metadata import Leader, Topic, Topology
from cluster.client.cluster import Cluster
from replay.final.findings import Findings
from replay.final.topic_check import TopicChanges, check_topics
from replay.mapping.id_map import IdMap


class Target(Topology):
    """A target with one topic, whose partitions appear at the second look."""

    timeout_s = 0.0

    def __init__(self, partitions: int, looks: int = 1) -> None:
        super().__init__()
        self._partitions = partitions
        self._looks = looks

    async def refresh(self, names: Collection[str] | None = None) -> None:
        self._looks -= 1
        known = range(0 if self._looks > 0 else self._partitions)
        self.topics = {"made": Topic("made", None, {each: Leader(1, 0) for each in known})}


def _created(error: int = 0, **more: object) -> TopicChanges:
    topic = Container(name="made", num_partitions=3, assignments=[])
    request = Container(topics=[topic], **more)
    changes = TopicChanges()
    changes.record_request("CreateTopics", request)
    response = Container(topics=[Container(name="made", error_code=error)])
    changes.record_response("CreateTopics", 1, request, response)
    return changes


def _paths(changes: TopicChanges, target: Target) -> list[str]:
    findings = Findings()
    asyncio.run(check_topics(changes.counts, IdMap(), cast(Cluster, target), findings))
    return [each.difference.path for each in findings.differences]


def test_a_created_topic_has_its_partitions() -> None:
    assert not _paths(_created(), Target(3))
    assert _paths(_created(), Target(2)) == ["topics[made].num_partitions"]


def test_brokers_may_know_a_topic_later() -> None:
    target = Target(3, looks=2)
    target.timeout_s = 20.0
    assert not _paths(_created(), target)


def test_an_extended_topic_has_its_new_partitions() -> None:
    changes = _created()
    request = Container(topics=[Container(name="made", count=5)])
    changes.record_request("CreatePartitions", request)
    assert not _paths(changes, Target(3))
    response = Container(results=[Container(name="made", error_code=0)])
    changes.record_response("CreatePartitions", 2, request, response)
    assert _paths(changes, Target(3)) == ["topics[made].count"]


def test_nothing_is_expected_of_topics_refused_only_checked_or_deleted() -> None:
    assert not _created(error=36).counts
    assert not _created(validate_only=True).counts
    changes = _created()
    changes.record_deletion("made")
    assert not changes.counts
