from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.tcp import flow_table, live_rows, reassembly
from dissector.capture.tcp.segment_kernel import process_segments
from tests.corpus import each_capture
from tests.dissector.capture.stage_reading import Reading
from tests.example_counts import examples
from tests.kernel_modes import MODES, running
from tests.tcp_captures import HEADERS_BYTES, Wire, WireConnection, pcap_file

MS = 1_000_000


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Run the kernel in one mode; collect where it stops for lack of room."""
    stops: list[int] = []

    def counted(*arguments: Any) -> int:
        stops.append(process_segments(*arguments))
        return stops[-1]

    monkeypatch.setattr(reassembly, "process_segments", counted)
    with running(request.param, process_segments):
        yield stops


def _whole(connection: WireConnection) -> WireConnection:
    return connection.syn().client(b"ab", b"c").broker(b"defg").client(b"", b"h").fin()


def _read(wire: Wire) -> Reading:
    return Reading(pcap_file(wire.packets))


def test_connections_from_syn_to_fin_take_one_call(run: list[int]) -> None:
    wire = Wire()
    for port in (1, 2, 3):
        _whole(wire.connect(port))
    _whole(wire.connect(hosts=("fd00::1", "fd00::2")))
    _whole(wire.connect(4, vlan=5))
    _whole(wire.connect(1, isn=(7, 8)))  # ports reused after a close
    reading = _read(wire)
    assert run[-1] == len(wire.packets)
    assert len(run) <= 3
    assert [each.ended for each in reading.tcp.connections] == ["fin"] * 6
    for number in range(6):
        assert reading.streams[(number, 0)] == [b"abch"]
        assert reading.streams[(number, 1)] == [b"defg"]
    assert [side.packets for side in reading.tcp.connections[0].sides] == [9, 5]


def test_refused_and_reset_connections_take_one_call(run: list[int]) -> None:
    wire = Wire()
    refused = wire.connect(1)
    refused.send_segment(0, 2, before=True).rst(1)
    wire.connect(2).syn().client(b"ab").rst(1)
    reading = _read(wire)
    assert run[-1] == len(wire.packets)
    assert len(run) <= 3
    assert [each.ended for each in reading.tcp.connections] == ["rst", "rst"]
    assert reading.ends == [(0, 1), (1, 1)]


def test_repeated_segments_take_one_call(run: list[int]) -> None:
    wire = Wire()
    connection = wire.connect().syn().client(b"ab")
    connection.retransmit(0, 0, 2).client(b"cd")
    reading = _read(wire)
    assert run[-1] == len(wire.packets)
    assert len(run) <= 2
    assert reading.streams == {(0, 0): [b"abcd"]}
    assert reading.tcp.connections[0].sides[0].retransmitted_bytes == 2


def test_truncated_packets_take_few_calls(run: list[int]) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(100):
        connection.send(0, bytes(20 + number))
    at = len(wire.packets)
    connection.retransmit(0, 0, 3000).retransmit(0, 0, len(connection.sent[0]))
    packets = [packet.cut(HEADERS_BYTES + 5) for packet in wire.packets]
    packets[at:] = wire.packets[at:]
    data = pcap_file(packets)
    reading = Reading(data)
    assert len(run) <= 3
    side = reading.tcp.connections[0].sides[0]
    assert (side.bytes, side.cut_bytes) == (500, sum(15 + number for number in range(100)))
    assert side.late_bytes > sum(15 + number for number in range(36, 100))
    assert reading.rows == Reading(data, one_by_one=True).rows
    assert side == Reading(data, one_by_one=True).tcp.connections[0].sides[0]


def test_packets_captured_twice_take_few_calls(run: list[int]) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(50):
        connection.send(number % 2, bytes(20 + number)).ack(1 - number % 2)
    data = pcap_file([each for packet in wire.packets for each in (packet, packet)])
    reading = Reading(data)
    assert len(run) <= 4
    truth = Reading(data, one_by_one=True)
    assert reading.rows == truth.rows
    sides = reading.tcp.connections[0].sides
    assert sides == truth.tcp.connections[0].sides
    assert [side.retransmitted_segments for side in sides] == [25, 25]


def test_holes_take_few_calls(run: list[int]) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(400):
        connection.send(number % 2, bytes(20 + number)).ack(1 - number % 2)
    lost = [packet for number, packet in enumerate(wire.packets) if (number + 3) % 9]
    swapped = [*lost[:3], *(each for at in range(3, 601, 2) for each in lost[at : at + 2][::-1])]
    data = pcap_file(replace(packet, time_ns=number * MS) for number, packet in enumerate(swapped))
    reading = Reading(data, 10_000)
    windows = len(data) // 10_000
    assert len(run) < 3 * windows
    truth = Reading(data, one_by_one=True)
    assert reading.rows == truth.rows
    assert list(reading.tcp.connections) == list(truth.tcp.connections)
    assert all(side.gaps > 9 for side in reading.tcp.connections[0].sides)


def test_many_connections_outgrow_the_tables(run: list[int]) -> None:
    wire = Wire()
    for port in range(1, 1500):
        wire.connect(port).syn()
    reading = _read(wire)
    assert len(reading.tcp.connections) == 1499
    assert len(run) < 20
    assert all(side.packets for each in reading.tcp.connections for side in each.sides)


@st.composite
def mixed_captures(draw: st.DrawFn) -> bytes:
    """Draw a capture of connections on few ports, with packets lost, repeated or reordered."""
    wire = Wire()
    for _ in range(draw(st.integers(1, 6))):
        start = len(wire.packets)
        isn = draw(st.sampled_from([(0, 2**32 - 1), (2**32 - 5, 7), (10**6, 2 * 10**6)]))
        vlan = draw(st.sampled_from([None, None, 5]))
        connection = wire.connect(draw(st.integers(1, 2)), vlan=vlan, isn=isn)
        if draw(st.integers(0, 3)):
            connection.syn()
        for _ in range(draw(st.integers(0, 8))):
            connection.windows[draw(st.integers(0, 1))] = draw(st.sampled_from([0, 4096, 4096]))
            connection.send(draw(st.integers(0, 1)), draw(st.binary(max_size=4)))
        end = draw(st.integers(0, 3))
        if end == 1:
            connection.rst(draw(st.integers(0, 1)))
        elif end:
            connection.fin()
        packets = wire.packets[start:]
        del wire.packets[start:]
        if draw(st.booleans()):
            harm = draw(st.lists(st.integers(0, 12), min_size=len(packets), max_size=len(packets)))
            moved = [
                (number + (3 if kind == 1 else 0), number, packet)
                for number, (kind, packet) in enumerate(zip(harm, packets, strict=True))
                for _ in range({2: 0, 3: 2}.get(kind, 1))
            ]
            packets = [
                packet.cut(len(packet.data) - 1) if harm[number] == 4 and packet.payload else packet
                for _, number, packet in sorted(moved, key=lambda each: each[:2])
            ]
        at = draw(st.integers(max(0, len(wire.packets) - 4), len(wire.packets)))
        wire.packets[at:at] = packets
    step_ns = draw(st.sampled_from([1, 10, 40])) * MS
    return pcap_file(
        replace(packet, time_ns=number * step_ns) for number, packet in enumerate(wire.packets)
    )


@given(mixed_captures(), st.integers(1, 2000))
@settings(max_examples=examples(150))
def test_kernels_equal_the_reference(data: bytes, window_bytes: int) -> None:
    one_by_one = Reading(data, one_by_one=True)
    known = list(one_by_one.tcp.connections)
    for mode in MODES:
        with running(mode, process_segments, flow_table):
            moved = Reading(data, window_bytes, moved=True)
            for reading in (Reading(data), Reading(data, window_bytes), moved, _restless(data)):
                assert reading.rows == one_by_one.rows
                assert list(reading.tcp.connections) == known


def _restless(data: bytes) -> Reading:
    """Read a capture packet by packet, and pack connections as soon as nothing waits in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reassembly, "REST_ROWS", 1)
        patch.setattr(live_rows, "IDLE_NS", -MS)
        return Reading(data, 1)


@each_capture("objects of tcp")
def test_recorded_traffic_gives_the_same_rows_as_the_reference(path: Path) -> None:
    reading, one_by_one = Reading(path), Reading(path, one_by_one=True)
    assert reading.rows == one_by_one.rows
    assert list(reading.tcp.connections) == list(one_by_one.tcp.connections)
