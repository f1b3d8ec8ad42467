"""Replays of every API and version with seeded values: no version lacks a field that is read."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.client.broker_connection import CLIENT_ID
from dissector.errors import UsageError
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis, api_name
from dissector.protocol.messages import Message
from dissector.protocol.records import Record, new_batch
from replay import Plan, Report, replay_async
from replay.options.target_settings import TargetSettings
from replay.order.exclusion_policy import allowed_apis
from replay.report.report import html_lines, junit_lines, ndjson_lines, text_lines
from replay.run.dry_run import dry_run_lines
from tests.corpus import fast_and_long
from tests.default_frames import request, response
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answer, offers, scripted, single_broker
from tests.tcp_captures import Wire
from tests.value_sources import seeded

FAST = frozenset(("Fetch", "JoinGroup", "OffsetCommit", "Produce", "TxnOffsetCommit"))
"""APIs with code of their own in many rooms."""

RECORDS = new_batch([Record(0, 0, 0, b"k", b"v", (), 0, 5)]).to_bytes()
ROUNDS = 2


def successful(value: Any) -> Any:
    """Return a value with whole record batches and without errors."""
    if isinstance(value, list):
        return [successful(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: successful(each) for name, each in value.items()}
    found |= {name: 0 for name in found if name == "error_code"}
    return found | {name: RECORDS for name in found if name == "records" and found[name]}


def values(found: Api, side: str, version: int, seed: int) -> dict[str, Any]:
    schema = found.request if side == "request" else found.response
    body = seeded(found.key, side, version, seed).value(schema, version, False)
    return body if seed % 2 else successful(body)  # type: ignore[no-any-return]


def capture(folder: Path, found: Api, is_midway: bool) -> str:
    wire = Wire()
    connection = wire.connect()
    if not is_midway:
        connection.syn()
    number = 0
    for version in found.request.versions:
        for seed in range(ROUNDS):
            number += 1
            asked = request(found.key, version, number, **values(found, "request", version, seed))
            answer = response(
                found.key, version, number, **values(found, "response", version, seed)
            )
            exchange(connection, asked, answer)
    return saved(folder, wire)


def allowable(name: str) -> list[str]:
    """Return the name if it needs permission to be sent."""
    try:
        return [*allowed_apis([name])]
    except UsageError:
        return []


def target(found: Api, ports: list[int], differs: bool) -> dict[str, Callable[[Message], Answer]]:
    """Answer captured requests with the captured or with other values, and own ones well."""
    good, turn = single_broker(ports), itertools.count().__next__

    def answer(message: Message) -> Answer:
        name = message.api or ""
        if message.client_id == CLIENT_ID or name != found.name:
            return good[name](message) if name in good else {}  # type: ignore[return-value]
        version = message.api_version or 0
        return values(found, "response", version, turn() % ROUNDS + ROUNDS * differs)

    names = [api_name(each.key) for each in all_apis()]
    script = dict.fromkeys((name for name in names if name != "ApiVersions"), answer)
    if differs:  # requests are converted to the lower half of the versions
        offered = {each.name: each.request.versions for each in all_apis()}
        ranges = {name: (each.low, each.high) for name, each in offered.items()}
        low, high = ranges[found.name]
        script["ApiVersions"] = offers(**(ranges | {found.name: (low, (low + high) // 2)}))
    return script


@pytest.mark.thinned(12)
@pytest.mark.parametrize(
    "name",
    fast_and_long(sorted(FAST), sorted({each.name for each in all_apis()} - FAST)),
)
@pytest.mark.parametrize(("is_midway", "differs"), [(False, True), (True, False), (True, True)])
def test_each_version_is_replayed(
    tmp_path: Path, name: str, is_midway: bool, differs: bool
) -> None:
    (found,) = (each for each in all_apis() if each.name == name)

    async def main() -> Report:
        ports: list[int] = []
        async with scripted(target(found, ports, differs)) as broker:
            ports.append(broker.port)
            with Plan.of(capture(tmp_path, found, is_midway), allow=allowable(name)) as plan:
                assert [*dry_run_lines(plan, TargetSettings(to=""))]
                to = f"127.0.0.1:{broker.port}"
                return await replay_async(plan, to, timeout_s=0.1, max_throttle_s=0.01)

    report = asyncio.run(main())
    assert report.captured
    for lines in (text_lines, ndjson_lines, html_lines, junit_lines):
        assert [*lines(report)]
