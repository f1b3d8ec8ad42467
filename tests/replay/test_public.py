"""The Python interface of `replay`."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import replay as package
from cluster.mock.librdkafka_mock import MockCluster
from dissector.errors import UsageError
from dissector.public import open_capture
from replay import Noise, Pace, Plan, Report, merge_reports, replay, replay_async
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.run.orchestrator import learn_noise
from tests.waiting import PATIENCE_S

CAPTURES = Path(__file__).parents[2] / "captures"
PRODUCED = CAPTURES / "librdkafka-idempotent.pcap"
ACKS = CAPTURES / "kafka4-librdkafka-acks.pcap"


def test_public_names_are_documented() -> None:
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'play'"):
        package.play  # noqa: B018


def test_the_import_loads_no_asyncio() -> None:
    code = "import replay, sys; sys.exit('asyncio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_capture_is_replayed(tmp_path: Path) -> None:
    with Plan.of(PRODUCED, filter="api != Metadata") as plan:
        report = replay(plan, "mock", prefix="x-", report_file=tmp_path / "report.html")
    assert report.passed, report
    assert report.sent == 17
    assert {row["role"] for row in report.change_rows()} >= {"topic", "producer_id"}
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert str(report).startswith("mock: answers as captured")


def test_replay_runs_within_an_event_loop() -> None:
    async def cell() -> Report:
        with Plan.of(PRODUCED) as plan:
            return replay(plan, "mock")

    assert asyncio.run(cell()).passed


def test_a_plan_of_an_open_capture_has_its_filter() -> None:
    with Plan.of(PRODUCED, filter="api != Metadata") as plan:
        expected = [step.captured.api for step in plan]
    capture = open_capture(PRODUCED.read_bytes(), filter="api != Metadata")
    for source in (capture, open_capture([PRODUCED], filter="api != Metadata")):
        with Plan.of(source) as plan:
            assert [step.captured.api for step in plan] == expected
    with PRODUCED.open("rb") as file, Plan.of(file, filter="api != Metadata") as plan:
        assert len(plan) == len(expected)


def test_the_event_loop_is_not_blocked_by_an_asynchronous_replay() -> None:
    async def cell(plan: Plan) -> tuple[Report, int]:
        turns = 0
        replaying = asyncio.ensure_future(replay_async(plan, "mock", prefix="x-"))
        while not replaying.done():
            await asyncio.wait([replaying], timeout=0.001)
            turns += 1
        return await replaying, turns

    with Plan.of(PRODUCED, filter="api != Metadata") as plan:
        report, turns = asyncio.run(cell(plan))
    assert report.passed, report
    assert turns > 1
    assert inspect.signature(replay_async) == inspect.signature(replay)


def test_cancellation_ends_an_asynchronous_replay() -> None:
    async def cell(plan: Plan, mock: MockCluster) -> None:
        slow = Pace(speed=0.0001)
        replaying = asyncio.ensure_future(replay_async(plan, mock.addresses[0], pace=slow))
        while not [each for each in threading.enumerate() if each.name.startswith("asyncio_")]:
            await asyncio.sleep(0)
        replaying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replaying

    with Plan.of(PRODUCED) as plan, MockCluster(topics=plan.topics) as mock:
        asyncio.run(cell(plan, mock))


def test_each_pass_has_its_own_names() -> None:
    with Plan.of(PRODUCED) as plan:
        report = replay(plan, "mock", loop=3)
    assert report.passed, report
    assert report.sent == 54


def test_an_error_of_the_target_is_in_the_report() -> None:
    with Plan.of(PRODUCED) as plan, MockCluster(topics=plan.topics) as mock:
        mock.fail_topic(next(iter(plan.topics)), 29)
        report = replay(plan, mock.addresses[0])
    assert not report.passed
    assert "TOPIC_AUTHORIZATION_FAILED" in str(report)


def test_noise_is_learned_from_a_reference() -> None:
    with Plan.of(ACKS) as plan:
        noise = learn_noise(
            plan, TargetSettings("mock", play_options=PlayOptions(timeout_s=PATIENCE_S))
        )
        assert "ApiVersions.api_keys[*].max_version" in noise
        assert replay(plan, "mock", noise=Noise(noise)).passed


def test_the_report_object_has_the_content_of_the_files(tmp_path: Path) -> None:
    known, file = tmp_path / "known.txt", tmp_path / "report.ndjson"
    with Plan.of(ACKS, filter="api != Metadata") as plan:
        assert not replay(plan, "mock", write_accepted=known).passed
        report = replay(
            plan, "mock", accept=known, report_file=file, fail_on=["error"], show_payloads=True
        )
    assert report.passed, report
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    about = report.about.row()
    assert {"section": "about", **about} in rows
    assert about["captures"][0]["bytes"] == (ACKS).stat().st_size
    assert about["clients"][0]["software"].startswith("confluent-kafka-python ")
    assert about["target"]["cluster_id"].startswith("mockCluster")
    assert about["options"]["filter"] == "api != Metadata"
    assert about["options"]["fail-on"] == "error"
    assert rows[0]["accepted"] == report.summary()["accepted"]
    accepted = [row["field"] for row in rows if row["section"] == "accepted"]
    assert "ApiVersions.api_keys[*].max_version" in accepted
    assert all(each.startswith("ApiVersions.api_keys[*]") for each in accepted)
    for row in report.differences():
        assert {"section": "difference", **row} in rows


@pytest.mark.long
def test_copies_and_limits_are_options_in_python(tmp_path: Path) -> None:
    file = tmp_path / "report.ndjson"
    with Plan.of(PRODUCED) as plan:
        report = replay(plan, "mock", scale=2, stagger_s=0, report_file=file)
        assert [row["sent"] for row in report.copy_rows()] == [len(plan)] * 2
        assert merge_reports([file]).summary()["sent"] == 2 * len(plan)
        found = replay(plan, "mock", latency_limits=["Produce:max>100000ms"], limit=18)
        assert found.found_speed is not None


def test_a_bad_option_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    with Plan.of(PRODUCED) as plan:
        with pytest.raises(UsageError, match="--fail-on"):
            replay(plan, "nowhere:1", fail_on=["everything"])
        with pytest.raises(UsageError, match="cannot be read"):
            replay(plan, "nowhere:1", accept=tmp_path / "nothing")
