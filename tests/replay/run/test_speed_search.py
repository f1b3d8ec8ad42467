"""Search for the highest speed a target sustains."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import KEYS
from replay import Plan
from replay.model.outcome import Verdict
from replay.options.pacing import Pace
from replay.options.pass_criteria import latency_limits
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.report.report import Report, html_lines, junit_lines, text_lines
from replay.report.report_words import verdict_line
from replay.run.orchestrator import INTERRUPTED, run_until_ended
from replay.run.speed_search import LOWEST_SPEED, MAX_TRIALS, SpeedSearch
from replay.run.speed_trials import find_speed, search_speed
from tests.default_frames import request, response
from tests.replay.support.outcomes import MS, outcome
from tests.replay.support.replay_captures import SHIPPED, exchange, saved
from tests.replay.support.reports import made, produced
from tests.replay.support.scripted_broker import Answers, scripted, single_broker
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S

LIMITS = latency_limits(["Produce:p99>50ms"])
HEARTBEAT = KEYS["Heartbeat"]
BASE_RATE = 100.0


def _search(holds_up_to: float, most_rate: float = float("inf")) -> tuple[list[float], float]:
    """Return the tried speeds, and the highest sustained one."""
    search, tried, found = SpeedSearch(), list[float](), 0.0
    while (speed := search.next_speed()) is not None:
        tried.append(speed)
        holds = speed <= holds_up_to
        found = max(found, speed) if holds else found
        search.record(speed, holds, min(speed * BASE_RATE, most_rate))
    return tried, found


@given(st.floats(LOWEST_SPEED * 1.2, 64))
def test_the_speed_is_found_to_a_tenth_in_few_trials(limit: float) -> None:
    tried, found = _search(limit)
    assert limit / 1.11 <= found <= limit
    assert len(tried) <= MAX_TRIALS


def test_an_overloaded_target_gives_no_speed() -> None:
    tried, found = _search(0)
    assert found == 0
    assert tried == [2.0**-exponent for exponent in range(7)]


def test_the_search_ends_when_speed_no_longer_raises_the_rate() -> None:
    assert _search(1e9, most_rate=BASE_RATE * 5)[0] == [1, 2, 4, 8, 16]


def _report(latency_ms: float, rate: float, *, is_missing: bool = False, ended: str = "") -> Report:
    answer = None if is_missing else produced()
    details = {"failure": "closed"} if is_missing else {}
    latency_ns = None if is_missing else int(latency_ms * MS)
    slow = outcome("Produce", 7, produced(), answer, latency_ns=latency_ns, **details)
    fast = outcome("Produce", 7, produced(), produced(), latency_ns=MS, number=1)
    report = made(slow, fast, captured=2, ended=ended, latency_limits=LIMITS)
    report.played_ns = int(report.sent / rate * 1e9)
    return report


def test_the_report_has_the_highest_speed_and_all_trials() -> None:
    reports: list[Report] = []

    def play(speed: float, trial: int) -> Report:
        assert trial == len(reports)
        reports.append(_report(5 * speed, speed * BASE_RATE))
        return reports[-1]

    found = search_speed(LIMITS, play)
    assert found.found_speed is not None
    assert 10 / 1.11 <= found.found_speed <= 10
    assert found.found_rate == pytest.approx(found.found_speed * BASE_RATE, rel=0.01)
    assert [row["trial"] for row in found.trials] == list(range(1, len(reports) + 1))
    assert [row["speed"] for row in found.trials[:5]] == [1, 2, 4, 8, 16]
    assert [row["holds"] for row in found.trials[:5]] == [True] * 4 + [False]
    assert found.trials[4]["why"] == "1 latency above the limit"
    assert found.trials[4]["latency"] == "Produce 80.000 ms of 50.000 ms"
    assert found.passed
    assert "holds Produce:p99>50ms up to 9" in verdict_line(found)
    assert 'name="highest speed"' not in "\n".join(junit_lines(found))
    for lines in (text_lines(found), html_lines(found)):
        assert "80.000 ms of 50.000 ms" in "\n".join(lines)


@pytest.mark.parametrize(
    ("made_report", "why"),
    [
        (lambda: _report(900, 10), "1 latency above the limit"),
        (lambda: _report(1, 10, is_missing=True), "1 response missing"),
        (lambda: _report(1, 10, ended="silent"), "silent"),
    ],
)
def test_the_report_of_an_overloaded_target_has_no_speed(made_report, why: str) -> None:  # type: ignore[no-untyped-def]
    found = search_speed(LIMITS, lambda speed, trial: made_report())
    assert found.found_speed is None
    assert found.found_rate is None
    assert not found.passed
    assert 'name="highest speed"' in "\n".join(junit_lines(found))
    assert {row["why"] for row in found.trials} == {why}
    assert found.trials[-1]["speed"] == pytest.approx(LOWEST_SPEED, abs=1e-4)
    if not found.ended:
        assert "does not hold Produce:p99>50ms, not even at 0.0156 times" in verdict_line(found)


def test_responses_missing_within_a_trial_are_late(tmp_path: Path) -> None:
    """Else a target with responses to only a few requests would seem fast."""
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(3):
        beat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, beat, response(HEARTBEAT, 3, number))
    limits = latency_limits(["Heartbeat:max>1ms"])
    options = PlayOptions(Pace(0), duration_s=0.2, timeout_s=60)
    answered = count()

    async def main() -> Report:
        ports: list[int] = []
        answers: Answers = {
            "Heartbeat": lambda _: {"error_code": 0} if not next(answered) else None
        }
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            settings = TargetSettings(
                f"127.0.0.1:{broker.port}", play_options=options, latency_limits=limits
            )
            with Plan.of(saved(tmp_path, wire)) as plan:
                return await run_until_ended(plan, settings, [settings.to], None)

    report = asyncio.run(main())
    assert report.verdicts[Verdict.NOT_JUDGED] == 1
    assert len(report.waits["Heartbeat"]) == 1
    found = search_speed(limits, lambda speed, trial: report)
    assert found.found_speed is None
    assert found.trials[0]["why"] == "1 latency above the limit"


def test_a_limit_without_measurements_gives_no_speed() -> None:
    other = latency_limits(["Fetch:p99>50ms"])
    found = search_speed(other, lambda speed, trial: _report(1, 10))
    assert found.found_speed is None
    assert len(found.trials) == 1
    assert not found.passed
    assert "was not measured" in verdict_line(found)


def test_an_interrupted_search_ends_with_the_report_so_far() -> None:
    trials = count(1)
    ended = {3: INTERRUPTED}
    found = search_speed(
        LIMITS, lambda speed, trial: _report(1, 10 * speed, ended=ended.get(next(trials), ""))
    )
    assert found.ended == INTERRUPTED
    assert len(found.trials) == 3
    assert found.found_speed == 2
    assert not found.passed
    first = search_speed(LIMITS, lambda speed, trial: _report(1, 10, ended=INTERRUPTED))
    assert "not hold" not in verdict_line(first)


@pytest.mark.long
def test_trials_run_at_several_speeds(tmp_path: Path) -> None:
    """Each trial has its own names, also at the embedded broker."""
    options = PlayOptions(Pace(1), timeout_s=PATIENCE_S)
    settings = TargetSettings(
        "mock", prefix="x-", play_options=options, latency_limits=latency_limits(["max>1000000ms"])
    )
    with Plan.of(SHIPPED / "librdkafka-idempotent.pcap", filter="api != ApiVersions") as plan:
        found = find_speed(plan, settings)
    assert found.passed, str(found)
    assert found.found_speed is not None
    assert len(found.trials) <= MAX_TRIALS
    assert all(row["holds"] and row["sent"] == len(plan) for row in found.trials)
    assert found.about.row()["options"]["speed"] == "auto"
    assert found.about.row()["options"]["latency-limit"] == ["max>1000000ms"]
    assert not found.failing


@pytest.mark.long
def test_a_real_target_may_sustain_no_speed(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(5):
        beat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, beat, response(HEARTBEAT, 3, number, error_code=25))
    settings = TargetSettings(
        "mock",
        play_options=PlayOptions(timeout_s=PATIENCE_S),
        latency_limits=latency_limits(["p50>0ms"]),
    )
    with Plan.of(saved(tmp_path, wire)) as plan:
        found = find_speed(plan, settings)
    assert found.found_speed is None
    assert not found.passed
    assert [row["holds"] for row in found.trials] == [False] * 7
