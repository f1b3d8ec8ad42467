"""Deliberate changes of a target are found and reported, and do not delay the replay."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.mock.librdkafka_mock import MockCluster
from replay import Pace, Plan, Report, replay
from replay.model.outcome import Verdict
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.run.orchestrator import run_replay
from replay.run.runner import ReplayRun
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.recording import fresh
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
TIMEOUT_S = 2.0
PATIENCE_S = 90.0
PRODUCED = "Produce.responses[*].partition_responses[*].error_code"
TOPIC_AUTHORIZATION_FAILED, PRODUCE = 29, 0


def differences(report: Report) -> set[tuple[str, str, str]]:
    """Return field, captured and live value of all differences."""
    return {
        (place, example["captured"], example["replayed"])
        for place, seen in report.fields.items()
        for example in seen.examples
    }


def test_an_error_injected_into_the_mock_is_reported() -> None:
    with Plan.of(CAPTURES / "librdkafka-idempotent.pcap") as plan:
        with MockCluster(1, plan.topics) as mock:
            sound = replay(plan, mock.addresses[0], timeout_s=PATIENCE_S)
        with MockCluster(1, plan.topics) as mock:
            mock.fail_next(PRODUCE, TOPIC_AUTHORIZATION_FAILED)
            report = replay(plan, mock.addresses[0], timeout_s=TIMEOUT_S)
    assert sound.passed, str(sound)
    assert not report.passed
    assert (PRODUCED, "NONE", "TOPIC_AUTHORIZATION_FAILED") in differences(report)
    assert report.verdicts[Verdict.ERROR_CHANGED] == 1


def test_a_missing_topic_is_reported(kafka: StartCluster) -> None:
    capture, bootstrap = CAPTURES / "kafka4-librdkafka-codecs.pcap", kafka(Shape("4.x")).bootstrap()
    with Plan.of(capture, filter="api == Produce") as plan:
        begin = time.monotonic()
        report = replay(plan, bootstrap, timeout_s=TIMEOUT_S, prefix="missing-")
        took_s = time.monotonic() - begin
        steps = len(plan)
    assert report.verdicts[Verdict.ERROR_CHANGED] == steps
    assert {live for _, _, live in differences(report)} <= {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
    }
    assert took_s < 10 * TIMEOUT_S


def test_a_smaller_limit_of_records_is_reported(kafka: StartCluster) -> None:
    cluster, prefix = kafka(Shape("4.x")), "small-"
    topic = prefix + "kafka4-librdkafka-codecs.orders"
    small = NewTopic(topic, 2, 1, config={"max.message.bytes": "1000"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    admin.create_topics([small])[topic].result(PATIENCE_S)
    with Plan.of(CAPTURES / "kafka4-librdkafka-codecs.pcap") as plan:
        report = replay(
            plan,
            cluster.bootstrap(),
            timeout_s=5 * TIMEOUT_S,
            prefix=prefix,
            noise=OF_THE_RELEASE,
        )
    assert differences(report) == {(PRODUCED, "NONE", "MESSAGE_TOO_LARGE")}
    assert 0 < report.verdicts[Verdict.ERROR_CHANGED] < len(plan)


def test_a_broker_stopped_in_the_middle_is_reported() -> None:
    with (
        fresh(Shape("4.x")) as cluster,
        Plan.of(CAPTURES / "kafka4-static-members.pcap") as plan,
    ):
        (node,) = cluster.nodes
        address = node.address.at("PLAINTEXT")

        def stop(run: ReplayRun, _: Report) -> None:
            if run.progress.done > 20 and node.process is not None:
                cluster.stop_node(node, kill=True)

        play_options = PlayOptions(Pace(speed=1), timeout_s=TIMEOUT_S)
        begin = time.monotonic()
        report = run_replay(plan, TargetSettings(address, play_options=play_options), stop)
        took_s = time.monotonic() - begin
    assert node.process is None
    assert not report.passed
    assert report.verdicts[Verdict.MISSING]
    assert all(address in why for why in report.failures), report.failures
    assert sum(report.verdicts.values()) == len(plan)
    captured_s = (plan.times_ns(len(plan) - 1)[0] - plan.begin_ns) / 1e9
    assert took_s < captured_s + 20 * TIMEOUT_S
