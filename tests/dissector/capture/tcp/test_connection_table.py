from __future__ import annotations

import io
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.hashing import SECRET
from dissector.capture.packets.layers import Layers
from dissector.capture.tcp import flow_table
from dissector.capture.tcp.connections import END_REASONS, Connection, ConnectionColumns, Side
from dissector.kernel.packed_rows import BLOCK_ROWS
from tests.dissector.capture.handmade_packets import ACK
from tests.dissector.capture.stage_reading import Reading
from tests.tcp_captures import Wire, pcap_file


def _as_object(columns: ConnectionColumns, row: int) -> Connection:
    """Return a row as an object."""
    (a_high, a_low), (b_high, b_low) = columns.address[row].tolist()
    a, b = columns.port[row].tolist()
    sent = zip(columns.packets[row].tolist(), columns.bytes[row].tolist(), strict=True)
    first, second = (Side(*side) for side in sent)
    return Connection(
        id=int(columns.number[row]),
        network=int(columns.network[row]),
        a=(a_high, a_low, a),
        b=(b_high, b_low, b),
        first_ns=int(columns.first_ns[row]),
        last_ns=int(columns.last_ns[row]),
        sides=(first, second),
        syn_seen=bool(columns.syn_seen[row]),
        ended=END_REASONS[columns.ended[row]],
    )


def _in_columns(connection: Connection) -> Connection:
    """Return a connection with those statistics that `ConnectionColumns` has."""
    a, b = (Side(side.packets, side.bytes) for side in connection.sides)
    return replace(connection, sides=(a, b))


def _many() -> Reading:
    """Return connections with different endpoints, ends and losses."""
    wire = Wire()
    for number in range(50):
        vlan = number if number % 3 else None
        connection = wire.connect(1 + number, vlan=vlan, isn=(number, 5))
        if number % 5:
            connection.syn()
        connection.client(b"ab")
        if number % 2:
            connection.retransmit(0, 0, 2)
        if number % 7 == 0:
            connection.fin()
        elif number % 7 == 1:
            connection.rst(0)
    wire.connect(hosts=("fd00::1", "ffff::2")).syn()
    return Reading(pcap_file(wire.packets))


def test_columns_equal_objects() -> None:
    reading = _many()
    known = reading.tcp.connections
    columns = known.columns()
    assert [_as_object(columns, row) for row in range(51)] == [*map(_in_columns, known)]
    some = np.array([40, 2], dtype=np.int64)
    assert [_as_object(known.columns(some), row) for row in (0, 1)] == [
        _in_columns(known[40]),
        _in_columns(known[2]),
    ]
    firsts = known.first_packets(np.arange(51, dtype=np.int64))
    assert firsts.tolist() == sorted(set(firsts.tolist()))
    assert known.first_packets(some).tolist() == firsts[some].tolist()
    assert known[-1].a_text == "[fd00::1]:50000"
    assert [each.id for each in known[48:]] == [48, 49, 50]
    assert {each.ended for each in known} == {"", "fin", "rst"}
    assert known[1].sides[0].retransmitted_bytes == 2


def test_starts_of_streams_follow_from_both_syns() -> None:
    known = _many().tcp.connections
    assert [known.has_both_syns(number) for number in (0, 1, 5, 6)] == [False, True, False, True]
    assert known.first_sequences(np.array([6])).tolist() == [[7, 6]]


def test_sums_and_first_bytes_of_streams() -> None:
    wire = _closed(41)
    wire.connect(100).syn().client(b"a")
    wire.connect(101).syn()
    known = Reading(pcap_file(wire.packets)).tcp.connections
    names = "packets", "bytes", "retransmitted_segments", "retransmitted_bytes"
    sides = [side for each in known for side in each.sides]
    assert known.sums(*names) == [sum(getattr(side, name) for side in sides) for name in names]
    last = np.arange(40, 43)
    assert known.first_byte(last).tolist() == [[ord("a"), -1], [ord("a"), -1], [-1, -1]]
    assert [known.first_bytes(number, 0) for number in last] == [b"abcdefg", b"a", b""]


def test_how_far_streams_were_sent_and_acknowledged() -> None:
    """Acknowledged: all, a part, and the bytes of a side that is not in the capture."""
    wire = Wire()
    wire.connect(1, isn=(100, 200)).syn().client(b"abc").broker(b"de").fin()
    wire.connect(2, isn=(100, 200)).syn().client(b"abc").send_segment(0, ACK, b"defg")
    wire.connect(3, isn=(100, 200)).client(b"abc")
    of_one_side = [packet for packet in wire.packets if packet.side == 0 or packet.connection < 2]
    known = Reading(pcap_file(of_one_side)).tcp.connections
    every = np.arange(3)
    found = known.deliveries(every)
    assert found.sent.tolist()[:2] == [[4, 3], [7, 0]]
    assert found.acked.tolist() == [[4, 3], [3, 0], [-1, -1]]
    assert known.next_sequences(every).tolist() == [[105, 204], [108, 201], [104, 201]]
    assert known.fin_sequences(every).tolist() == [[104, 203], [-1, -1], [-1, -1]]


