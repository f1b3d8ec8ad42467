"""Fetched positions, as far as their session is known."""

from __future__ import annotations

from typing import NamedTuple
from weakref import ref

import pytest

from conform.evidence.fetch_history import LAST_EPOCH, FetchSession, fetch_request_of
from conform.evidence.observation import ConnectionState, Observation
from conform.evidence.reporter import Reporter
from conform.registry.fetch_content import FetchContent, PartitionOffsets
from conform.registry.rank import Severity
from conform.registry.rule import REGISTRY, Rule, RuleFunction
from conform.screens import layout_table
from tests.conform.fetch_scenes import SESSION, fetch_request, fetch_response
from tests.conform.scene import Scene, SceneConnection


@pytest.fixture(autouse=True, params=["objects", "columns"])
def origin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take sessions from decoded messages, then from columns."""
    is_column = request.param == "columns"
    monkeypatch.setattr(layout_table, "MIN_MESSAGES", 1 if is_column else 1 << 30)
    return str(request.param)


class Seen(NamedTuple):
    """Known state at a Fetch: offsets of partitions 0, 1, 2, and the epoch."""

    offsets: list[int | None]
    is_full: bool
    epoch: int | None


def seen(scene: Scene) -> list[Seen]:
    """Return the known state at each Fetch of a scene."""
    found: list[Seen] = []

    def look(observation: Observation, reporter: Reporter) -> None:
        fetching = fetch_request_of(observation)
        assert fetching is not None
        assert fetch_request_of(observation) is fetching
        offsets = [fetching.offset_of(("orders", number)) for number in (0, 1, 2)]
        epoch = None if fetching.session is None else fetching.session.epoch
        found.append(Seen(offsets, fetching.is_full, epoch))

    judge_by(scene, look)
    return found


def judge_by(scene: Scene, look: RuleFunction) -> None:
    """Judge a scene by a rule, and by one with a screen, as only screens read columns."""
    rule = Rule("Z01", "", Severity.NOTE, "", "", "", "exchange", ("Fetch",), look)
    scene.judge([rule, REGISTRY["X05"]])


def begun(**answer: object) -> tuple[Scene, SceneConnection]:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10, 1: 20}, session=(0, 0))
    fetch_response(connection, 1, {}, **{"session_id": SESSION} | answer)
    return scene, connection


def test_old_versions_list_all_partitions() -> None:
    scene = Scene()
    fetch_request(scene.connect(), 1, {0: 10}, version=6)
    assert seen(scene) == [([10, None, None], True, None)]


def test_columns_show_sessions_of_answered_requests(origin: str) -> None:
    scene, connection = begun()
    fetch_request(connection, 2, {1: 25}, session=(SESSION, 1))
    fetch_response(connection, 2, {1: {"high_watermark": 90}}, session_id=SESSION)
    fetch_request(connection, 3, {}, session=(SESSION, 2))
    contents: list[FetchContent | None] = []
    judge_by(scene, lambda observation, _: contents.append(observation.fetch))
    changed = FetchContent(
        SESSION,
        1,
        offsets={("orders", 1): 25},
        forgotten=(),
        answered_id=SESSION,
        answers=[(("orders", 1), PartitionOffsets(90, 0))],
        first_ends=[None],
    )
    assert contents[1:] == [changed if origin == "columns" else None, None]


def test_a_session_keeps_adds_and_forgets_partitions() -> None:
    scene, connection = begun()
    fetch_request(connection, 2, {1: 25, 2: 30}, session=(SESSION, 1))
    fetch_response(connection, 2, {}, session_id=SESSION)
    forgotten = [{"topic": "orders", "partitions": [0]}]
    fetch_request(connection, 3, {}, session=(SESSION, 2), forgotten_topics_data=forgotten)
    fetch_response(connection, 3, {}, session_id=SESSION)
    fetch_request(connection, 4, {}, session=(SESSION, 3))
    assert seen(scene) == [
        ([10, 20, None], True, None),
        ([10, 25, 30], False, 1),
        ([10, 25, 30], False, 2),
        ([None, 25, 30], False, 3),
    ]


def test_a_refused_request_makes_its_session_unknown() -> None:
    scene, connection = begun()
    fetch_request(connection, 2, {}, session=(SESSION, 1))
    fetch_response(connection, 2, {}, error_code=70)
    fetch_request(connection, 3, {}, session=(SESSION, 1))
    assert [each.epoch for each in seen(scene)] == [None, 1, None]


def test_a_broker_may_refuse_sessions() -> None:
    scene, connection = begun(session_id=0)
    fetch_request(connection, 2, {}, session=(0, 1))
    assert seen(scene)[1] == ([None, None, None], False, None)


def test_sessions_are_unknown_after_lost_packets() -> None:
    scene, connection = begun()
    fetch_request(connection, 2, {1: 25}, session=(SESSION, 1))
    fetch_response(connection, 2, {}, session_id=SESSION)
    fetch_request(connection, 3, {}, session=(SESSION, 2))
    scene.lose(3)
    assert {each.epoch for each in seen(scene)} == {None}


def test_epochs_wrap_without_zero() -> None:
    assert FetchSession(epoch=7).next_epoch() == 8
    assert FetchSession(epoch=LAST_EPOCH).next_epoch() == 1


def test_no_exchange_is_kept() -> None:
    scene, connection = begun()
    fetch_request(connection, 2, {1: 25}, session=(SESSION, 1))
    fetch_response(connection, 2, {}, session_id=SESSION)
    connections: list[ConnectionState] = []
    observations: list[ref[Observation]] = []

    def look(observation: Observation, reporter: Reporter) -> None:
        fetch_request_of(observation)
        connections.append(observation.connection)
        observations.append(ref(observation))

    judge_by(scene, look)
    assert len(connections) == 2
    assert [observation() for observation in observations] == [None, None]


def test_a_session_of_two_connections_is_not_known() -> None:
    scene, connection = begun()
    other = scene.connect()
    for number, each in enumerate((connection, other, connection), 1):
        fetch_request(each, 1 + number, {}, session=(SESSION, number))
        fetch_response(each, 1 + number, {}, session_id=SESSION)
    assert [each.epoch for each in seen(scene)] == [None, 1, None, None]
