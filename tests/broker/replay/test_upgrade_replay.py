"""Captures of Kafka 3.9 replayed at 4.x differ only in changes of the release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replay import Pace, Plan, replay
from replay.order.exclusion_policy import EXCLUDED_APIS, Exclusion
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.found import found
from tests.broker.replay.support.recording import fresh, record
from tests.broker.replay.support.releases import beside_releases
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

AS_CAPTURED = Pace(speed=1)
"""Where a log ends is asked for; how far markers of transactions are by then only time decides."""

SCENARIOS: dict[str, set[str]] = {
    "kafka39-librdkafka-group": set(),
    "kafka39-librdkafka-transactions": set(),
    "kafka39-librdkafka-fenced": set(),
    "kafka39-kafka-python-as-0.8.2": set(),
    "kafka39-kafka-python-as-0.10.0": set(),
    "kafka39-kafka-python-as-0.11": {"AlterConfigs.responses[*].error_code"},
    "kafka39-kafka-python-as-3.9": {"DescribeGroups.groups[*].authorized_operations"},
}
"""
Scenario -> what differs beside that. In 0.11 all settings of a topic are sent back as they were
described, and the removed ones are refused. 4.x also returns who may describe and alter the
configurations that KIP-848 gave to groups (KAFKA-14510, KAFKA-14511).
"""

REMOVED = {
    "kafka39-kafka-python-as-0.8.2": {("Produce", 0, 3), ("ListOffsets", 0, 1), ("Fetch", 0, 4)},
    "kafka39-kafka-python-as-0.10.0": {("Produce", 2, 3), ("ListOffsets", 0, 1), ("Fetch", 2, 4)},
    "kafka39-kafka-python-as-0.11": {
        ("DescribeConfigs", 0, 1),
        ("CreateAcls", 0, 1),
        ("DescribeAcls", 0, 1),
        ("DeleteAcls", 0, 1),
    },
}
"""
Scenario -> API, captured version, version sent: those that KIP-896 removed. Produce v0 to v2 are
still offered, but not taken (KAFKA-18659): message sets are written as record batches (KIP-724).
"""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    """An old cluster and a new one, without topics."""
    with fresh(Shape("3.9.x")) as old, fresh(Shape("4.x")) as new:
        yield old, new


@pytest.mark.parametrize("name", SCENARIOS)
def test_only_changes_of_the_release_differ(
    clusters: tuple[Cluster, Cluster], tmp_path: Path, name: str
) -> None:
    source, target = clusters
    capture, before = record(source, name, tmp_path), found(source, name)
    with Plan.of(capture, allow=EXCLUDED_APIS[Exclusion.CHANGING].split()) as plan:
        report = replay(plan, target.bootstrap(), pace=AS_CAPTURED)
    assert not report.ended
    assert not report.failures
    assert not report.refusals
    assert beside_releases(report) == SCENARIOS[name], str(report)
    removed = REMOVED.get(name, set())
    assert set(report.versions) == removed
    reencoded = ("records", "re-encoded") in report.changes
    assert reencoded == any(api == "Produce" for api, *_ in removed)
    assert found(target, name) == before
