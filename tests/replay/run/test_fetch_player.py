"""Requests and reports of Fetches are the same on the fast path and on the slow one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from construct import Container

from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import Message
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.public import AS_FAST_AS_POSSIBLE
from replay.report.report import Report
from replay.run.fetch_player import FetchInFlight, FetchPlayer
from replay.run.orchestrator import run_until_ended
from tests.default_frames import request, response
from tests.replay.run.test_template_player import outcome
from tests.replay.support.outcomes import filled
from tests.replay.support.produce_messages import Written, produce_request, produce_response
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import HANG_UP, Answer, scripted, single_broker
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S

FETCH, PRODUCE_VERSION, VERSION = KEYS["Fetch"], 9, 12
WRITES, ID, LIVE_ID, BASE = 24, 77, 5, 100
_SCHEMAS = api(FETCH)
assert _SCHEMAS is not None

Turn = Callable[[int, dict[str, Any]], Any]
"""Gives by the turn of a consumer's Fetch and its honest answer what is answered."""


def written(number: int) -> Written:
    return Written("orders", 0, (b"value %d" % number,))


def batch(number: int, base: int = 0) -> bytes:
    """A batch as it is fetched."""
    return (base + number).to_bytes(8, "big") + written(number).records()[8:]


def answer(offset: int, records: bytes, session: int) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "high_watermark": offset + 1,
        "last_stable_offset": offset + 1,
        "log_start_offset": 0,
        "preferred_read_replica": -1,
        "records": records,
    }
    body = {"session_id": session, "responses": [{"topic": "orders", "partitions": [partition]}]}
    return filled(_SCHEMAS.response.fields, VERSION, body)


def capture(folder: Path) -> str:
    """A producer, a consumer with a fetch session, and one without."""
    wire = Wire()
    producer, *consumers = (wire.connect(at).syn() for at in (50001, 50002, 50003))
    for number in range(WRITES):
        sent = produce_request(PRODUCE_VERSION, [written(number)], number)
        given = produce_response(PRODUCE_VERSION, [("orders", 0, number)], number)
        exchange(producer, _sized(sent), _sized(given))
        for is_in_session, consumer in zip((True, False), consumers, strict=True):
            epoch, known = (number, ID if number else 0) if is_in_session else (-1, 0)
            partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": number}
            partition |= {"last_fetched_epoch": -1, "log_start_offset": -1}
            partition |= {"partition_max_bytes": 1 << 20}
            body = {
                "max_wait_ms": 500,
                "max_bytes": 1 << 20,
                "session_id": known,
                "session_epoch": epoch,
                "topics": [{"topic": "orders", "partitions": [partition]}],
                "rack_id": "",
            }
            asked = filled(_SCHEMAS.request.fields, VERSION, body)
            found = answer(number, batch(number), ID if is_in_session else 0)
            exchange(
                consumer,
                request(FETCH, VERSION, number, "reader", **asked),
                response(FETCH, VERSION, number, **found),
            )
    return saved(folder, wire)


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def played(path: str, turn: Turn) -> tuple[Report, list[bytes]]:
    """Replay at a broker with records before; return the report, and the bodies of Fetches."""
    log: list[int] = []
    turns = Counter[int]()

    def produce(message: Message) -> Answer:
        log.append(len(log))
        partition = {"index": 0, "base_offset": BASE + log[-1]}
        return {"responses": [{"name": "orders", "partition_responses": [partition]}]}

    def fetch(message: Message) -> Answer:
        body = message.body
        assert isinstance(body, Container)
        (topic,) = body.topics
        (partition,) = topic.partitions
        number = partition.fetch_offset - BASE
        records = batch(number, BASE) if number in log else b""
        session = LIVE_ID if body.session_epoch >= 0 else 0
        turns[session] += 1
        changed: Answer = turn(turns[session], answer(BASE + number, records, session))
        return changed

    async def main() -> tuple[Report, list[bytes]]:
        ports: list[int] = []
        script = {**single_broker(ports), "Produce": produce, "Fetch": fetch}
        async with scripted(script) as broker:
            ports.append(broker.port)
            options = PlayOptions(AS_FAST_AS_POSSIBLE, timeout_s=PATIENCE_S, final_check=False)
            setting = TargetSettings(f"127.0.0.1:{broker.port}", play_options=options)
            with Plan.of(path) as plan:
                report = await run_until_ended(plan, setting, [setting.to], None)
            return report, [each.frame[8:] for each in broker.requests if each.api_key == FETCH]

    return asyncio.run(main())


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the Fetches that are sent on the fast path, and those handed over."""
    seen: Counter[str] = Counter()
    send, hand_over = FetchPlayer.send, FetchPlayer.hand_over

    def count(its: FetchPlayer, number: int) -> bool:
        is_sent = send(its, number)
        seen["sent"] += is_sent
        return is_sent

    def give_up(its: FetchPlayer, fetch: FetchInFlight) -> Any:
        seen["handed over"] += 1
        return hand_over(its, fetch)

    monkeypatch.setattr(FetchPlayer, "send", count)
    monkeypatch.setattr(FetchPlayer, "hand_over", give_up)
    return seen


def _changed(**values: Any) -> Turn:
    """Change fields of the partition in a Fetch of each consumer."""

    def turn(number: int, found: dict[str, Any]) -> Any:
        if number == 20:
            found["responses"][0]["partitions"][0].update(values)
        return found

    return turn


TURNS: dict[str, Turn] = {
    "all well": lambda number, found: found,
    "an error": _changed(error_code=6),
    "other records": _changed(records=batch(3, BASE)),
    "a low high watermark": _changed(high_watermark=1),
    "no records": _changed(records=b""),
    "a lost session": lambda number, found: found if number != 20 else {**found, "error_code": 70},
    "a throttle time": lambda number, found: {**found, "throttle_time_ms": int(number == 20)},
    "garbage": lambda number, found: found if number != 20 else b"\0\0\0\7abcdefg",
    "hung up": lambda number, found: found if number != 20 else HANG_UP,
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_both_paths_report_the_same(
    tmp_path: Path, taken: Counter[str], monkeypatch: pytest.MonkeyPatch, turn: Turn
) -> None:
    path = capture(tmp_path)
    report, bodies = played(path, turn)
    assert taken["sent"] > WRITES // 2
    monkeypatch.setattr(FetchPlayer, "send", lambda its, number: False)
    other, others = played(path, turn)
    assert outcome(report) == outcome(other)
    assert sorted(bodies) == sorted(others)
    assert report.change_rows() == other.change_rows()
    assert len(report.apis["Fetch"].captured) == len(other.apis["Fetch"].captured) == 2 * WRITES
    assert len(report.lags) == len(other.lags)
    if turn is TURNS["all well"]:
        assert report.passed, str(report)
        assert taken["sent"] >= 2 * WRITES - 4
        assert taken["handed over"] <= 2
