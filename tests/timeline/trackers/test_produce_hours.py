"""Hourly sums of producers, and their maximum of requests in flight."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import Options
from dissector.engine.reading.capture import Capture
from tests import tcp_captures
from tests.conform.scene import Scene
from tests.dissector.cli.cli_traffic import request_frame
from tests.timeline.events_of import events_of
from timeline.events.event import Event
from timeline.public import timeline

PRODUCE = 0


def pipelined(depth: int, rounds: int) -> Scene:
    """Return a scene with `depth` pipelined requests in each round."""
    scene = Scene()
    connection = scene.connect()
    for turn in range(rounds):
        numbers = range(turn * depth, (turn + 1) * depth)
        for number in numbers:
            connection.request(PRODUCE, 9, number, acks=1, topic_data=[])
        for number in numbers:
            connection.response(PRODUCE, 9, number, responses=[])
    return scene


def produces(scene: Scene) -> list[Event]:
    return [each for each in events_of(scene, "producer") if each.event == "produces"]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_requests_in_flight(depth: int) -> None:
    (event,) = produces(pipelined(depth, 3))
    assert event.text.startswith(f"{3 * depth} requests in ")
    assert event.text.endswith(f"; at most {depth} in flight on a connection")
    assert not event.certain  # the capture ends within the hour


def test_a_summary_stands_at_its_own_time() -> None:
    scene = pipelined(1, 3)
    begin_ns, end_ns = scene.wire.packets[3].time_ns, scene.wire.packets[-1].time_ns
    scene.wait_ms(60_000)
    late = scene.connect()
    late.request(18, 2, 1).response(18, 2, 1)
    events = events_of(scene)
    (event,) = (each for each in events if each.event == "produces")
    assert begin_ns <= event.time_ns < event.end_ns <= end_ns
    assert [each.event for each in events] == ["produces", "connected"]


def test_each_connection_has_its_own_requests_in_flight() -> None:
    scene = Scene()
    connections = [scene.connect() for _ in range(4)]
    for each in connections:
        each.request(PRODUCE, 9, 1, acks=1, topic_data=[])
    for each in connections:
        each.response(PRODUCE, 9, 1, responses=[])
    (event,) = produces(scene)
    assert "4 requests" in event.text
    assert event.text.endswith("at most 1 in flight on a connection")


def test_acks_0_has_nothing_in_flight() -> None:
    scene = pipelined(1, 2)
    silent = scene.connect()
    silent.request(PRODUCE, 9, 7, acks=0, topic_data=[])
    silent.request(PRODUCE, 9, 8, acks=0, topic_data=[])
    (event,) = produces(scene)
    assert event.text.startswith("4 requests in ")
    assert event.text.endswith(", 2 with acks=0; at most 1 in flight on a connection")


def test_each_hour_has_an_event() -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(3):
        connection.request(PRODUCE, 9, number, acks=1, topic_data=[])
        connection.response(PRODUCE, 9, number, responses=[])
        scene.wait_ms(3_600_000)
    assert [each.certain for each in produces(scene)] == [True, True, False]


def test_the_hour_of_a_silent_client_ends_with_that_of_others() -> None:
    """Otherwise its summary would come late, out of order."""
    scene = pipelined(1, 2)
    other = scene.connect(broker="10.0.0.3")
    for number in range(4):
        scene.wait_ms(3_600_000)
        other.client(request_frame(PRODUCE, 9, number, client_id="other", acks=1, topic_data=[]))
        other.response(PRODUCE, 9, number, responses=[])
    events = events_of(scene)
    assert [each.time_ns for each in events] == sorted(each.time_ns for each in events)
    assert [each.certain for each in events if each.event == "produces"] == [*[True] * 4, False]


@pytest.mark.long
def test_sums_do_not_depend_on_windows(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", pipelined(5, 40).wire.packets)
    small = Capture([path], Options(window_bytes=500))
    whole = [each.row() for each in timeline(path, kinds=["producer"])]
    assert [each.row() for each in timeline(small, kinds=["producer"])] == whole
    assert "at most 5 in flight" in str(whole[0]["text"])
