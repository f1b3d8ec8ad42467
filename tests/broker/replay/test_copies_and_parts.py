"""Concurrent copies of a capture, and parts of one, replayed at a real broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from replay import Pace, Plan, Report, merge_reports, replay, replay_async
from replay.report.report import write_report
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = ("demo.pcap", "kafka4-aiokafka-transactions.pcap", "kafka4-librdkafka-group.pcap")


@pytest.mark.parametrize("name", NAMES)
def test_copies_are_answered_as_captured(kafka: StartCluster, name: str) -> None:
    bootstrap = kafka(Shape("4.x")).bootstrap()
    with Plan.of(CAPTURES / name) as plan:
        report = replay(
            plan,
            bootstrap,
            prefix="copies-",
            scale=3,
            stagger_s=0.2,
            create_topics=True,
            noise=OF_THE_RELEASE,
        )
    assert report.passed, str(report)
    assert [row["passed"] for row in report.copy_rows()] == [True] * 3
    assert len({row["sent"] for row in report.copy_rows()}) == 1
    assert not report.unbalanced_rows()


@pytest.mark.parametrize("pace", [Pace(1), Pace(0)], ids=["captured", "max"])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_answered_as_captured(
    kafka: StartCluster, tmp_path: Path, name: str, pace: Pace
) -> None:
    bootstrap, prefix = kafka(Shape("4.x")).bootstrap(), f"parts-{pace.speed:g}-"

    async def play(plans: list[Plan]) -> list[Report]:
        options = {"prefix": prefix, "pace": pace, "noise": OF_THE_RELEASE, "timeout_s": 15}
        return await asyncio.gather(
            *(replay_async(plan, bootstrap, create_topics=True, **options) for plan in plans)  # type: ignore[arg-type]
        )

    plans = [Plan.of(CAPTURES / name, part=f"{number}/3") for number in (1, 2, 3)]
    reports = asyncio.run(play(plans))
    files = [tmp_path / f"{number}.ndjson" for number in range(3)]
    for report, file in zip(reports, files, strict=True):
        write_report(report, file)
    merged = merge_reports(files)
    assert merged.passed, str(merged)
    with Plan.of(CAPTURES / name) as whole:
        assert merged.captured == len(whole)
    assert merged.captured == merged.replayed + merged.verdicts["left_out"] + merged.never_reached  # type: ignore[index]
    for plan in plans:
        plan.close()


def test_a_speed_is_found(kafka: StartCluster) -> None:
    with Plan.of(CAPTURES / "kafka4-librdkafka-acks.pcap") as plan:
        report = replay(
            plan,
            kafka(Shape("4.x")).bootstrap(),
            prefix="speed-",
            create_topics=True,
            noise=OF_THE_RELEASE,
            latency_limits=["Produce:max>60000ms"],
            duration_s=5,
        )
    assert report.found_speed is not None, str(report)
    assert any(row["holds"] for row in report.trials)
