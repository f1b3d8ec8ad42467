"""Members whose requests overlapped join the generations that the capture shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay.outcome import Outcome
from tests.frames import request, response
from tests.packets import Talk, Wire
from tests.replay.captures import exchange, saved
from tests.replay.scripted import Answer
from tests.replay.test_run import Played, at_script, one_after_another

JOIN, SYNC = KEYS["JoinGroup"], KEYS["SyncGroup"]
LOADS, REBALANCES = 14, 27


def joins(number: int, client: str, member: str = "") -> bytes:
    body = {"group_id": "g", "member_id": member, "protocol_type": "consumer"}
    return request(JOIN, 3, number, client, **body)


def joined(generation: int, member: str, *members: str) -> dict[str, Any]:
    """Whoever is told the members leads them."""
    told = [{"member_id": each, "metadata": b""} for each in members]
    body = {"generation_id": generation, "member_id": member, "protocol_name": "range"}
    return body | {"leader": member if told else "one", "members": told, "error_code": 0}


def syncs(number: int, client: str, generation: int) -> bytes:
    body = {"group_id": "g", "member_id": client, "generation_id": generation}
    return request(SYNC, 3, number, client, **body)


def both() -> tuple[Wire, Talk, Talk]:
    wire = Wire()
    return wire, wire.talk().syn(), wire.talk(50001).syn()


def asked(played: Played, api: str) -> list[str | None]:
    return [each.client_id for each in played.asked if each.api == api]


def answers(outcomes: list[Outcome], client: str) -> Iterator[tuple[str, int]]:
    for each in sorted(outcomes, key=lambda each: each.step.number):
        if each.step.captured.client_id == client and each.response is not None:
            yield each.step.captured.api, each.response.error_code


def test_who_joins_a_later_generation_waits_for_the_earlier(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(joins(1, "one"))
    other.client(joins(1, "other"))
    one.broker(response(JOIN, 3, 1, **joined(1, "one", "one")))
    other.broker(response(JOIN, 3, 1, **joined(2, "other")))
    late = {"error_code": LOADS}
    told = one_after_another(late, late, joined(1, "one", "one"), joined(2, "other"))
    played = at_script(saved(tmp_path, wire), {"JoinGroup": told})
    assert not played.failures
    assert asked(played, "JoinGroup") == ["one", "one", "one", "other"]


def test_who_joins_waits_for_those_who_were_told_of_no_change(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(syncs(1, "one", 1))
    other.client(joins(1, "other"))
    one.broker(response(SYNC, 3, 1))
    other.broker(response(JOIN, 3, 1, **joined(2, "other")))
    told = one_after_another({"error_code": LOADS}, {"error_code": 0})
    script = {"SyncGroup": told, "JoinGroup": lambda _: joined(2, "other")}
    played = at_script(saved(tmp_path, wire), script)
    assert not played.failures
    assert [each.client_id for each in played.asked] == ["one", "one", "other"]


def test_who_comes_too_early_joins_again(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(joins(1, "one"))
    other.client(joins(1, "other"))
    one.broker(response(JOIN, 3, 1, **joined(1, "one", "one", "other")))
    other.broker(response(JOIN, 3, 1, **joined(1, "other")))
    generations = iter(range(4, 9))

    def join(message: Message) -> Answer:
        if message.client_id == "other":
            return joined(6, "other")
        generation = next(generations)
        members = ["one", "other"] if generation == 6 else ["one"]
        return joined(generation, "one", *members)

    played = at_script(saved(tmp_path, wire), {"JoinGroup": join})
    assert not played.failures
    of_one = [each for each in played.asked if each.client_id == "one"]
    assert [each.body.member_id for each in of_one if each.body] == ["", "one", "one"]
    assert played.run is not None
    assert played.run.world is not None
    assert played.run.world.members.turn("g", "one", 1) == 6


def test_a_rebalance_that_a_leader_was_told_of_is_waited_for(tmp_path: Path) -> None:
    wire = Wire()
    exchange(wire.talk().syn(), syncs(1, "one", 1), response(SYNC, 3, 1, error_code=REBALANCES))
    told = one_after_another({"error_code": 0}, {"error_code": REBALANCES})
    played = at_script(saved(tmp_path, wire), {"SyncGroup": told})
    assert list(answers(played.outcomes, "one")) == [("SyncGroup", REBALANCES)]
