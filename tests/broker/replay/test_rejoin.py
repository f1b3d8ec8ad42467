"""A group formed at once in the capture, and in steps at the target, has the same result."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay import Pace, Plan, replay
from tests.broker.replay.support.found import found
from tests.broker.replay.support.recording import fresh, record
from tests.broker.server_properties import Shape
from tools.record.scenario import Stage, until
from tools.record.scenarios.librdkafka_groups import assigned, consumer, fill

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

NAME = "rejoin"
THREE = ("num.partitions", "3")
TOGETHER = ("group.initial.rebalance.delay.ms", "6000")
"""The first generation waits so long for more members; else the clusters of tests wait for none."""


def three_join_one_generation(stage: Stage) -> None:
    fill(stage)
    members = [consumer(stage, stage.topic("group"), client_id=f"member-{n}") for n in range(3)]
    for member in members:
        member.subscribe([stage.topic()])
        member.poll(0.4)  # delay before the next member
    until("assignments", assigned(*members))
    for member in members:
        member.close()


def test_members_arriving_one_by_one_rejoin(tmp_path: Path) -> None:
    with fresh(Shape("4.x", properties=(THREE, TOGETHER))) as cluster:
        capture = record(cluster, NAME, tmp_path, three_join_one_generation)
        before = found(cluster, NAME)
    with fresh(Shape("4.x", properties=(THREE,))) as cluster:
        with Plan.of(capture) as plan:
            assert set(plan.groups.generation_sizes.values()) == {3}
            report = replay(plan, cluster.bootstrap(), pace=Pace(1))
        assert report.passed, str(report)
        assert ("generation", "") in report.changes
        assert found(cluster, NAME) == before
