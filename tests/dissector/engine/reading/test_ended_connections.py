"""Connections that are forgotten a while after their end: bounded memory, the same figures."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector.capture.tcp import reassembly
from dissector.engine.correlation import correlator
from dissector.engine.reading import connection_ends
from dissector.engine.reading.capture import Capture, Options
from dissector.engine.reading.connection_ends import FORGET_NS
from dissector.summary.statistics import health
from tests import tcp_captures
from tests.corpus import each_capture
from tools.record.steady import FILE_HEADER, records, traffic

PART = 16
SLOWER = 20_000
"""Times between packets are multiplied, so that some connections end in `FORGET_NS`."""

REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)
RESPONSE = struct.pack(">iihi", 10, 1, 0, 0)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack and forget a few connections at once."""
    monkeypatch.setattr(reassembly, "REST_ROWS", PART)
    monkeypatch.setattr(correlator, "REST_ROWS", PART)
    monkeypatch.setattr(connection_ends, "BLOCK_ROWS", PART)


def opened(path: Path, *, forgets: bool = True, window_bytes: int = 1 << 16) -> Capture:
    capture = Capture([path], Options(window_bytes=window_bytes))
    if forgets:
        capture.forget_connections()
    return capture


def short_connections(path: Path, packets: int) -> Path:
    """Write connections of a few exchanges, one after the other."""
    made = traffic(20, "kafka39-kafka-python-as-0.9*", exchanges=1)
    slower = ((time_ns * SLOWER, data) for time_ns, data in made)
    path.write_bytes(FILE_HEADER + b"".join(records(islice(slower, packets))))
    return path


def held_at_each_window(capture: Capture) -> Iterator[tuple[int, int, int]]:
    """Yield how many connections there were, how many are known, and their memory."""
    for _ in capture.windows():
        reading = capture.reading
        assert reading is not None
        connections, tables = reading.streams.connections, reading.correlator.tables
        size = connections.resting.size_bytes + tables.resting.size_bytes
        live = connections.rows.nbytes + tables.connections.nbytes
        yield len(connections), len(connections.kept()), size + live


def figures(capture: Capture) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """Return the state of a capture, and what identifies its exchanges."""
    found = [(each.connection, each.status, each.api, each.client) for each in capture]
    assert capture.reading is not None
    return health(capture.reading, 0), found


def test_memory_does_not_grow_with_ended_connections(tmp_path: Path) -> None:
    path = short_connections(tmp_path / "short.pcap", 24_000)
    held = [*held_at_each_window(opened(path))]
    count = held[-1][0]
    first = [each for each in held if each[0] <= count // 4]
    assert count > 1_500
    assert len(first) > 10
    assert max(known for _, known, _ in held) < 1.2 * max(known for _, known, _ in first)
    assert max(size for *_, size in held) < 1.2 * max(size for *_, size in first)
    *_, (_, all_known, all_size) = held_at_each_window(opened(path, forgets=False))
    assert all_known == count
    assert all_size > 2 * held[-1][2]


def test_figures_count_forgotten_connections(tmp_path: Path) -> None:
    path = short_connections(tmp_path / "short.pcap", 8_000)
    capture = opened(path)
    found = figures(capture)
    assert capture.reading is not None
    connections = capture.reading.streams.connections
    assert len(connections.kept()) < len(connections) // 2
    assert found == figures(opened(path, forgets=False))


@each_capture("forgotten")
def test_figures_are_those_of_all_connections(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_ends, "BLOCK_ROWS", 1)
    monkeypatch.setattr(reassembly, "REST_ROWS", 1)
    monkeypatch.setattr(correlator, "REST_ROWS", 1)
    monkeypatch.setattr(connection_ends, "FORGET_NS", 1_000_000_000)
    whole = figures(opened(path, forgets=False, window_bytes=1 << 14))
    assert figures(opened(path, window_bytes=1 << 14)) == whole


def exchanges(connection: tcp_captures.WireConnection, count: int = 3) -> None:
    """Send some exchanges."""
    for _ in range(count):
        connection.client(REQUEST).broker(RESPONSE)


def others(wire: tcp_captures.Wire, count: int = 6 * PART) -> None:
    """Send connections that end, so that many are packed."""
    for at in range(count):
        number = wire.connections + 1
        connection = wire.connect(20000 + at, isn=(number, number)).syn()
        exchanges(connection)
        connection.fin(0).fin(1)


@pytest.mark.parametrize(("later_ns", "is_new"), [(FORGET_NS // 2, False), (2 * FORGET_NS, True)])
def test_a_late_fin_is_of_its_connection_until_that_is_forgotten(
    tmp_path: Path, later_ns: int, is_new: bool
) -> None:
    wire = tcp_captures.Wire()
    first = wire.connect().syn()
    exchanges(first)
    first.fin(0).fin(1)
    others(wire)
    wire.now_ns += later_ns
    others(wire)
    others(wire)
    before = wire.connections
    first.fin(1)
    path = tcp_captures.write(tmp_path / "late.pcap", wire.packets)
    capture = opened(path, window_bytes=1 << 12)
    found, rows = figures(capture)
    assert found["connections"] == before + is_new
    assert len(rows) == 3 * before
    assert capture.reading is not None
    assert bool(capture.reading.streams.connections.is_kept(np.array([0]))[0]) != is_new


def test_the_same_ports_begin_another_connection_with_the_next_number(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    for _ in range(2):
        others(wire)
        wire.now_ns += 2 * FORGET_NS
    again = wire.connect(20000, isn=(77, 78)).syn()
    exchanges(again)
    path = tcp_captures.write(tmp_path / "again.pcap", wire.packets)
    capture = opened(path, window_bytes=1 << 12)
    rows = figures(capture)[1]
    assert {number for number, *_ in rows} == {*range(2 * 6 * PART + 1)}


def test_connections_that_are_only_silent_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_ends, "MAX_SILENT", PART)
    wire = tcp_captures.Wire()
    for at in range(40 * PART):
        wire.connect(20000 + at, isn=(at + 1, at + 1)).send_segment(0, 2, before=True)
        wire.now_ns += FORGET_NS
    path = tcp_captures.write(tmp_path / "silent.pcap", wire.packets)
    *_, (count, known, _) = held_at_each_window(opened(path, window_bytes=1 << 12))
    assert count == 40 * PART
    assert known < 10 * PART
