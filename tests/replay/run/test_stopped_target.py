"""A target that stops, or throttles, is reported on stderr, and waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay import Plan
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.report.report import Report
from replay.run.orchestrator import run_until_ended
from replay.run.runner import ReplayRun
from tests.default_frames import request, response
from tests.replay.run.test_runner import at_script, beat, beats, single_broker
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import HANG_UP, Answer, scripted
from tests.tcp_captures import Wire

COMMIT = KEYS["OffsetCommit"]


def connections(folder: Path, count: int) -> str:
    """Commits on one connection after the other: each waits for the one before."""
    wire = Wire()
    for number in range(count):
        connection = wire.connect(50000 + number).syn()
        exchange(connection, request(COMMIT, 3, number, group_id="g"), response(COMMIT, 3, number))
    return saved(folder, wire)


def played(path: str, timeout_s: float, returns: bool) -> tuple[Report, list[str]]:
    """Replay at a broker that stops at the second commit; return the report and notices."""
    seen: list[ReplayRun] = []

    async def main() -> Report:
        ports: list[int] = []
        count = 0
        back: list[asyncio.Task[None]] = []

        async def commit(message: Message) -> Answer:
            nonlocal count
            count += 1
            if count != 2:
                return {"throttle_time_ms": 0, "topics": []}
            broker.stop_listening()
            if returns:
                back.append(asyncio.create_task(listen_again()))
            return HANG_UP

        async def listen_again() -> None:
            while not any("waiting" in each for run in seen for each in run.progress.notices):
                await asyncio.sleep(0.01)
            await broker.listen_again()

        async with scripted({**single_broker(ports), "OffsetCommit": commit}) as broker:
            ports.append(broker.port)
            addresses = [f"127.0.0.1:{broker.port}"]
            setting = TargetSettings(addresses[0], play_options=PlayOptions(timeout_s=timeout_s))
            with Plan.of(path) as plan:
                return await run_until_ended(
                    plan, setting, addresses, lambda run, _: seen.append(run)
                )

    report = asyncio.run(main())
    return report, seen[-1].progress.notices if seen else []


def test_a_target_that_stops_is_waited_for_then_the_rest_is_not_sent(tmp_path: Path) -> None:
    report, notices = played(connections(tmp_path, 5), 2, returns=False)
    assert report.ended
    summary: dict[str, Any] = report.summary()
    unsent = summary["left_out"] + summary["never_reached"]
    assert (summary["same"], summary["missing"], unsent) == (1, 1, 3), "what was on its way"
    assert [each for each in notices if "waiting up to" in each]


def test_a_target_that_comes_back_in_time_gets_the_rest(tmp_path: Path) -> None:
    report, notices = played(connections(tmp_path, 5), 60, returns=True)
    assert not report.ended
    assert len([each for each in notices if "waiting up to" in each]) == 1
    summary: dict[str, Any] = report.summary()
    assert (summary["same"], summary["missing"]) == (4, 1)


def test_a_throttle_time_is_reported_and_shortened(tmp_path: Path) -> None:
    answers = {"Heartbeat": lambda _: {**dict(beat(0)), "throttle_time_ms": 60_000}}
    run = at_script(beats(tmp_path, 0, 0), answers, PlayOptions(max_throttle_s=0.01))
    assert len(run.requests) == 2
    assert run.run is not None
    assert run.run.progress.notices == [
        "the target throttles client 'test' after Heartbeat: 60 s; "
        "paused for 0.01 s (--max-throttle S is a limit)"
    ]
