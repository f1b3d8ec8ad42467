"""Slow phases are the network's or the broker's."""

from __future__ import annotations

import pytest

from tests.conform.scene import Scene
from tests.dissector.cli.cli_traffic import request_frame, response_frame
from tests.tcp_captures import WireConnection
from tests.timeline.events_of import events_of, only
from timeline.events.event import Event

HEARTBEAT, METADATA, FETCH = 12, 3, 1


def slow(scene: Scene) -> list[Event]:
    return only(events_of(scene, "connection"), "slow")


def ask(
    scene: Scene, connection: WireConnection, number: int, server_ms: int, lost_ms: int = 0
) -> None:
    """Send a request, again after a while if it was lost, and answer it."""
    start = len(connection.sent[0])
    connection.client(request_frame(HEARTBEAT, 4, number))
    if lost_ms:
        scene.wait_ms(lost_ms)
        connection.retransmit(0, start, len(connection.sent[0]))
    scene.wait_ms(server_ms)
    connection.broker(response_frame(HEARTBEAT, 4, number))


def test_a_broker_that_is_slow_for_a_while() -> None:
    scene = Scene()
    connection = scene.wire.connect(50000).syn()
    for number, server_ms in enumerate((5, 5, 900, 700, 490, 800, 5)):
        ask(scene, connection, number, server_ms)
    scene.wait_ms(11_000)
    ask(scene, connection, 8, 600)
    first, second = slow(scene)
    assert (first.cause, first.certain, first.count) == ("broker", True, 1)
    assert " was slow with 3 requests (Heartbeat) for 2.40 s in all, 90" in first.text
    assert len(first.evidence) == 3
    assert " 1 request (Heartbeat) for 60" in second.text


def test_a_network_that_loses_requests() -> None:
    scene = Scene()
    connection = scene.wire.connect(50000).syn()
    ask(scene, connection, 0, 5)
    ask(scene, connection, 1, 5, lost_ms=1500)
    ask(scene, connection, 2, 5, lost_ms=3000)
    (event,) = slow(scene)
    assert (event.cause, event.certain) == ("network", True)
    assert " was behind a slow network with 2 requests (Heartbeat) for 4.51 s" in event.text


def test_a_request_can_be_slow_for_both_reasons() -> None:
    scene = Scene()
    ask(scene, scene.wire.connect(50000).syn(), 0, 2000, lost_ms=1000)
    assert sorted(event.cause for event in slow(scene)) == ["broker", "network"]


@pytest.mark.parametrize("api", [FETCH, METADATA])
def test_long_polls_are_not_slow(api: int) -> None:
    scene = Scene()
    connection = scene.wire.connect(50000).syn()
    fields = {FETCH: {"topics": []}, METADATA: {"topics": None}}[api]
    connection.client(request_frame(api, 4, 0, **fields))
    scene.wait_ms(5000)
    connection.broker(response_frame(api, 4, 0))
    assert len(slow(scene)) == (api == METADATA)
