"""Requests that hang are events: the network lost them, or the broker does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conform.scene import Scene
from tests.dissector.cli.cli_traffic import request_frame, response_frame
from tests.tcp_captures import WireConnection
from tests.timeline.events_of import events_of, only
from timeline.events.event import Event

METADATA, PRODUCE, FETCH, JOIN_GROUP = 3, 0, 1, 11


def begun(scene: Scene) -> WireConnection:
    """Return a connection with an answered request."""
    connection = scene.wire.connect(50000).syn()
    connection.client(request_frame(METADATA, 9, 1, topics=None))
    return connection.broker(response_frame(METADATA, 9, 1))


def go_on(scene: Scene, seconds: int) -> None:
    """Let the capture go on with another connection."""
    scene.wait_ms(1000 * seconds)
    other = scene.wire.connect(50001).syn()
    other.client(request_frame(METADATA, 9, 1, topics=None))
    other.broker(response_frame(METADATA, 9, 1))


def send_lost(connection: WireConnection, scene: Scene, resent: int) -> None:
    """Send a request that is never acknowledged, with retransmissions each second."""
    start = len(connection.sent[0])
    connection.send_segment(0, 24, request_frame(METADATA, 9, 2, topics=None))
    for _ in range(resent):
        scene.wait_ms(1000)
        connection.retransmit(0, start, len(connection.sent[0]))


def unanswered(scene: Scene) -> list[Event]:
    return only(events_of(scene, "connection"), "unanswered")


def test_a_request_that_was_never_acknowledged() -> None:
    scene = Scene()
    send_lost(begun(scene), scene, resent=3)
    go_on(scene, 2)
    (event,) = unanswered(scene)
    assert (event.cause, event.certain) == ("network", True)
    assert "never acknowledged by TCP for 5." in event.text
    assert event.text.endswith("when the capture ends; 3 retransmissions")
    assert event.end_ns - event.time_ns > 5 * 10**9


def test_a_lost_request_whose_client_resets_the_connection() -> None:
    scene = Scene()
    connection = begun(scene)
    send_lost(connection, scene, resent=8)
    connection.rst(0)
    (event,) = unanswered(scene)
    assert event.cause == "network"
    assert event.text.endswith("8 retransmissions; the client closed or reset it first")


def test_a_client_that_gives_up_alone_ends_the_wait() -> None:
    scene = Scene()
    connection = begun(scene)
    send_lost(connection, scene, resent=4)
    connection.send_segment(0, 17)
    go_on(scene, 1000)
    (event,) = unanswered(scene)
    assert "for 4.00 s; 4 retransmissions; the client closed it first" in event.text


def test_an_acknowledged_request_without_an_answer() -> None:
    scene = Scene()
    begun(scene).client(request_frame(METADATA, 9, 2, topics=None))
    go_on(scene, 90)
    (event,) = unanswered(scene)
    assert (event.cause, event.certain) == ("broker", True)
    assert "was acknowledged by TCP, and not answered for 1 min 30 s" in event.text


def test_a_request_in_flight_when_the_capture_ends() -> None:
    scene = Scene()
    connection = begun(scene)
    connection.client(request_frame(METADATA, 9, 2, topics=None))
    go_on(scene, 20)
    assert not unanswered(scene)
    scene = Scene()
    send_lost(begun(scene), scene, resent=1)
    assert not unanswered(scene)


@pytest.mark.parametrize(
    ("key", "version", "fields"),
    [
        (FETCH, 11, {"max_wait_ms": 60_000}),
        (PRODUCE, 7, {"acks": -1, "timeout_ms": 60_000}),
        (JOIN_GROUP, 5, {"group_id": "g", "rebalance_timeout_ms": 60_000}),
    ],
)
def test_a_request_may_wait_as_long_as_it_says(
    key: int, version: int, fields: dict[str, Any]
) -> None:
    found = []
    for seconds in (80, 100):
        scene = Scene()
        begun(scene).client(request_frame(key, version, 2, **fields))
        go_on(scene, seconds)
        found.append([each.cause for each in unanswered(scene)])
    assert found == [[], ["broker"]]


def test_a_direction_that_is_not_captured_proves_nothing() -> None:
    scene = Scene()
    connection = begun(scene)
    send_lost(connection, scene, resent=5)
    go_on(scene, 90)
    scene.wire.packets = [each for each in scene.wire.packets if each.side == 0 or each.connection]
    assert not unanswered(scene)


def test_an_answer_that_is_not_captured_is_no_missing_answer() -> None:
    scene = Scene()
    connection = begun(scene)
    connection.client(request_frame(METADATA, 9, 2, topics=None))
    connection.broker(response_frame(METADATA, 9, 2))
    scene.lose(-1)
    go_on(scene, 90)
    assert not unanswered(scene)
