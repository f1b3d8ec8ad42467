"""Requests and reports are the same with and without templates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.client.broker_connection import BrokerConnection
from cluster.client.pending_request import PendingRequest
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay.options.pacing import Pace
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.public import AS_FAST_AS_POSSIBLE
from replay.report.report import Report
from replay.run.orchestrator import run_until_ended
from replay.run.runner import ReplayRun
from replay.run.template_player import TemplateBatch, TemplatePlayer
from replay.templates import step_arrays
from tests.default_frames import request, response, sized
from tests.replay.support.produce_messages import (
    PRODUCE,
    Written,
    produce_request,
    produce_response,
)
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import HANG_UP, Answer, Answers, scripted, single_broker
from tests.tcp_captures import Wire

VERSION, REQUESTS, AT_ONCE = 9, 40, 4

NOT_LEADER, TOO_LARGE = 6, 10

Turn = Callable[[int], int | bytes | dict[str, Any] | None]
"""
Gives what becomes of a Produce by its turn: an error code, fields beside it, or the very bytes of
the answer.
"""


def capture(folder: Path, since: int = 0) -> str:
    """A producer with pipelined requests to one partition; idempotent from request `since` on."""
    wire = Wire()
    connection = wire.connect().syn()
    init = KEYS["InitProducerId"]
    given = response(init, 3, 1, producer_id=4, producer_epoch=2)
    exchange(connection, request(init, 3, 1, transaction_timeout_ms=1000), given)
    for start in range(0, REQUESTS, AT_ONCE):
        numbers = range(start, start + AT_ONCE)
        for number in numbers:
            producer = (4, 2, 100 + number) if number >= since else (-1, -1, -1)
            written = Written("orders", 0, (b"%d" % number,), producer)
            connection.client(sized(produce_request(VERSION, [written], number + 2)))
        for number in numbers:
            connection.broker(
                sized(produce_response(VERSION, [("orders", 0, 500 + number)], number + 2))
            )
    return saved(folder, wire)


def script(turn: Turn) -> Answers:
    turns = iter(range(10 * REQUESTS))

    def produce(_: Message) -> Answer:
        number = next(turns)
        does = turn(number)
        if does is None or isinstance(does, bytes):
            return does
        more, error = (does, 0) if isinstance(does, dict) else ({}, does)
        partition = {"index": 0, "error_code": error, "base_offset": -1 if error else number}
        return {"responses": [{"name": "orders", "partition_responses": [partition]}], **more}

    began = {"producer_id": 9, "producer_epoch": 0}
    return {"InitProducerId": lambda _: began, "Produce": produce}


def played(
    path: str, turn: Turn, timeout_s: float = 5, pace: Pace = AS_FAST_AS_POSSIBLE
) -> tuple[Report, list[Any]]:
    async def main() -> tuple[Report, list[Any]]:
        ports: list[int] = []
        async with scripted({**single_broker(ports), **script(turn)}) as broker:
            ports.append(broker.port)
            options = PlayOptions(pace, timeout_s=timeout_s)
            setting = TargetSettings(f"127.0.0.1:{broker.port}", play_options=options)
            with Plan.of(path) as plan:
                report = await run_until_ended(plan, setting, [setting.to], None)
            bodies = [each.frame[8:] for each in broker.requests if each.api_key == PRODUCE]
            return report, bodies

    return asyncio.run(main())


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """Counts the responses handled by templates (True) and the fallbacks (False)."""
    seen: Counter[bool] = Counter()
    really, given_up = TemplateBatch.receive_many, TemplatePlayer.fall_back

    def take(its: TemplateBatch, *arguments: Any) -> tuple[int, int]:
        found = really(its, *arguments)
        seen[True] += found[0]
        return found

    def give_up(its: TemplatePlayer, *arguments: Any) -> None:
        seen[False] += 1
        given_up(its, *arguments)

    monkeypatch.setattr(TemplateBatch, "receive_many", take)
    monkeypatch.setattr(TemplatePlayer, "fall_back", give_up)
    return seen


def outcome(report: Report) -> dict[str, Any]:
    row = report.summary()
    times = {name for name in row if name.endswith(("_s", "_ms", "_per_s")) or name == "target"}
    numbers = {name: value for name, value in row.items() if name not in times}
    changes = {key: seen.count for key, seen in report.changes.items()}
    places = {place: seen.count for place, seen in report.fields.items()}
    failures = {why.partition(": ")[2]: count for why, count in report.failures.items()}
    return numbers | {"changes": changes, "places": places, "failures": failures}


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("turn", "least"),
    [
        (lambda number: 0, REQUESTS - 2 * AT_ONCE),
        (lambda number: TOO_LARGE if number == 20 else 0, REQUESTS - 2 * AT_ONCE - 1),
        (lambda number: NOT_LEADER if number == 21 else 0, REQUESTS - 4 * AT_ONCE),
        (lambda number: sized(b"\0\0\0\7"), 0),
    ],
    ids=["all well", "an error", "led by another", "garbage"],
)
def test_replay_with_and_without_templates_is_the_same(
    tmp_path: Path,
    traced: Counter[bool],
    monkeypatch: pytest.MonkeyPatch,
    turn: Turn,
    least: int,
) -> None:
    path = capture(tmp_path)
    report, bodies = played(path, turn)
    assert traced[True] >= least
    with monkeypatch.context() as patch:
        patch.setattr(TemplatePlayer, "send", lambda its, first: 0)
        other, other_bodies = played(path, turn)
    assert sorted(bodies) == sorted(other_bodies)
    assert outcome(report) == outcome(other)
    assert sum(len(known.replayed) for known in report.apis.values()) == sum(
        len(known.replayed) for known in other.apis.values()
    )
    assert len(report.lags) == len(other.lags)
    assert len(report.apis["Produce"].captured) == REQUESTS


def test_templates_equal_the_general_encoder_midway(
    tmp_path: Path, traced: Counter[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = capture(tmp_path, since=20)
    report, bodies = played(path, lambda number: 0)
    assert traced[True] >= REQUESTS - 4 * AT_ONCE
    monkeypatch.setattr(TemplatePlayer, "send", lambda its, first: 0)
    other, other_bodies = played(path, lambda number: 0)
    assert sorted(bodies) == sorted(other_bodies)
    assert outcome(report) == outcome(other)
    assert report.change_rows() == other.change_rows()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("pace", [Pace(1), Pace(0, rate=5000)], ids=["as captured", "at a rate"])
def test_paced_requests_are_sent_by_templates(
    tmp_path: Path, traced: Counter[bool], pace: Pace
) -> None:
    report, bodies = played(capture(tmp_path), lambda number: 0, pace=pace)
    assert traced[True] >= REQUESTS - 2 * AT_ONCE
    assert len(report.lags) == REQUESTS + 1
    _, at_once = played(capture(tmp_path), lambda number: 0)
    assert bodies == at_once


def test_throttling_by_the_target_is_respected(
    tmp_path: Path, traced: Counter[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    really = asyncio.sleep

    async def sleep(delay: float, *more: Any) -> None:
        waits.append(delay)
        await really(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    throttled = {"throttle_time_ms": 100}
    report, bodies = played(capture(tmp_path), lambda number: throttled if number == 20 else 0)
    assert report.passed
    assert len(bodies) == REQUESTS
    assert any(0 < wait <= 0.1 for wait in waits)
    assert traced[False] == 1
    assert traced[True] >= REQUESTS - 3 * AT_ONCE


def test_bytes_sent_together_are_bounded(
    tmp_path: Path, traced: Counter[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    really = BrokerConnection.send_batch

    def trace(its: BrokerConnection, pending: PendingRequest, count: int, data: bytes) -> None:
        sizes.append(count)
        really(its, pending, count, data)

    monkeypatch.setattr(BrokerConnection, "send_batch", trace)
    path = capture(tmp_path)
    report, _ = played(path, lambda number: 0)
    assert report.passed
    assert max(sizes) == AT_ONCE
    sizes.clear()
    monkeypatch.setattr(step_arrays, "BUFFER_BYTES", 1)
    report, _ = played(path, lambda number: 0)
    assert report.passed
    assert set(sizes) == {1}


def test_a_closed_connection_is_reported_and_the_replay_continues(
    tmp_path: Path, traced: Counter[bool]
) -> None:
    report, _ = played(capture(tmp_path), lambda number: HANG_UP if number == 20 else 0)
    assert traced[True] > AT_ONCE
    row = report.summary()
    assert 1 <= row["missing"] <= AT_ONCE
    assert row["missing"] + row["same"] == len(report.plan)
    assert all("closed the connection" in why for why in report.failures)


def test_missing_responses_do_not_end_the_run(tmp_path: Path, traced: Counter[bool]) -> None:
    report, _ = played(capture(tmp_path), lambda number: None if number >= 36 else 0, 0.3)
    assert traced[True] > AT_ONCE
    assert report.summary()["missing"] == AT_ONCE
    assert all("did not respond to Produce v9" in why for why in report.failures)


def test_requests_in_flight_at_the_end_have_outcomes(tmp_path: Path, traced: Counter[bool]) -> None:
    async def main() -> Report:
        ports: list[int] = []
        answers = script(lambda number: None if number >= 20 else 0)
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            setting = TargetSettings(f"127.0.0.1:{broker.port}", play_options=PlayOptions(Pace(0)))
            with Plan.of(capture(tmp_path)) as plan:
                return await run_until_ended(plan, setting, [setting.to], stop)

    def stop(run: ReplayRun, report: Report) -> None:
        if run.progress.sent == 1 + 20 + AT_ONCE:
            run.stop()

    report = asyncio.run(main())
    assert traced[True] > AT_ONCE
    row = report.summary()
    assert row["not_judged"] == AT_ONCE
    assert row["left_out"] == 0
    assert row["sent"] == len(report.plan) - row["never_reached"] == 21 + AT_ONCE
    assert row["same"] == 21
    assert row["requests_sent"] == 21 + AT_ONCE
