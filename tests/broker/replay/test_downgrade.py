"""Captures of Kafka 4 replay without difference at 3.9, in versions of 3.9."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay import Plan, replay
from replay.order.exclusion_policy import EXCLUDED_APIS, Exclusion
from replay.report.report import Report
from replay.sessions.transaction_compat import ADDED
from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.found import found
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = ("kafka4-java-clients", "kafka44-java-clients")
PREFIX = "downgraded-"


def played(cluster: Cluster, name: str) -> Report:
    with Plan.of(
        CAPTURES / f"{name}.pcap", allow=EXCLUDED_APIS[Exclusion.CHANGING].split()
    ) as plan:
        return replay(
            plan, cluster.bootstrap(), prefix=PREFIX, create_topics=True, noise=OF_THE_RELEASE
        )


@pytest.mark.parametrize("name", NAMES)
def test_transactions_with_implicit_additions(kafka: StartCluster, name: str) -> None:
    """TxnOffsetCommit v6 of Kafka 4.4 has topic ids, 3.9 has topic names."""
    newer, older = kafka(Shape("4.x")), kafka(Shape("3.9.x"))
    as_captured, downgraded = played(newer, name), played(older, name)
    for report in (as_captured, downgraded):
        assert report.passed, str(report)
        assert not report.refusals
    rule = ("transactional_id", ADDED)
    assert rule in downgraded.changes
    assert rule not in as_captured.changes
    there = found(newer, f"{PREFIX}{name}")
    assert there == found(older, f"{PREFIX}{name}")
    assert there.committed != there.records
