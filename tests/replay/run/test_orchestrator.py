"""A replay from the connection to the report."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay.options.pacing import Pace
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.report import Report
from replay.run.orchestrator import run_replay, run_until_ended
from tests.default_frames import request, response
from tests.replay.support.replay_captures import exchange, left_open, saved
from tests.replay.support.scripted_broker import Answers, offers, scripted, single_broker
from tests.tcp_captures import Wire

HEARTBEAT, DELETE_TOPICS = KEYS["Heartbeat"], KEYS["DeleteTopics"]


def at_script(path: str, answers: Answers, timeout_s: float = 60) -> Report:
    async def main() -> Report:
        ports: list[int] = []
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            setting = TargetSettings(
                f"127.0.0.1:{broker.port}", play_options=PlayOptions(Pace(0), timeout_s=timeout_s)
            )
            with Plan.of(path) as plan:
                return await run_until_ended(plan, setting, [setting.to], None)

    return asyncio.run(main())


def test_resources_left_on_the_target_are_in_the_report(tmp_path: Path) -> None:
    began = {"producer_id": 9, "producer_epoch": 0}
    given = [began, {"error_code": 53}]
    report = at_script(
        left_open(tmp_path),
        {"InitProducerId": lambda _: given.pop(0), "AddPartitionsToTxn": lambda _: {}},
    )
    (left,) = report.left_behind
    assert "'t'" in left
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in left
    assert not report.ended


def at_mock(path: str, chosen: str | None = None) -> Report:
    with Plan.of(path, filter=chosen) as plan:
        return run_replay(plan, TargetSettings("mock"))


def test_a_replay_without_requests_fails(tmp_path: Path) -> None:
    """Else a filter without matches would mean a flawless target."""
    wire = Wire()
    delete_topics = request(DELETE_TOPICS, 1, 1, topic_names=["t"])
    exchange(wire.connect().syn(), delete_topics, response(DELETE_TOPICS, 1, 1))
    path = saved(tmp_path, wire)
    for chosen, why in (("api == Produce", "no Kafka request was"), (None, "none of 1 requests")):
        report = at_mock(path, chosen)
        assert why in report.ended
        assert not report.passed


def test_a_silent_target_ends_the_run(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(20):
        heartbeat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(HEARTBEAT, 3, number))
    offer, beats = offers(), list[Message]()

    def beat(message: Message) -> None:
        beats.append(message)

    silent: Answers = {
        "ApiVersions": lambda heartbeat: None if beats else offer(heartbeat),
        "Heartbeat": beat,
    }
    report = at_script(saved(tmp_path, wire), silent, timeout_s=1)
    assert "did not respond to ApiVersions" in report.ended
    assert len(beats) == 1
    assert 0 < sum(report.verdicts.values()) < 20
    assert not report.passed
