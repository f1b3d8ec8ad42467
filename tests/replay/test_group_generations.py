"""Three members of a captured generation form one at the target, in any order of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dissector.protocol.messages import Message
from replay.model.outcome import Verdict
from tests.default_frames import request, response
from tests.replay.run.test_runner import Played, at_script
from tests.replay.support.coordinator import Coordinator
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answer, Answers
from tests.replay.test_group_joins import BEAT, JOIN, SYNC, beats, joined, joins, of_group, verdict
from tests.tcp_captures import Wire

NAMES = ("one", "two", "three")


def three_members(folder: Path, order: Sequence[str], *, one_by_one: bool = False) -> Path:
    """
    Capture a generation of three members: responses to joins in the given order, then syncs.

    With `one_by_one`, the leader is first, and each sync follows its join.
    """
    wire = Wire()
    connections = {name: wire.connect(50000 + at).syn() for at, name in enumerate(NAMES)}
    for name, connection in connections.items():
        connection.client(joins(1, name))
    parts = [{"member_id": each, "assignment": each.encode()} for each in NAMES]
    for name in order:
        leads = name == "one"
        connections[name].broker(response(JOIN, 3, 1, **joined(1, name, *(NAMES if leads else ()))))
        if not one_by_one:
            connections[name].client(sync_request(name, parts if leads else []))
    for name, connection in connections.items():
        if one_by_one:
            connection.client(sync_request(name, parts if name == "one" else []))
        connection.broker(response(SYNC, 3, 2, assignment=name.encode()))
    for name, connection in connections.items():
        exchange(connection, beats(3, name, 1), response(BEAT, 3, 3))
    return saved(folder, wire)


def sync_request(name: str, parts: list[dict[str, Any]]) -> bytes:
    return request(SYNC, 3, 2, name, **of_group(name), assignments=parts)


def is_as_captured(played: Played, group: Coordinator) -> bool:
    """Return whether the members have their captured assignments."""
    assert not played.failures
    found = {verdict(played, each) for each in played.outcomes}
    is_well = found <= {Verdict.SAME, Verdict.EQUIVALENT}
    return is_well and group.is_assigned and group.parts == {name: name.encode() for name in NAMES}


def test_a_sync_is_repeated_after_another_join(tmp_path: Path) -> None:
    """The leader must not wait for the second member, which waits for the rebalance."""
    group, begun, repeated = Coordinator(), asyncio.Event(), asyncio.Event()

    async def join(message: Message) -> Answer:
        name = message.client_id
        if name == "two":
            await begun.wait()
        if name == "three":
            await repeated.wait()
        is_again = name == "one" and group.generation == 2
        answer = await group.join(message)
        if name == "one":
            begun.set()
            if group.generation == 2:
                await group.until_parked()  # the second member has its response before the leader
            if is_again:
                repeated.set()
        return answer

    script: Answers = {"JoinGroup": join, "SyncGroup": group.sync, "Heartbeat": group.beat}
    played = at_script(three_members(tmp_path, ("two", "three", "one")), script)
    assert is_as_captured(played, group)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(24))
def test_members_form_one_generation_in_any_order_of_requests(tmp_path: Path, seed: int) -> None:
    chance, group = Random(seed), Coordinator()

    def slowly(
        answer: Callable[[Message], Awaitable[dict[str, Any]]],
    ) -> Callable[[Message], Awaitable[Answer]]:
        async def wait() -> None:
            for _ in range(chance.choice((0, 0, 1, 5, 30, 200, 1500))):
                await asyncio.sleep(0)  # lets other requests overtake

        async def in_order(message: Message) -> Answer:
            await wait()
            found = await answer(message)
            await wait()
            return found

        return in_order

    async def beat(message: Message) -> dict[str, Any]:
        return group.beat(message)

    script: Answers = {
        "JoinGroup": slowly(group.join),
        "SyncGroup": slowly(group.sync),
        "Heartbeat": slowly(beat),
    }
    capture = three_members(tmp_path, chance.sample(NAMES, 3), one_by_one=seed % 2 == 0)
    played = at_script(capture, script)
    assert is_as_captured(played, group)
