from __future__ import annotations

from dataclasses import astuple

import numpy as np

from dissector.capture.tcp.connections import END_REASONS, Connection, ConnectionColumns, Side
from dissector.capture.tcp.objects.connection_state import FlowKey
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.capture.tcp.tables.flow_table import FlowTable, any_network_key

KEY: FlowKey = (3, -5, 0xFFFF_0A00_0001, 50000, 0, 2**63 - 1, 9092)


def _as_object(columns: ConnectionColumns, row: int) -> Connection:
    """Return a row as an object."""
    (a_high, a_low), (b_high, b_low) = columns.address[row].tolist()
    a, b = columns.port[row].tolist()
    first, second = (Side(*side) for side in columns.sides[row].tolist())
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


def test_state_survives_demotion_and_promotion() -> None:
    register = ConnectionTable()
    live = register.begin(KEY, 3, 17)
    live.last_ns, live.ended, live.oriented, live.syn_seen = 99, "rst", True, True
    first, second = live.streams
    first.open((1 << 32) + 4)
    first.acked, first.acked_ns, first.acked_packet = 7, 8, 9
    first.data_ns, first.resent = 10, 11
    first.side.packets, second.side.bytes = 5, 6
    second.losses.count_gap(100, 110)
    second.losses.count_old(104, 106, 0, 120)
    register.demote(live)
    assert not register.live
    restored = register.materialise(0)
    assert restored is not live
    assert restored.keys == live.keys
    assert (restored.last_ns, restored.ended, restored.oriented, restored.syn_seen) == (
        99,
        "rst",
        True,
        True,
    )
    one, other = restored.streams
    assert (one.next, one.first, one.isn) == ((1 << 32) + 5, (1 << 32) + 5, (1 << 32) + 4)
    assert (one.acked, one.acked_ns, one.acked_packet, one.fin) == (7, 8, 9, None)
    assert (one.data_ns, one.resent) == (10, 11)
    assert (other.next, other.first, other.isn, other.acked) == (None, None, None, None)
    assert (one.side, other.side) == (first.side, second.side)
    other.losses.count_old(100, 104, 0, 120)  # the gap is kept
    assert (other.side.late_bytes, other.side.retransmitted_bytes) == (6, 0)
    assert register[0].sides == (first.side, second.side)


def test_starts_of_streams_follow_from_both_isns() -> None:
    register = ConnectionTable()
    live = register.begin(KEY, 3, 17)
    assert not register.has_both_syns(0)
    live.streams[0].open(4)
    register.demote(live)
    assert not register.has_both_syns(0)
    live = register.materialise(0)
    live.streams[1].open(5)
    register.demote(live)
    assert register.has_both_syns(0)


def test_a_connection_too_large_for_a_row_is_not_demoted() -> None:
    register = ConnectionTable()
    live = register.begin(KEY, 0, 0)
    live.streams[0].fin = 1000  # earlier bytes are still missing
    assert not register.demote(live)
    live.streams[0].side.packets = 3
    assert register.materialise(0) is live
    assert register[0].sides[0].packets == 3
    assert register.columns().sides[0, 0, 0] == 3
    live.streams[0].fin = None
    assert not register.demote(live, may_move=False)
    assert register.demote(live)
    assert not register.live


def test_columns_equal_objects() -> None:
    register = ConnectionTable()
    for number in range(50):
        live = register.begin((number, *KEY[1:]), 2 * number, number)
        live.streams[number % 2].side.retransmitted_bytes = number
        live.ended = END_REASONS[number % 4]
        register.demote(live)
    columns = register.columns()
    assert [_as_object(columns, row) for row in range(50)] == list(register)
    some = np.array([40, 2], dtype=np.int64)
    assert [_as_object(register.columns(some), row) for row in (0, 1)] == [
        register[40],
        register[2],
    ]
    assert register.first_packets(columns.number).tolist() == list(range(0, 100, 2))
    assert register[-1].id == 49
    assert [each.id for each in register[48:]] == [48, 49]
    assert [astuple(register[7])[0], register[7].network] == [7, 7]


def test_swapping_sides_swaps_all_columns() -> None:
    register = ConnectionTable()
    live = register.begin(KEY, 0, 0)
    live.streams[0].side.late_bytes = 4
    register.demote(live)
    before = register[0]
    live = register.materialise(0)
    register.swap_sides(live)
    register.demote(live)
    after = register[0]
    assert (after.a, after.b, after.sides) == (before.b, before.a, before.sides[::-1])
    assert register.materialise(0).keys[0] == (3, *KEY[4:], *KEY[1:4])


def test_size_of_a_row() -> None:
    register = ConnectionTable()
    flows = FlowTable(register)
    for number in range(4000):
        key: FlowKey = (0, 0, number, 1, 0, 0, 2)
        live = register.begin(key, number, 0)
        register.demote(live)
        for each, owner in ((key, 0), ((0, 0, 0, 2, 0, number, 1), 1), (any_network_key(key), 0)):
            flows.put(each, 2 * number + owner)
    slots = np.asarray(flows.arrays.slots).nbytes
    used = register.rows[: len(register)].nbytes + 8 * flows.count
    assert (used + slots) / len(register) < 370
    assert not register.live
