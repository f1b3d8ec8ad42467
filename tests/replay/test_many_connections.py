"""Many concurrent connections in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.protocol.apis import KEYS
from tests.default_frames import request, response
from tests.replay.run.test_runner import at_script, beat
from tests.replay.support.replay_captures import saved
from tests.tcp_captures import Wire

CONNECTIONS, REQUESTS = 1000, 2
HEARTBEAT = KEYS["Heartbeat"]


def _capture(folder: Path) -> str:
    wire = Wire()
    connections = [wire.connect(10_000 + number).syn() for number in range(CONNECTIONS)]
    for number in range(REQUESTS):
        for connection in connections:
            connection.client(request(HEARTBEAT, 3, number, group_id="g", member_id=f"m{number}"))
    for number in range(REQUESTS):
        for connection in connections:
            connection.broker(response(HEARTBEAT, 3, number))
    return saved(folder, wire)


@pytest.mark.long
def test_a_thousand_connections_are_replayed_concurrently(tmp_path: Path) -> None:
    played = at_script(_capture(tmp_path), {"Heartbeat": lambda _: beat(0)})
    assert not played.failures
    assert len(played.requests) == len(played.outcomes) == CONNECTIONS * REQUESTS
    by_connection: dict[int, list[int]] = {}
    for each in played.outcomes:
        captured = each.step.captured
        by_connection.setdefault(captured.connection, []).append(captured.correlation_id)
    assert len(by_connection) == CONNECTIONS
    assert all(numbers == list(range(REQUESTS)) for numbers in by_connection.values())
