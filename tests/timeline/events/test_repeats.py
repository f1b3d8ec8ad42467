"""Equal events are one, with their number."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from dissector import Options
from dissector.engine.reading.capture import Capture
from tests import tcp_captures
from tests.conform.scene import Scene
from tests.timeline.events_of import events_of, only
from tests.timeline.test_cli import run
from timeline.events.event import MAX_EVIDENCE
from timeline.public import timeline
from timeline.timeline import Timeline

API_VERSIONS, PRODUCE, MESSAGE_TOO_LARGE = 18, 0, 10


def legacy_client(connections: int, pause_ms: int = 0) -> Scene:
    """Return a scene with a client that connects, and is closed by the broker, many times."""
    scene = Scene()
    for _ in range(connections):
        connection = scene.connect()
        connection.request(API_VERSIONS, 2, 1).response(API_VERSIONS, 2, 1)
        connection.request(PRODUCE, 2, 2, acks=1).rst(1)
        scene.wait_ms(pause_ms)
    return scene


def test_a_client_that_is_refused_each_time() -> None:
    scene = legacy_client(100)
    events = [each for each in events_of(scene, "connection") if each.event != "reconnect storm"]
    assert [(each.event, each.cause, each.count) for each in events] == [
        ("connected", "", 100),
        ("unanswered", "rst", 100),
    ]
    for each in events:
        assert each.end_ns - each.time_ns > 0.5e9
        assert len(each.evidence) == MAX_EVIDENCE
        assert "connection 0" in each.text
        assert "connection 99" in each.text


def test_a_long_pause_begins_a_new_event() -> None:
    events = events_of(legacy_client(3, pause_ms=700_000), "connection")
    assert [each.count for each in only(events, "connected")] == [1, 1, 1]


def test_a_run_has_a_limited_length() -> None:
    events = events_of(legacy_client(16, pause_ms=500_000), "connection")
    assert [each.count for each in only(events, "connected")] == [8, 8]
    assert [each.time_ns for each in events] == sorted(each.time_ns for each in events)


def test_too_large_batches_of_one_partition() -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(25):
        partition = {"index": 0, "error_code": MESSAGE_TOO_LARGE}
        responses = [{"name": "orders", "partition_responses": [partition]}]
        connection.request(PRODUCE, 9, number, acks=1)
        connection.response(PRODUCE, 9, number, responses=responses)
    (event,) = only(events_of(scene, "producer"), "batch too large")
    assert (event.count, event.certain) == (25, True)


def test_a_filter_counts_what_passes(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", legacy_client(10).wire.packets)
    out = tmp_path / "a.csv"
    options = ["--kind", "connection", "-Y", "connection < 4", "-T", "csv", "-o", str(out)]
    assert run(str(path), *options) == 0
    rows = polars.read_csv(out).filter(polars.col("event") == "connected")
    assert rows["count"].to_list() == [4]


@pytest.mark.long
def test_counts_do_not_depend_on_windows(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", legacy_client(30).wire.packets)
    small = Capture([path], Options(window_bytes=500))
    found = [[each.row() for each in timeline(each)] for each in (path, small)]
    assert found[0] == found[1]


def test_the_number_is_in_each_output(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", legacy_client(10).wire.packets)
    shown = {}
    for form in ("text", "ndjson", "mermaid"):
        out = tmp_path / form
        assert run(str(path), "-T", form, "-o", str(out)) == 0
        shown[form] = out.read_text()
    assert "connected x 10, " in shown["text"]
    assert '"count":10' in shown["ndjson"].replace(" ", "")
    assert "connected x 10" in shown["mermaid"]
    out = tmp_path / "a.parquet"
    assert run(str(path), "-T", "parquet", "-o", str(out)) == 0
    assert polars.read_parquet(out)["count"].max() == 10


def test_events_of_a_live_capture_come_soon(tmp_path: Path) -> None:
    scene = legacy_client(30, pause_ms=5_000)
    path = tcp_captures.write(tmp_path / "a.pcap", scene.wire.packets)
    capture = Capture([path], Options(window_bytes=500))
    timeline_of = Timeline(capture, live=True)
    found, before_end = [], 0
    for window in capture.windows(gleaning=True):
        found += timeline_of.advance(window)
        before_end = len(found)
    found += timeline_of.finish()
    assert before_end > 20
    assert sum(each.count for each in only(found, "connected")) == 30
