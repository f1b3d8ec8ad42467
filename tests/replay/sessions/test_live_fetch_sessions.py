"""Fetch sessions of the target follow those of the capture."""

from __future__ import annotations

from typing import Any, cast

from construct import Container

from cluster.client.broker_metadata import Leader, Topology
from cluster.client.cluster import Cluster
from cluster.conversion.change import Change
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.sessions.live_fetch_sessions import FetchSessions, SessionUse
from tests.default_frames import response as frame
from tests.replay.support.builders import request, topology, whole

FETCH, V = KEYS["Fetch"], 11
CAPTURED, LIVE = 77, 500


def fetch(session: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> Any:
    topics = [{"topic": "orders", "partitions": [{"partition": each} for each in partitions]}]
    gone = [{"topic": "orders", "partitions": list(forgotten)}] if forgotten else []
    body = {
        "session_id": session,
        "session_epoch": epoch,
        "topics": topics if partitions else [],
        "forgotten_topics_data": gone,
    }
    return request("Fetch", V, body)


def step(given: int) -> Step:
    answer = frame(FETCH, V, 1, session_id=given)[4:]
    return Step(0, CapturedExchange(0, "c:1", "b:1", FETCH, V, 1, None, b"", answer, True, 0, 0))


class Client:
    """Uses fetch sessions as a player does."""

    def __init__(self, target: Topology) -> None:
        self.target = target
        self.sessions = FetchSessions(cast(Cluster, target), IdMap(target))

    def ask(
        self, message: Any, given: int = 0, error: int = 0, live: int = LIVE, nodes: int = 1
    ) -> tuple[int, int, list[int]]:
        """Return session id and epoch as sent, and the partitions."""
        use = self.sessions.begin(step(given), message)
        assert use is not None
        self.use: SessionUse = use
        parts = [(node, Container(message.body)) for node in range(nodes)]
        self.changes: list[Change] = self.sessions.assign_session(use, parts)
        answer = whole("Fetch", V, {"error_code": error, "session_id": live}, "response")
        self.sessions.record_response(use, parts, answer)
        body = parts[0][1]
        partitions = [each.partition for topic in body.topics for each in topic.partitions]
        return body.session_id, body.session_epoch, partitions


def test_a_session_uses_the_ids_of_the_target() -> None:
    client = Client(topology({"orders": 1}))
    assert client.ask(fetch(0, 0, 0, 1), given=CAPTURED) == (0, 0, [0, 1])
    assert client.ask(fetch(CAPTURED, 5)) == (LIVE, 1, [])
    assert [(each.role, each.captured, each.sent) for each in client.changes] == [
        ("session_id", CAPTURED, LIVE),
        ("session_epoch", 5, 1),
    ]
    assert client.ask(fetch(CAPTURED, 6, 1)) == (LIVE, 2, [1])


def test_a_lost_session_restarts_with_all_its_partitions() -> None:
    client = Client(topology({"orders": 1}))
    client.ask(fetch(0, 0, 0, 1), given=CAPTURED)
    assert client.ask(fetch(CAPTURED, 1), error=70) == (LIVE, 1, [])
    again = fetch(CAPTURED, 1)
    assert client.use.session is not None
    client.sessions.restart(client.use.session, again.body)
    assert [each.partition for each in again.body.topics[0].partitions] == [0, 1]
    assert client.ask(fetch(CAPTURED, 2, forgotten=(0,))) == (0, 0, [1])
    assert client.ask(fetch(CAPTURED, 3)) == (LIVE, 1, [])


def test_sessions_keep_captured_names_when_requests_are_rewritten() -> None:
    client = Client(topology({"orders": 1}))
    first = fetch(0, 0, 0, 1)
    client.ask(first, given=CAPTURED, error=70)
    for number in range(2):  # requests are rewritten for the target in place
        for topic in first.body.topics:
            topic.topic = "live"
            for each in topic.partitions:
                each.fetch_offset = 1000 + number
        first = fetch(CAPTURED, 1 + number)
        client.ask(first, error=70)
        assert [topic.topic for topic in first.body.topics] == ["orders"]
        offsets = [each.fetch_offset for topic in first.body.topics for each in topic.partitions]
        assert offsets == [0, 0]


def test_fetches_without_a_session_are_unchanged() -> None:
    client = Client(topology({"orders": 1}))
    assert client.ask(fetch(0, -1, 0)) == (0, -1, [0])
    assert not client.changes


def test_a_session_ends() -> None:
    client = Client(topology({"orders": 1}))
    client.ask(fetch(0, 0, 0), given=CAPTURED)
    assert client.ask(fetch(CAPTURED, -1, 0)) == (LIVE, -1, [0])


def test_a_session_split_among_brokers_becomes_full_fetches() -> None:
    target = topology({"orders": 1}, nodes=2)
    target.topics["orders"].leaders[1] = Leader(1, 5)
    client = Client(target)
    assert client.ask(fetch(0, 0, 0, 1), given=CAPTURED, nodes=2) == (0, -1, [0, 1])
    assert client.ask(fetch(CAPTURED, 1), nodes=2) == (0, -1, [0, 1])


def test_a_partition_that_moved_ends_the_session() -> None:
    target = topology({"orders": 1}, nodes=2)
    client = Client(target)
    client.ask(fetch(0, 0, 0), given=CAPTURED)
    target.topics["orders"].leaders[0] = Leader(1, 6)
    target.revision += 1
    assert client.ask(fetch(CAPTURED, 1)) == (0, 0, [0])


def test_a_target_without_sessions_gets_full_fetches() -> None:
    client = Client(topology({"orders": 1}))
    client.ask(fetch(0, 0, 0), given=CAPTURED, live=0)
    assert client.ask(fetch(CAPTURED, 1), live=0) == (0, 0, [0])


def test_old_fetches_have_no_sessions() -> None:
    client = Client(topology({}))
    use = client.sessions.begin(step(0), request("Fetch", 4, {}))
    assert use is not None
    assert use.session is None
    assert not client.sessions.assign_session(use, [(0, request("Fetch", 4, {}).body)])
    assert client.sessions.begin(step(0), request("Produce", 9, {})) is None
