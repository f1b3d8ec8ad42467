"""Captures that begin midway or have gaps, replayed at real brokers, with few differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tests.replay.incomplete_captures import Damage, damaged, played

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

ROOT = Path(__file__).parents[3]
REVIEWED = ROOT.parent / "shared" / "repro"

MOST = 0.01
"""The part of the answers that may differ."""

DAMAGES = [Damage(cut=30), *(Damage(lost=1, seed=seed) for seed in range(2))]


@pytest.mark.parametrize("name", ["aio-4", "auto-4"])
@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_few_responses_differ(
    kafka: StartCluster, tmp_path: Path, name: str, damage: Damage
) -> None:
    capture = REVIEWED / f"{name}.pcap.gz"
    if not capture.exists():
        pytest.skip(f"{capture.name} is not there")
    cluster = kafka(Shape("4.x"))
    path = damaged(capture, damage, tmp_path)
    found = played(path, cluster.bootstrap(), f"{path.stem}-")
    assert found.share < MOST, str(found.report)


SMALL = (
    "kafka39-kafka-go",
    "kafka39-librdkafka-group",
    "kafka4-aiokafka-group",
    "kafka4-aiokafka-transactions",
    "kafka4-java-clients",
    "kafka4-librdkafka-assigned",
    "kafka4-librdkafka-codecs",
    "kafka4-librdkafka-group",
    "kafka4-librdkafka-group-848",
    "kafka4-librdkafka-group-cooperative",
)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_no_response_of_a_small_capture_differs(
    kafka: StartCluster, tmp_path: Path, name: str, damage: Damage
) -> None:
    cluster = kafka(Shape("4.x"))
    path = damaged(ROOT / "captures" / f"{name}.pcap", damage, tmp_path)
    found = played(path, cluster.bootstrap(), f"{path.stem}-")
    assert not found.differ, str(found.report)
