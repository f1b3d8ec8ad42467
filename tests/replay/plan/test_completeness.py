"""Completeness of captured connections."""

from __future__ import annotations

from pathlib import Path

from replay.plan.plan import Plan
from tests.replay.plan.test_plan import beat
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire


def test_a_complete_connection(tmp_path: Path) -> None:
    wire = Wire()
    exchange(wire.connect().syn(), *beat(1)).fin()
    with Plan.of(saved(tmp_path, wire)) as plan:
        (known,) = plan.connections.values()
    assert known.score == 1
    assert (known.client, known.broker) == ("10.0.0.1:50000", "10.0.0.2:9092")


def test_a_connection_captured_midway(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect()
    for number in range(3):
        exchange(connection, *beat(number))
    with Plan.of(saved(tmp_path, wire)) as plan:
        (known,) = plan.connections.values()
    assert known.is_midway
    assert 0 < known.score < 1


def test_unanswered_requests_are_counted(tmp_path: Path) -> None:
    wire = Wire()
    connection = exchange(wire.connect().syn(), *beat(1))
    connection.client(beat(2)[0])
    with Plan.of(saved(tmp_path, wire)) as plan:
        (known,) = plan.connections.values()
    assert (known.unanswered, known.score) == (1, 0.5)


def test_lost_packets_are_counted(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(8):
        exchange(connection, *beat(number))
    with_data = [at for at, packet in enumerate(wire.packets) if packet.data]
    del wire.packets[with_data[5]]
    with Plan.of(saved(tmp_path, wire)) as plan:
        (known,) = plan.connections.values()
    assert known.gap_bytes > 0
    assert known.score < 1