def test_state_survives_pickling_and_renumbering() -> None:
    reading = _many()
    before = list(reading.tcp.connections)
    streams = pickle.loads(pickle.dumps(reading.tcp))
    assert list(streams.connections) == before
    kept = np.array([3, 4, 9, 50])
    streams.retain(kept)
    after = list(streams.connections)
    assert [each.id for each in after] == [0, 1, 2, 3]
    assert [(each.a, each.sides) for each in after] == [
        (before[number].a, before[number].sides) for number in kept.tolist()
    ]


def _closed(count: int) -> Wire:
    """Return connections that end, with unlike times, losses and networks."""
    wire, source = Wire(), random.Random(3)
    for number in range(count):
        vlan = number % 5 or None
        isn = source.randrange(1 << 32), source.randrange(1 << 32)
        connection = wire.connect(1 + number, vlan=vlan, isn=isn).syn().client(b"ab")
        if number % 4 == 0:
            connection.retransmit(0, 0, 2)
        if number % _LOSSY == 0:
            connection.client(b"cd", b"ef", b"gh", b"ij", b"kl", b"mn")
        connection.fin()
    return wire


_LOSSY, _LOST = 20, (b"cd", b"gh", b"kl")
"""Of each of so many connections these segments are lost."""


@pytest.fixture(scope="module")
def closed() -> tuple[Wire, Reading]:
    wire = _closed(2 * BLOCK_ROWS)
    wire.packets = [each for each in wire.packets if each.payload not in _LOST]
    return wire, Reading(pcap_file(wire.packets), 1 << 16)


def test_a_closed_connection_costs_few_bytes(closed: tuple[Wire, Reading]) -> None:
    table = closed[1].tcp.connections
    resting = int(table.resting.has(np.arange(2 * BLOCK_ROWS)).sum())
    assert resting >= BLOCK_ROWS
    assert table.resting.size_bytes <= 70 * resting
    assert len(table.rows) < 3 * BLOCK_ROWS


def test_connections_at_rest_are_the_same(closed: tuple[Wire, Reading]) -> None:
    wire, reading = closed
    known, whole = (
        reading.tcp.connections,
        Reading(pcap_file(wire.packets), 1 << 24).tcp.connections,
    )
    assert list(known) == list(whole)
    every = np.arange(len(whole))
    assert known.resting.has(every).any()
    assert not whole.resting.has(every).any()
    for name in (
        "first_packets",
        "first_sequences",
        "fin_sequences",
        "missing_sides",
        "first_byte",
    ):
        assert (getattr(known, name)(every) == getattr(whole, name)(every)).all()
    for number in (0, 1, 2 * BLOCK_ROWS - 1):
        assert known.endpoints(number) == whole.endpoints(number)
        assert known.has_both_syns(number)
    assert known.first_bytes(1, 0) == b"ab"


def test_late_packets_wake_connections_at_rest_in_another_process(
    closed: tuple[Wire, Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of lost segments are no retransmissions."""
    wire, reading = closed
    woken = [0, 20, 40]  # of one network
    late = [each for each in _closed(41).packets if each.connection in woken]
    before = reading.tcp.connections[0]
    whole = Reading(pcap_file([*wire.packets, *late]), 1 << 24).tcp.connections
    kept = pickle.dumps(reading.tcp)
    monkeypatch.setattr(flow_table, "SECRET", SECRET[::-1].copy())
    streams = pickle.loads(kept)
    assert streams.connections.resting.has(np.arange(41)).all()
    for packets in read_packets(["-"], stdin=io.BytesIO(pcap_file(late))):
        streams.feed(Layers().segments(packets))
    assert streams.connections.resting.has(np.arange(41)).tolist() == [
        number not in woken for number in range(41)
    ]
    assert [streams.connections[number] for number in woken] == [whole[number] for number in woken]
    assert streams.connections[0].sides[0].packets == 2 * before.sides[0].packets + len(_LOST)
    assert len(streams.connections) == 2 * BLOCK_ROWS
    streams.retain(np.array([4, 0]))
    assert [each.sides[0].packets for each in streams.connections] == [
        reading.tcp.connections[4].sides[0].packets,
        2 * before.sides[0].packets + len(_LOST),
    ]
