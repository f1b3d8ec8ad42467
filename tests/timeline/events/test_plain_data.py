"""Plain exchanges by their columns are events as they are by their bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dissector.public import open_capture
from tests import tcp_captures
from tests.conform.fetch_scenes import SESSION, fetch_request, fetch_response
from tests.conform.scene import Scene
from tests.corpus import FOLDER
from tests.timeline.events_of import only
from timeline.events import plain_data
from timeline.events.event import Event
from timeline.events.plain_data import FETCH, PRODUCE, PlainData
from timeline.public import timeline

CAPTURES = (
    *("kafka4-errors.pcap", "kafka4-leader-change.pcap", "kafka39-franz-go.pcap"),
    *("kafka44-java-clients.pcap", "kafka4-three-nodes.pcap", "demo.pcap"),
)
NEVER = 1 << 40


def found(path: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Return the events of a capture, with columns from so many exchanges on."""
    monkeypatch.setattr(plain_data, "MIN_ROWS", least)
    return list(timeline(path))


def plain_rows(path: Path, key: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many exchanges of an API are plain."""
    monkeypatch.setattr(plain_data, "MIN_ROWS", 1)
    count = 0
    for window in open_capture(path).windows():
        table = window.exchanges
        plain = PlainData(table, np.ones(len(table), np.bool_))
        count += sum(plain.of(row) is not None for row in np.flatnonzero(table.api_key == key))
    return count


@pytest.mark.parametrize("name", CAPTURES)
def test_columns_and_bodies_show_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_columns = found(FOLDER / name, 1, monkeypatch)
    assert by_columns == found(FOLDER / name, NEVER, monkeypatch)
    assert sum(plain_rows(FOLDER / name, key, monkeypatch) for key in (PRODUCE, FETCH))


def sessions(path: Path, count: int) -> Path:
    """Write a capture of Fetches at two brokers, each of a new session; one is throttled."""
    scene = Scene()
    for broker in ("10.0.0.8", "10.0.0.9"):
        connection = scene.connect(broker=broker)
        for number in range(count):
            throttled = {"throttle_time_ms": 70} if number == 1 else {}
            fetch_request(connection, number, {0: number}, session=(0, 0))
            fetch_response(connection, number, {0: {}}, session_id=SESSION + number, **throttled)
        connection.fin()
    return tcp_captures.write(path, scene.wire.packets)


def test_new_sessions_and_throttle_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sessions(tmp_path / "sessions.pcap", 5)
    events = found(path, 1, monkeypatch)
    assert [each.count for each in only(events, "fetch session")] == [5, 5]
    assert len(only(events, "throttled")) == 2
    assert events == found(path, NEVER, monkeypatch)


def test_a_null_that_is_not_allowed_is_not_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    connection = scene.connect()
    for number, topics in enumerate([[], None]):
        connection.request(1, 12, number, topics=topics, session_epoch=0)
        connection.response(1, 12, number, responses=[])
    path = tcp_captures.write(tmp_path / "null.pcap", scene.wire.packets)
    assert plain_rows(path, FETCH, monkeypatch) == 1
