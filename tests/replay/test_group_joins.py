"""Members join the captured generations, and rejoin when the target rebalances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay.compare.step_verdict import compare_outcome
from replay.model.outcome import REJOINED, Outcome, Verdict
from replay.options.pacing import Pace
from replay.options.play_options import PlayOptions
from tests.default_frames import request, response
from tests.replay.run.test_runner import Played, at_script, one_after_another
from tests.replay.support.coordinator import Coordinator
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answer, Answers
from tests.tcp_captures import Wire, WireConnection

JOIN, SYNC, COMMIT = KEYS["JoinGroup"], KEYS["SyncGroup"], KEYS["OffsetCommit"]
BEAT, LEAVE = KEYS["Heartbeat"], KEYS["LeaveGroup"]
LOADS, REBALANCES = 14, 27
SESSION_MS = 60_000
"""So long that nobody has to speak for a member in the time of a test."""


def joins(number: int, client: str, member: str = "") -> bytes:
    body = {"group_id": "g", "member_id": member, "protocol_type": "consumer"}
    return request(JOIN, 3, number, client, **body, session_timeout_ms=SESSION_MS)


def joined(generation: int, member: str, *members: str) -> dict[str, Any]:
    """The response to a join; only the leader gets the list of members."""
    roster = [{"member_id": each, "metadata": b""} for each in members]
    body = {"generation_id": generation, "member_id": member, "protocol_name": "range"}
    return body | {"leader": member if roster else "one", "members": roster, "error_code": 0}


def of_group(client: str, generation: int = 1) -> dict[str, Any]:
    return {"group_id": "g", "member_id": client, "generation_id": generation}


def syncs(number: int, client: str, generation: int) -> bytes:
    return request(SYNC, 3, number, client, **of_group(client, generation))


def both() -> tuple[Wire, WireConnection, WireConnection]:
    wire = Wire()
    return wire, wire.connect().syn(), wire.connect(50001).syn()


def clients_of(played: Played, api: str) -> list[str | None]:
    return [each.client_id for each in played.requests if each.api == api]


def answers(outcomes: list[Outcome], client: str) -> Iterator[tuple[str, int]]:
    for each in sorted(outcomes, key=lambda each: each.step.number):
        if each.step.captured.client_id == client and each.response is not None:
            yield each.step.captured.api, each.response.error_code


def test_a_join_of_a_later_generation_waits_for_the_earlier(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(joins(1, "one"))
    other.client(joins(1, "other"))
    one.broker(response(JOIN, 3, 1, **joined(1, "one", "one")))
    other.broker(response(JOIN, 3, 1, **joined(2, "other")))
    late = {"error_code": LOADS}
    replies = one_after_another(late, late, joined(1, "one", "one"), joined(2, "other"))
    played = at_script(saved(tmp_path, wire), {"JoinGroup": replies})
    assert not played.failures
    assert clients_of(played, "JoinGroup") == ["one", "one", "one", "other"]


def test_a_join_waits_for_requests_before_the_rebalance(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(syncs(1, "one", 1))
    other.client(joins(1, "other"))
    one.broker(response(SYNC, 3, 1))
    other.broker(response(JOIN, 3, 1, **joined(2, "other")))
    replies = one_after_another({"error_code": LOADS}, {"error_code": 0})
    script = {"SyncGroup": replies, "JoinGroup": lambda _: joined(2, "other")}
    played = at_script(saved(tmp_path, wire), script)
    assert not played.failures
    assert [each.client_id for each in played.requests] == ["one", "one", "other"]


def test_a_member_that_joins_too_early_rejoins(tmp_path: Path) -> None:
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
    of_one = [each for each in played.requests if each.client_id == "one"]
    assert [each.body.member_id for each in of_one if each.body] == ["", "one", "one"]
    assert played.run is not None
    assert played.run.ids is not None
    assert played.run.ids.members.live_generation("g", "one", 1) == 6


def test_a_rebalance_seen_by_the_captured_leader_is_awaited(tmp_path: Path) -> None:
    wire = Wire()
    exchange(wire.connect().syn(), syncs(1, "one", 1), response(SYNC, 3, 1, error_code=REBALANCES))
    replies = one_after_another({"error_code": 0}, {"error_code": REBALANCES})
    played = at_script(saved(tmp_path, wire), {"SyncGroup": replies})
    assert list(answers(played.outcomes, "one")) == [("SyncGroup", REBALANCES)]


def beats(number: int, client: str, generation: int) -> bytes:
    return request(BEAT, 3, number, client, **of_group(client, generation))


POSITION = {
    "partition_index": 0,
    "committed_offset": 7,
    "committed_leader_epoch": 0,
    "committed_metadata": "",
}
COMMITTED = [{"name": "t", "partitions": [POSITION]}]


def commits(number: int, client: str, generation: int) -> bytes:
    of_member = {"member_id": client, "generation_id_or_member_epoch": generation}
    return request(COMMIT, 7, number, client, group_id="g", topics=COMMITTED, **of_member)


def done(error: int = 0) -> dict[str, Any]:
    partition = {"partition_index": 0, "error_code": error}
    return {"error_code": error, "topics": [{"name": "t", "partitions": [partition]}]}


def verdict(played: Played, outcome: Outcome) -> Verdict:
    assert played.run is not None
    assert played.run.ids is not None
    return compare_outcome(outcome, played.run.ids)[0]


ERRORS = {
    "SyncGroup": (SYNC, 3, syncs),
    "Heartbeat": (BEAT, 3, beats),
    "OffsetCommit": (COMMIT, 7, commits),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_member_rejoins_after_an_uncaptured_rebalance(tmp_path: Path, name: str) -> None:
    key, version, says = ERRORS[name]
    wire = Wire()
    connection = wire.connect().syn()
    exchange(connection, joins(1, "one"), response(JOIN, 3, 1, **joined(1, "one", "one")))
    exchange(connection, syncs(2, "one", 1), response(SYNC, 3, 2))
    exchange(connection, says(3, "one", 1), response(key, version, 3, **done()))
    exchange(connection, beats(4, "one", 1), response(BEAT, 3, 4))
    replies = one_after_another(joined(5, "live", "live"), joined(6, "live", "live"))
    script = {api: lambda _: done() for api in ERRORS} | {"JoinGroup": replies}
    before = [done()] if name == "SyncGroup" else []
    script[name] = one_after_another(*before, done(REBALANCES), *[done()] * 3)
    played = at_script(saved(tmp_path, wire), script)
    assert not played.failures
    assert clients_of(played, "JoinGroup") == ["one", "one"]
    again = [each.body for each in played.requests if each.api == "JoinGroup"][1]
    assert again is not None
    assert again.member_id == "live"
    last = [each.body for each in played.requests][-1]
    assert last is not None
    assert (last.member_id, last.generation_id) == ("live", 6)
    found = {each.step.number: each for each in played.outcomes}
    assert REJOINED in {change.why for change in found[2].changes}
    assert REJOINED not in {change.why for change in found[3].changes}
    assert verdict(played, found[2]) is Verdict.EQUIVALENT
    assert verdict(played, found[3]) is Verdict.SAME


@pytest.mark.thinned(2)
@pytest.mark.parametrize("is_shown", [True, False])
def test_an_idle_member_rejoins_if_later_requests_were_captured(
    tmp_path: Path, is_shown: bool
) -> None:
    wire = Wire()
    connection, other = wire.connect().syn(), wire.connect(50001).syn()
    first = {"group_id": "g", "protocol_type": "consumer", "session_timeout_ms": 60}
    asks = request(JOIN, 3, 1, "one", **first)
    exchange(connection, asks, response(JOIN, 3, 1, **joined(1, "one", "one")))
    exchange(connection, syncs(2, "one", 1), response(SYNC, 3, 2))
    exchange(connection if is_shown else other, beats(3, "one" if is_shown else "two", 1))
    generations, synced = iter((5, 6)), [4]

    def join(message: Message) -> Answer:
        return joined(next(generations), "live", "live")

    def sync(message: Message) -> Answer:
        assert message.body is not None
        synced.append(message.body.generation_id)
        return done()

    def beat(message: Message) -> Answer:
        return done(REBALANCES if synced[-1] == 5 else 0)

    script: Answers = {"JoinGroup": join, "SyncGroup": sync, "Heartbeat": beat}
    played = at_script(saved(tmp_path, wire), script, PlayOptions(Pace(0.01), timeout_s=60))
    assert not played.failures
    assert clients_of(played, "JoinGroup") == ["one"] * (1 + is_shown)
    (last,) = (each for each in played.outcomes if each.step.captured.api == "Heartbeat")
    assert (REJOINED in {change.why for change in last.changes}) is is_shown
    if is_shown:
        assert last.parts[0].request.generation_id == 6


def test_commits_without_a_member_do_not_join(tmp_path: Path) -> None:
    wire = Wire()
    commit = request(COMMIT, 0, 1, "one", group_id="g", topics=COMMITTED)
    exchange(wire.connect().syn(), commit, response(COMMIT, 0, 1, **done()))
    replies = one_after_another(done(REBALANCES))
    played = at_script(saved(tmp_path, wire), {"OffsetCommit": replies})
    assert not played.failures
    (outcome,) = played.outcomes
    assert verdict(played, outcome) is Verdict.ERROR_CHANGED


def test_a_rebalance_captured_next_is_not_anticipated(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    exchange(connection, joins(1, "one"), response(JOIN, 3, 1, **joined(1, "one", "one")))
    exchange(connection, beats(2, "one", 1), response(BEAT, 3, 2))
    exchange(connection, beats(3, "one", 1), response(BEAT, 3, 3, error_code=REBALANCES))
    script = {
        "JoinGroup": one_after_another(joined(5, "one", "one")),
        "Heartbeat": lambda _: {"error_code": REBALANCES},
    }
    played = at_script(saved(tmp_path, wire), script)
    assert not played.failures
    assert clients_of(played, "Heartbeat") == ["one", "one"]


def test_members_rejoin_with_their_leader(tmp_path: Path) -> None:
    wire = Wire()
    names = ("one", "two", "three")
    connections = {name: wire.connect(50000 + at).syn() for at, name in enumerate(names)}
    for name, connection in connections.items():
        connection.client(joins(1, name))
    for name, connection in connections.items():
        members = names if name == "one" else ()
        connection.broker(response(JOIN, 3, 1, **joined(1, name, *members)))
    generations = dict.fromkeys(names, 4)

    def join(message: Message) -> Answer:
        name = message.client_id or ""
        generations[name] += 1
        if name == "three":
            return joined(6, name)
        generation = generations[name]
        members = names if generation == 6 else names[:2]
        return joined(generation, name, *(members if name == "one" else ()))

    played = at_script(saved(tmp_path, wire), {"JoinGroup": join})
    assert not played.failures
    assert sorted(map(str, clients_of(played, "JoinGroup"))) == [
        "one",
        "one",
        "three",
        "two",
        "two",
    ]
    assert played.run is not None
    assert played.run.ids is not None
    members = played.run.ids.members
    assert [members.live_generation("g", name, 1) for name in names] == [6, 6, 6]


def test_all_members_rejoin_when_one_sees_a_rebalance(tmp_path: Path) -> None:
    wire, one, other = both()
    one.client(joins(1, "one"))
    other.client(joins(1, "other"))
    one.broker(response(JOIN, 3, 1, **joined(1, "one", "one", "other")))
    other.broker(response(JOIN, 3, 1, **joined(1, "other")))
    exchange(one, syncs(2, "one", 1), response(SYNC, 3, 2))
    exchange(other, syncs(2, "other", 1), response(SYNC, 3, 2))
    exchange(one, beats(3, "one", 1), response(BEAT, 3, 3))
    leaves = request(LEAVE, 2, 3, "other", group_id="g", member_id="other")
    exchange(other, leaves, response(LEAVE, 2, 3))
    group, generations = Coordinator(), list[int]()

    def beat(message: Message) -> Answer:
        if not generations and group.is_assigned:
            group.rebalance()
            generations.append(group.generation)
        return group.beat(message)

    script: Answers = {"JoinGroup": group.join, "SyncGroup": group.sync, "Heartbeat": beat}
    script |= {"LeaveGroup": lambda _: done()}
    played = at_script(saved(tmp_path, wire), script)
    assert not played.failures
    assert generations == [group.generation - 1]
    assert group.is_assigned
    (heartbeat,) = (each for each in played.outcomes if each.step.captured.api == "Heartbeat")
    assert verdict(played, heartbeat) is Verdict.EQUIVALENT
    assert REJOINED in {change.why for change in heartbeat.changes}


def test_a_commit_during_a_rebalance_gets_the_error_and_rejoins_as_captured(tmp_path: Path) -> None:
    wire, one, other = both()
    exchange(one, joins(1, "one"), response(JOIN, 3, 1, **joined(1, "one", "one")))
    alone = [{"member_id": "one", "assignment": b"all"}]
    asks = request(SYNC, 3, 2, "one", **of_group("one"), assignments=alone)
    exchange(one, asks, response(SYNC, 3, 2, assignment=b"all"))
    exchange(one, commits(3, "one", 1), response(COMMIT, 7, 3, **done()))
    other.client(joins(1, "other"))
    exchange(one, commits(4, "one", 1), response(COMMIT, 7, 4, **done()))
    exchange(one, beats(5, "one", 1), response(BEAT, 3, 5, error_code=REBALANCES))
    one.client(joins(6, "one", "one"))
    one.broker(response(JOIN, 3, 6, **joined(2, "one", "one", "other")))
    other.broker(response(JOIN, 3, 1, **joined(2, "other")))
    shared = [{"member_id": each, "assignment": each.encode()} for each in ("one", "other")]
    asks = request(SYNC, 3, 7, "one", **of_group("one", 2), assignments=shared)
    exchange(one, asks, response(SYNC, 3, 7, assignment=b"one"))
    exchange(other, syncs(2, "other", 2), response(SYNC, 3, 2, assignment=b"other"))
    group, notified, committed = Coordinator(), asyncio.Event(), list[Message]()

    def beat(message: Message) -> Answer:
        answer = group.beat(message)
        if answer["error_code"]:
            notified.set()
        return answer

    async def commit(message: Message) -> Answer:
        if committed:
            await notified.wait()  # by a heartbeat outside the capture
        committed.append(message)
        return done()

    script: Answers = {"JoinGroup": group.join, "SyncGroup": group.sync}
    played = at_script(saved(tmp_path, wire), script | {"Heartbeat": beat, "OffsetCommit": commit})
    assert not played.failures
    assert clients_of(played, "JoinGroup").count("one") == 2
    assert group.parts == {"one": b"one", "other": b"other"}
