"""Three of one captured generation form one at the target, in whatever order it hears them."""

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
from tests.replay.support.scripted import Answer, Answers
from tests.replay.test_joining import BEAT, JOIN, SYNC, beats, joined, joins, of_group, verdict
from tests.tcp_captures import Wire

NAMES = ("one", "two", "three")


def three(folder: Path, order: Sequence[str], *, one_by_one: bool = False) -> Path:
    """
    Capture three that form one generation: their joins are answered in that order, then they sync.

    One by one, the leader is first, and each sync follows the joins before it.
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
            connections[name].client(asks_for_part(name, parts if leads else []))
    for name, connection in connections.items():
        if one_by_one:
            connection.client(asks_for_part(name, parts if name == "one" else []))
        connection.broker(response(SYNC, 3, 2, assignment=name.encode()))
    for name, connection in connections.items():
        exchange(connection, beats(3, name, 1), response(BEAT, 3, 3))
    return saved(folder, wire)


def asks_for_part(name: str, parts: list[dict[str, Any]]) -> bytes:
    return request(SYNC, 3, 2, name, **of_group(name), assignments=parts)


def is_as_captured(played: Played, group: Coordinator) -> bool:
    """Return whether three ended up as in the capture."""
    assert not played.failures
    found = {verdict(played, each) for each in played.outcomes}
    is_well = found <= {Verdict.SAME, Verdict.EQUIVALENT}
    return is_well and group.is_assigned and group.parts == {name: name.encode() for name in NAMES}


def test_a_sync_is_repeated_after_one_more_join(tmp_path: Path) -> None:
    """The leader must not wait for the second, which waits for the group to rebalance."""
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
                await group.until_parked()  # the second is answered before the leader
            if is_again:
                repeated.set()
        return answer

    script: Answers = {"JoinGroup": join, "SyncGroup": group.sync, "Heartbeat": group.beat}
    played = at_script(three(tmp_path, ("two", "three", "one")), script)
    assert is_as_captured(played, group)


@pytest.mark.parametrize("seed", range(24))
def test_members_find_together_in_whatever_order_they_are_heard(tmp_path: Path, seed: int) -> None:
    chance, group = Random(seed), Coordinator()

    def slowly(
        answer: Callable[[Message], Awaitable[dict[str, Any]]],
    ) -> Callable[[Message], Awaitable[Answer]]:
        async def wait() -> None:
            for _ in range(chance.choice((0, 0, 1, 5, 30, 200, 1500))):
                await asyncio.sleep(0)  # lets others go first

        async def heard(message: Message) -> Answer:
            await wait()
            found = await answer(message)
            await wait()
            return found

        return heard

    async def beat(message: Message) -> dict[str, Any]:
        return group.beat(message)

    script: Answers = {
        "JoinGroup": slowly(group.join),
        "SyncGroup": slowly(group.sync),
        "Heartbeat": slowly(beat),
    }
    capture = three(tmp_path, chance.sample(NAMES, 3), one_by_one=seed % 2 == 0)
    played = at_script(capture, script)
    assert is_as_captured(played, group)
