"""Captures that once ended a replay with a bug; they are stored beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay import Plan, replay

FOLDER = Path(__file__).parents[3] / "shared/repro/hostile"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the captures are not here")


@pytest.mark.parametrize(
    "name", ["replay-midway-produce-v2", "replay-status70-1524", "replay-status70-capture_gaps"]
)
def test_a_replay_ends_with_a_report(name: str) -> None:
    with Plan.of(FOLDER / f"{name}.pcap") as plan:
        report = replay(plan, "mock", timeout_s=0.2)
    assert report.sent
    assert not report.ended
