"""Captures that once ended a replay with a bug: begun midway in old versions, and damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from replay import Plan, replay
from tests.replay.incomplete_captures import Damage, damaged
from tests.replay.support.replay_captures import SHIPPED


def begun_midway(folder: Path) -> Path:
    """Requests before v3 lack fields that state of earlier requests is looked up by."""
    return damaged(SHIPPED / "kafka39-kafka-python-as-0.10.0.pcap", Damage(cut=8), folder)


def spoiled(folder: Path) -> Path:
    """Some bytes of lengths, names and counts are others."""
    data = bytearray((SHIPPED / "kafka4-librdkafka-group-848.pcap").read_bytes())
    order = random.Random(70)
    for _ in range(20):
        data[order.randrange(2_000, len(data))] = order.randrange(256)
    path = folder / "spoiled.pcap"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("capture", [begun_midway, pytest.param(spoiled, marks=pytest.mark.long)])
def test_a_replay_ends_with_a_report(capture: Callable[[Path], Path], tmp_path: Path) -> None:
    with Plan.of(capture(tmp_path)) as plan:
        report = replay(plan, "mock", timeout_s=0.2)
    assert report.sent
    assert not report.ended
