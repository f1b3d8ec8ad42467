"""Connections closed after idle time, and refused ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import open_capture
from tests import tcp_captures
from tests.conform.scene import Scene
from tests.dissector.capture.handmade_packets import ACK, RST, SYN
from tests.timeline.events_of import brief, events_of, only
from timeline.public import timeline

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0


@pytest.mark.parametrize(("side", "closer"), [(0, "client"), (1, "broker")])
def test_an_idle_close(side: int, closer: str) -> None:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    scene.wait_ms(600_000)
    connection.rst(side)
    (event,) = events_of(scene, "connection")
    assert (event.event, event.cause, event.certain) == ("idle close", closer, True)
    assert f"the {closer} closed it after 10 min 0 s" in event.text


def test_a_connection_in_use_is_not_idle() -> None:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    connection.fin()
    assert not events_of(scene, "connection")


def attempts(count: int, *, refused: bool) -> Scene:
    """Return a scene with a broker, and failed connections to it."""
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    for number in range(count):
        scene.wait_ms(1000)
        failed = scene.wire.connect(51000 + number)
        failed.send_segment(0, SYN, before=True)
        if refused:
            failed.send_segment(1, RST | ACK)
    return scene


def test_refused_connections() -> None:
    (event,) = events_of(attempts(3, refused=True), "connection")
    assert brief([event]) == [("connect failed", "refused", True)]
    assert event.text.endswith("; 3 attempts")
    assert event.subject == "10.0.0.1 to 10.0.0.2:9092"
    assert [(each.api, each.connection) for each in event.evidence] == [
        (None, number) for number in (1, 2, 3)
    ]


def test_connections_without_a_response() -> None:
    (event,) = events_of(attempts(2, refused=False), "connection")
    assert brief([event]) == [("connect failed", "no answer", False)]


def test_unknown_addresses_count_only_with_a_port(tmp_path: Path) -> None:
    scene = Scene()
    scene.wire.connect(51000).send_segment(0, SYN, before=True)
    path = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    assert not list(timeline(path))
    (event,) = timeline(open_capture(path, ports=[9092]))
    assert (event.event, event.cause) == ("connect failed", "no answer")


def close_after_acks_0(side: int, wait_ms: int) -> list[tuple[str, str, bool]]:
    """Return the events of a producer with a connection closed after a Produce with acks=0."""
    scene = Scene()
    connection = scene.connect()
    connection.request(API_VERSIONS, 2, 1).response(API_VERSIONS, 2, 1)
    connection.request(PRODUCE, 9, 2, acks=0, topic_data=[])
    scene.wait_ms(wait_ms)
    connection.rst(side)
    return brief(only(events_of(scene, "producer"), "hung up"))


def test_a_broker_that_closes_after_acks_0() -> None:
    assert close_after_acks_0(1, 5) == [("hung up", "acks=0", False)]


def test_closes_for_other_reasons() -> None:
    assert close_after_acks_0(0, 5) == []
    assert close_after_acks_0(1, 5000) == []
