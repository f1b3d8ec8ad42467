from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.columns import NEVER
from dissector.capture.tcp import reassembly as tcp_module
from dissector.capture.tcp.connections import Connection
from tests.dissector.capture.handmade_packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    A,
    B,
    ethernet,
    ipv4,
    pcap,
    tcp,
)
from tests.dissector.capture.stage_reading import Piece, Reading
from tests.example_counts import examples

MS = 1_000_000
S = 1000 * MS


@dataclass(frozen=True)
class Sent:
    """A packet of a connection; sequence numbers are relative to the SYN of each side."""

    side: int
    data: bytes = b""
    seq: int = 1
    ack: int = 1
    flags: int = ACK
    ms: int | None = None
    port: int = 50000
    vlan: int = 0
    snap: int | None = None


ISN = (2**32 - 10, 7000)


def capture(packets: Sequence[Sent], isn: tuple[int, int] = ISN) -> bytes:
    """Return a capture of the packets, 1 ms apart by default."""
    rows = []
    ms = 0
    file = pcap([])
    for packet in packets:
        ms = packet.ms if packet.ms is not None else ms + 1
        here, there = (packet.port, 9092), (9092, packet.port)
        segment = tcp(
            packet.data,
            seq=isn[packet.side] + packet.seq,
            ack=isn[1 - packet.side] + packet.ack if packet.flags & ACK else 0,
            flags=packet.flags,
            ports=(here, there)[packet.side],
        )
        ends = ((A, B), (B, A))[packet.side]
        tags = [(0x8100, packet.vlan)] if packet.vlan else []
        frame = ethernet(ipv4(segment, source=ends[0], target=ends[1]), tags=tags)
        snap = None if packet.snap is None else len(frame) - len(packet.data) + packet.snap
        rows.append(pcap([(S + ms * MS, frame)], snap=snap)[24:])
    return file + b"".join(rows)


HELLO = [Sent(0, seq=0, flags=SYN), Sent(1, seq=0, flags=SYN | ACK), Sent(0)]


def closing(a: int, b: int) -> list[Sent]:
    """Return the closing packets after this number of bytes from each side."""
    return [
        Sent(0, seq=a + 1, ack=b + 1, flags=FIN | ACK),
        Sent(1, seq=b + 1, ack=a + 2, flags=FIN | ACK),
        Sent(0, seq=a + 2, ack=b + 2),
    ]


def read(packets: Sequence[Sent], isn: tuple[int, int] = ISN) -> Reading:
    """Read a connection; check that windows of one packet, and objects, give the same rows."""
    data = capture(packets, isn)
    reading = Reading(data)
    assert Reading(data, 1).rows == reading.rows
    one_by_one = Reading(data, one_by_one=True)
    assert one_by_one.rows == reading.rows
    assert list(one_by_one.tcp.connections) == list(reading.tcp.connections)
    check_rows(reading)
    return reading


def check_rows(reading: Reading) -> None:
    """Check invariants of every capture."""
    releases = [row.release for row in reading.rows]
    assert releases == sorted(releases)
    for connection in reading.tcp.connections:
        rows = [row for row in reading.rows if row.connection == connection.id]
        if rows:
            assert rows[-1].horizon == (NEVER, NEVER)
        for i, row in enumerate(rows):
            for later in rows[i + 1 :]:
                if isinstance(later.what, bytes) and later.what and later.packet < row.release:
                    assert later.packet >= row.horizon[later.side]
    for side in (0, 1):
        for connection in reading.tcp.connections:
            pieces = reading.streams.get((connection.id, side), [])
            stats = connection.sides[side]
            assert stats.bytes == sum(len(each) for each in pieces if isinstance(each, bytes))
            missing = sum(each for each in pieces if isinstance(each, int))
            assert stats.gap_bytes + stats.cut_bytes == missing


def only(reading: Reading) -> tuple[Connection, list[Piece], list[Piece]]:
    """Return the only connection and the bytes of its sides."""
    (connection,) = reading.tcp.connections
    return connection, reading.streams.get((0, 0), []), reading.streams.get((0, 1), [])


def test_a_connection_from_syn_to_fin() -> None:
    reading = read(
        [*HELLO, Sent(0, b"request"), Sent(1, b"response", ack=8), *closing(7, 8)],
    )
    connection, a, b = only(reading)
    assert (a, b) == ([b"request"], [b"response"])
    assert (connection.a_text, connection.b_text) == ("10.0.0.1:50000", "10.0.0.2:9092")
    assert (connection.syn_seen, connection.ended) == (True, "fin")
    assert (connection.first_ns, connection.last_ns) == (S + MS, S + 8 * MS)
    assert [side.packets for side in connection.sides] == [5, 3]
    assert reading.ends == [(0, 1)]
    assert [row.packet for row in reading.rows] == [3, 4, 6]


@pytest.mark.parametrize(
    ("first", "side"),
    [
        ([Sent(1, b"x")], 0),
        ([Sent(0, b"x")], 1),
        ([Sent(1, seq=0, flags=SYN | ACK), Sent(1, b"x")], 1),
        ([Sent(1, seq=0, flags=SYN | ACK), Sent(0, seq=0, flags=SYN), Sent(1, b"x")], 1),
        ([Sent(1), Sent(0, seq=0, flags=SYN), Sent(1, seq=0, flags=SYN | ACK), Sent(1, b"x")], 1),
        ([Sent(0), Sent(1, seq=0, flags=SYN | ACK), Sent(1, b"x")], 1),
    ],
)
def test_the_client_follows_from_the_handshake_or_the_first_packet(
    first: list[Sent], side: int
) -> None:
    reading = read(first)
    connection, *_ = only(reading)
    if not any(packet.flags & SYN for packet in first):
        assert connection.a_text.startswith(A if first[0].side == 0 else B)
    else:
        assert connection.a_text.startswith(A)
    if first[-1].side == 1:
        assert reading.streams[(0, side)] == [b"x"]


TORTURE: list[tuple[str, list[Sent], list[Piece], list[Piece]]] = [
    ("nothing", HELLO, [], []),
    ("out of order", [*HELLO, Sent(0, b"cd", 3), Sent(0, b"ab")], [b"abcd"], []),
    (
        "three out of order",
        [*HELLO, Sent(0, b"ef", 5), Sent(0, b"cd", 3), Sent(0, b"ab")],
        [b"abcdef"],
        [],
    ),
    ("repeated", [*HELLO, Sent(0, b"ab"), Sent(0, b"ab"), Sent(0, b"cd", 3)], [b"abcd"], []),
    ("captured twice", [p for p in [*HELLO, Sent(0, b"ab")] for _ in (1, 2)], [b"ab"], []),
    ("first bytes win", [*HELLO, Sent(0, b"abcd"), Sent(0, b"XXXXef")], [b"abcdef"], []),
    (
        "first bytes win behind a hole",
        [*HELLO, Sent(0, b"cd", 3), Sent(0, b"abXXef")],
        [b"abcdef"],
        [],
    ),
    (
        "a larger one fills around pieces",
        [*HELLO, Sent(0, b"c", 3), Sent(0, b"e", 5), Sent(0, b"XbXdXf")],
        [b"Xbcdef"],
        [],
    ),
    ("keep-alive", [*HELLO, Sent(0, b"ab"), Sent(0, b"\0", 2), Sent(0, b"cd", 3)], [b"abcd"], []),
    ("zero-window probe", [*HELLO, Sent(0, b"a"), Sent(0, b"abc")], [b"abc"], []),
    ("data on the SYN", [Sent(0, b"ab", 0, flags=SYN), Sent(0, b"cd", 3)], [b"abcd"], []),
    ("urgent", [*HELLO, Sent(0, b"ab", flags=ACK | 32), Sent(0, b"cd", 3)], [b"abcd"], []),
    (
        "a hole that was acknowledged",
        [*HELLO, Sent(0, b"cd", 3), Sent(1, ack=5, ms=10), Sent(0, b"ef", 5, ms=61)],
        [2, b"cdef"],
        [],
    ),
    ("a hole at the end", [*HELLO, Sent(1, b"ab", 3), *closing(0, 6)], [], [2, b"ab", 2]),
    ("acknowledged and never seen", [*HELLO, Sent(0, ack=9)], [], [8]),
    ("perhaps only a FIN", [*HELLO, Sent(0, ack=2)], [], []),
    (
        "cut by the capture",
        [*HELLO, Sent(0, b"abcd", snap=2), Sent(0, b"ef", 5), Sent(0, b"abcd")],
        [b"ab", 2, b"ef"],
        [],
    ),
    ("headers only", [*HELLO, Sent(0, b"abcd", snap=0), Sent(0, b"ef", 5, snap=0)], [6], []),
    (
        "cut behind a hole",
        [*HELLO, Sent(0, b"cdef", 3, snap=1), Sent(0, b"ab"), Sent(0, b"gh", 7)],
        [b"abc", 3, b"gh"],
        [],
    ),
    ("no SYN, reversed", [Sent(0, b"cd", 3), Sent(0, b"ab"), Sent(1, ack=5)], [b"abcd"], []),
    ("no SYN, one direction", [Sent(0, b"cd", 3), Sent(0, b"ab")], [b"abcd"], []),
    (
        "no SYN, after what was acknowledged",
        [Sent(1, ack=5), Sent(0, b"ef", 5)],
        [],
        [b"ef"],
    ),
    ("no SYN, a leading hole", [Sent(1, ack=3), Sent(0, b"ef", 5)], [], [2, b"ef"]),
    (
        "no SYN, a retransmission",
        [Sent(1, ack=5), Sent(0, b"cd", 3), Sent(0, b"ef", 5)],
        [],
        [b"cdef"],
    ),
    ("no SYN, a keep-alive", [Sent(1, ack=5), Sent(0, b"?", 4), Sent(0, b"ef", 5)], [], [b"ef"]),
    (
        "SYN behind data",
        [Sent(0, b"ab"), Sent(0, seq=0, flags=SYN), Sent(0, b"cd", 3)],
        [b"abcd"],
        [],
    ),
    (
        "no client SYN",
        [Sent(1, seq=0, flags=SYN | ACK), Sent(0, b"cd", 3), Sent(0, b"ab")],
        [b"abcd"],
        [],
    ),
    (
        "split handshake",
        [
            Sent(0, seq=0, flags=SYN),
            Sent(1, seq=0, flags=SYN),
            Sent(0, seq=0, flags=SYN | ACK),
            Sent(1),
            Sent(0, b"ab"),
            Sent(1, b"cd", ack=3),
        ],
        [b"ab"],
        [b"cd"],
    ),
    (
        "SYN again",
        [HELLO[0], HELLO[0], *HELLO, Sent(0, b"ab"), HELLO[0], Sent(0, b"cd", 3)],
        [b"abcd"],
        [],
    ),
    (
        "a RST that nobody believes",
        [*HELLO, Sent(0, seq=1 << 30, flags=RST), Sent(0, b"ab")],
        [b"ab"],
        [],
    ),
    (
        "an acknowledgement of nothing sent",
        [*HELLO, Sent(1, ack=1 << 30), Sent(0, b"cd", 3), Sent(0, b"ab", ms=900)],
        [b"abcd"],
        [],
    ),
    ("FIN before data", [*HELLO, Sent(0, flags=FIN | ACK, seq=3), Sent(0, b"ab")], [b"ab"], []),
]


@pytest.mark.parametrize(
    ("packets", "a", "b"), [row[1:] for row in TORTURE], ids=[row[0] for row in TORTURE]
)
def test_irregular_connections(packets: list[Sent], a: list[Piece], b: list[Piece]) -> None:
    for isn in (ISN, (0, 0), (2**31 - 4, 2**32 - 1)):
        assert only(read(packets, isn))[1:] == (a, b)


def releases(packets: Sequence[Sent]) -> list[tuple[int, int, Piece]]:
    """Return the releasing packet, side and content of each row."""
    return [(row.release, row.side, row.what) for row in read(packets).rows if row.what is not None]


def test_a_hole_is_a_gap_50_ms_after_its_acknowledgement() -> None:
    start = [*HELLO, Sent(0, b"cd", 3), Sent(1, ack=5, ms=100)]
    assert releases([*start, Sent(1, b"z", ack=5, ms=149)])[0] == (5, 1, b"z")
    assert releases([*start, Sent(1, b"z", ack=5, ms=150)]) == [
        (5, 0, 2),
        (5, 0, b"cd"),
        (5, 1, b"z"),
    ]
    assert releases([*start, Sent(0, b"ab", ms=149)]) == [(5, 0, b"ab"), (5, 0, b"cd")]


def test_each_hole_is_a_gap_50_ms_after_its_own_acknowledgement() -> None:
    packets = [*HELLO, Sent(0, b"cd", 3), Sent(1, ack=5, ms=100)]
    packets += [Sent(0, b"gh", 7, ms=120), Sent(1, ack=9, ms=130)]
    packets += [Sent(1, b"x", 1, 9, ms=150)]
    packets += [Sent(1, b"y", 2, 9, ms=179), Sent(1, b"z", 3, 9, ms=180)]
    assert releases(packets) == [
        (7, 0, 2),
        (7, 0, b"cd"),
        (7, 1, b"x"),
        (8, 1, b"y"),
        (9, 0, 2),
        (9, 0, b"gh"),
        (9, 1, b"z"),
    ]


def test_an_unacknowledged_hole_stays_open() -> None:
    packets = [*HELLO, Sent(0, b"cd", 3), Sent(1, ack=1, ms=60_000), Sent(0, b"ab", ms=120_000)]
    assert releases(packets) == [(5, 0, b"ab"), (5, 0, b"cd")]


def test_a_hole_in_a_capture_of_one_direction_is_a_gap_after_10_s() -> None:
    start = [HELLO[0], Sent(0, b"cd", 3, ms=100)]
    assert releases([*start, Sent(0, ms=10_099)])[0] == (2, 0, 2)
    assert releases([*start, Sent(0, ms=10_100), Sent(0, b"ef", 5)]) == [
        (2, 0, 2),
        (2, 0, b"cd"),
        (3, 0, b"ef"),
    ]
    assert releases([*start, Sent(0, b"ab", ms=10_099)])[0] == (2, 0, b"ab")


@pytest.mark.long
def test_a_hole_becomes_a_gap_at_the_limit_of_bytes_behind_it() -> None:
    packets = [*HELLO, *(Sent(0, bytes(60_000), 3 + 60_000 * i) for i in range(281))]
    first = releases(packets)[0]
    assert first == (3 + 279, 0, 2)


def test_the_next_hole_becomes_a_gap_at_the_limit_for_all_holes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp_module, "MAX_BUFFERED_BYTES", 10)
    packets = [
        packet
        for port in (1, 2)
        for packet in (
            Sent(0, seq=0, flags=SYN, port=port),
            Sent(0, b"123456", 3, port=port),
        )
    ]
    reading = read([*packets, Sent(0, b"ab", port=1), Sent(0, b"ab", port=2)])
    assert reading.streams == {(0, 0): [b"ab123456"], (1, 0): [2, b"123456"]}
    assert reading.tcp.connections[1].sides[0].late_bytes == 2


def test_a_start_without_syn_waits_50_ms_or_64_kib() -> None:
    start = [Sent(0, b"cd", 3, ms=0)]
    assert releases([*start, Sent(0, b"ab", ms=49), Sent(0, b"ef", 5, ms=50)]) == [
        (2, 0, b"ab"),
        (2, 0, b"cd"),
        (2, 0, b"ef"),
    ]
    assert releases([*start, Sent(0, b"ef", 5, ms=50), Sent(0, b"ab")]) == [
        (1, 0, b"cd"),
        (1, 0, b"ef"),
    ]
    many = [Sent(0, bytes(60_000), 3 + 60_000 * i, ms=0) for i in range(3)]
    assert [row[0] for row in releases(many)] == [1, 1, 2]


def test_late_and_repeated_bytes_are_counted() -> None:
    reading = read(
        [
            *HELLO,
            Sent(0, b"cd", 3),
            Sent(1, ack=5, ms=10),
            Sent(0, b"ef", 5, ms=61),
            Sent(0, b"abcdef"),
            Sent(0, b"\0", 6),
            Sent(0, b"efgh", 5),
        ]
    )
    side = only(reading)[0].sides[0]
    assert (side.gaps, side.gap_bytes, side.late_bytes) == (1, 2, 2)
    assert (side.retransmitted_segments, side.retransmitted_bytes) == (2, 6)
    assert only(reading)[1] == [2, b"cdefgh"]


def test_reused_ports_are_another_connection() -> None:
    reopened = [Sent(0, seq=5000, flags=SYN), Sent(1, seq=9000, ack=5001, flags=SYN | ACK)]
    reading = read(
        [
            *HELLO,
            Sent(0, b"cd", 3),
            *reopened,
            Sent(1, b"new", 9001, 5001),
            Sent(0, b"old", 5001, 9004),
        ]
    )
    assert reading.streams == {(0, 0): [2, b"cd"], (1, 0): [b"old"], (1, 1): [b"new"]}
    assert [each.ended for each in reading.tcp.connections] == ["reused", ""]
    assert reading.ends == [(0, 0)]
    assert reading.tcp.connections[1].a_text == "10.0.0.1:50000"


@pytest.mark.parametrize(
    "before",
    [[*HELLO, *closing(0, 0)], [*HELLO, Sent(1, flags=RST | ACK)], [Sent(0, flags=FIN | ACK)]],
)
def test_reused_ports_after_a_close_without_data(before: list[Sent]) -> None:
    reading = read([*before, Sent(0, seq=99, flags=SYN), Sent(0, b"ab", 100)])
    assert reading.streams == {(1, 0): [b"ab"]}


def test_a_syn_with_another_number_before_any_data_is_the_same_connection() -> None:
    reading = read([*HELLO, Sent(0, seq=99, flags=SYN), Sent(0, b"ab", 100)])
    assert only(reading)[1] == [b"ab"]


@pytest.mark.parametrize("far", [(64 << 20) + 4, -(64 << 20)])
def test_data_far_away_is_another_connection(far: int) -> None:
    reading = read([*HELLO, Sent(0, b"ab"), Sent(0, b"cd", far)])
    assert reading.streams == {(0, 0): [b"ab"], (1, 0): [b"cd"]}


def test_stray_bytes_after_a_reset() -> None:
    reading = read(
        [*HELLO, Sent(0, b"cd", 3), Sent(1, flags=RST | ACK), Sent(0, b"ef", 5), Sent(0, ms=900)]
    )
    connection, a, _ = only(reading)
    assert a == [2, b"cdef"]
    assert connection.ended == "rst"
    assert reading.ends == [(0, 1)]
    assert [row.what for row in reading.rows] == [2, b"cd", None, b"ef"]


def test_a_reset_not_acknowledging_the_syn_is_ignored() -> None:
    reading = read([HELLO[0], Sent(1, seq=77, ack=0, flags=RST | ACK), *HELLO[1:], Sent(0, b"ab")])
    assert only(reading)[0].ended == ""
    refused = read([HELLO[0], Sent(1, seq=77, ack=1, flags=RST | ACK)])
    assert only(refused)[0].ended == "rst"


def test_holes_of_a_closed_connection_become_gaps_by_time_of_others() -> None:
    packets = [*HELLO, Sent(1, b"cd", 3), *closing(0, 4)]
    other = [Sent(0, b"x", ms=55, port=1), Sent(0, b"y", 2, ms=56, port=1)]
    reading = read([*packets, *other])
    assert [(row.connection, row.side, row.what, row.release) for row in reading.rows[:3]] == [
        (0, 1, 2, 7),
        (0, 1, b"cd", 7),
        (0, 1, None, 7),
    ]
    assert reading.tcp.connections[0].ended == "fin"


def _releases_of_the_silent(packets: list[Sent], *clock_ms: int) -> list[tuple[int, Piece]]:
    """Return the releasing packet and content of rows, while another connection continues."""
    others = [Sent(0, seq=0, flags=SYN, ms=ms, port=7) for ms in clock_ms]
    reading = read([*packets, *others])
    return [(row.release, row.what) for row in reading.rows if row.connection == 0 and row.what]


def test_a_hole_in_a_silent_connection_becomes_a_gap_by_the_clock_of_the_capture() -> None:
    packets = [*HELLO, Sent(0, b"cd", 3), Sent(1, ack=5, ms=100)]
    assert _releases_of_the_silent(packets, 149, 150) == [(6, 2), (6, b"cd")]
    one_more = [*packets, Sent(0, b"gh", 7, ms=120), Sent(1, ack=9, ms=130)]
    assert _releases_of_the_silent(one_more, 150, 179, 180) == [
        (7, 2),
        (7, b"cd"),
        (9, 2),
        (9, b"gh"),
    ]


def test_a_silent_start_without_syn_is_released_by_the_clock_of_the_capture() -> None:
    assert _releases_of_the_silent([Sent(0, b"cd", 3, ms=0)], 49, 50) == [(2, b"cd")]


def test_a_silent_hole_without_acknowledgements_becomes_a_gap_within_11_s() -> None:
    packets = [HELLO[0], Sent(0, b"cd", 3, ms=100)]
    assert _releases_of_the_silent(packets, 10_099, 11_100) == [(3, 2), (3, b"cd")]
    assert _releases_of_the_silent(packets, 9_000, 10_099, 11_099) == [(4, 2), (4, b"cd")]


def test_a_clock_that_jumps_costs_one_check() -> None:
    packets = [HELLO[0], Sent(0, b"cd", 3, ms=100)]
    assert _releases_of_the_silent(packets, 4_000_000_000) == [(2, 2), (2, b"cd")]


def test_the_end_of_a_capture_is_flushed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_module, "STEP_ROWS", 300)
    monkeypatch.setattr(tcp_module, "STEP_BYTES", 1000)
    packets = [
        each
        for port in range(1, 101)
        for each in (
            Sent(0, seq=0, flags=SYN, port=port, ms=port),
            Sent(0, b"%09d" % port, 3, port=port, ms=port),
        )
    ]
    reading = read(packets)
    assert len(reading.steps) > 5
    assert max(reading.steps) <= 300
    assert reading.streams == {(port - 1, 0): [2, b"%09d" % port] for port in range(1, 101)}


def test_the_reordering_barrier_holds_back_the_other_side() -> None:
    packets = [
        *HELLO,
        Sent(0, b"cd", 3),
        Sent(1, b"x", ack=1),
        Sent(0, b"ab", ack=2),
        Sent(1, b"y", 2, ack=5),
    ]
    assert [(row.what, row.horizon) for row in read(packets).rows] == [
        (b"x", (3, NEVER)),
        (b"ab", (3, NEVER)),
        (b"cd", (NEVER, NEVER)),
        (b"y", (NEVER, NEVER)),
    ]


def test_a_barrier_moved_without_bytes_is_reported() -> None:
    # Data before the sequence number of the SYN waits at the start until the SYN arrives.
    packets = [
        Sent(0, b"junk", seq=(1 << 32) - 50, ack=1),
        Sent(1, b"x", seq=1, ack=(1 << 32) - 60),
        Sent(0, seq=0, flags=SYN),
    ]
    reading = read(packets)
    assert reading.rows[-1].horizon == (NEVER, NEVER)


def test_a_connection_with_vlan_tags_in_one_direction_only() -> None:
    handshake = [Sent(0, seq=0, flags=SYN, vlan=5), Sent(1, seq=0, flags=SYN | ACK)]
    reading = read([*handshake, Sent(0, b"ab", vlan=5), Sent(1, b"cd", ack=3)])
    assert only(reading)[1:] == ([b"ab"], [b"cd"])
    middle = read([Sent(0, b"ab", vlan=5, ack=1), Sent(1, b"cd", 1, ack=3, vlan=6)])
    assert only(middle)[1:] == ([b"ab"], [b"cd"])


def test_the_same_ports_in_another_network_are_another_connection() -> None:
    def segments_of(vlan: int, isn: int) -> list[Sent]:
        return [
            Sent(0, seq=isn, flags=SYN, vlan=vlan),
            Sent(1, seq=isn, ack=isn + 1, flags=SYN | ACK, vlan=vlan),
            Sent(0, b"to %d" % vlan, isn + 1, isn + 1, vlan=vlan),
            Sent(1, b"from %d" % vlan, isn + 1, isn + 5, vlan=vlan),
        ]

    both = [
        packet
        for pair in zip(segments_of(5, 0), segments_of(6, 999_999), strict=True)
        for packet in pair
    ]
    reading = read(both)
    assert reading.streams == {
        (0, 0): [b"to 5"],
        (0, 1): [b"from 5"],
        (1, 0): [b"to 6"],
        (1, 1): [b"from 6"],
    }
    assert [each.network for each in reading.tcp.connections] == [1, 2]


def test_a_connection_of_an_endpoint_with_itself() -> None:
    segment = tcp(b"me", ports=(9092, 9092))
    data = pcap([(1, ethernet(ipv4(segment, source=A, target=A)))])
    assert Reading(data).streams == {(0, 0): [b"me"]}


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Sent], list[bytes], tuple[int, int]]:
    """Draw packets in order and acknowledged, and the bytes of both sides."""
    sent = [b"", b""]
    packets = list(HELLO)
    for _ in range(draw(st.integers(1, 25))):
        side = draw(st.integers(0, 1))
        data = draw(st.binary(max_size=9))
        packets.append(Sent(side, data, 1 + len(sent[side]), 1 + len(sent[1 - side]), ACK | PSH))
        sent[side] += data
    packets += closing(len(sent[0]), len(sent[1]))
    isn = (draw(st.integers(2**32 - 40, 2**32 + 40)) % 2**32, draw(st.integers(0, 2**32 - 1)))
    return packets, sent, isn


def shuffled(draw: st.DrawFn, packets: list[Sent], reach: int) -> list[Sent]:
    """Return the packets, each moved by at most about `reach` positions."""
    places = [(i + draw(st.integers(0, reach)), i) for i in range(len(packets))]
    return [packets[i] for _, i in sorted(places)]


@given(st.data())
@settings(max_examples=examples(200))
def test_reordered_repeated_and_overlapping_segments_give_exact_bytes(data: st.DataObject) -> None:
    packets, sent, isn = data.draw(conversations())
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(3, len(packets) - 4)) if len(packets) > 7 else 3
        side = packets[at].side
        seen = packets[at].seq - 1 + len(packets[at].data)
        start = data.draw(st.integers(0, seen))
        end = data.draw(st.integers(start, seen))
        reopened = Sent(side, sent[side][start:end], 1 + start, packets[at].ack)
        packets.insert(data.draw(st.integers(at + 1, len(packets))), reopened)
    packets = packets[:2] + shuffled(data.draw, packets[2:], 6)
    whole = capture(packets, isn)
    reading = Reading(whole)
    connection, a, b = only(reading)
    assert connection.a_text == "10.0.0.1:50000"
    assert (b"".join(a), b"".join(b)) == (sent[0], sent[1])  # type: ignore[arg-type]
    assert connection.ended == "fin"
    check_rows(reading)
    for window_bytes in (1, 150, 400, data.draw(st.integers(2, len(whole)))):
        assert Reading(whole, window_bytes).rows == reading.rows


@given(st.data())
@settings(max_examples=examples(200))
def test_lost_and_truncated_segments_give_gaps_of_their_size(data: st.DataObject) -> None:
    packets, sent, isn = data.draw(conversations())
    have = [bytearray(len(each)) for each in sent]
    kept: list[Sent] = []
    for packet in packets:
        if packet.data and data.draw(st.booleans()):
            continue
        snap = data.draw(st.none() | st.integers(0, 4)) if packet.data else None
        size = len(packet.data) if snap is None else min(snap, len(packet.data))
        have[packet.side][packet.seq - 1 : packet.seq - 1 + size] = b"\1" * size
        kept.append(packet if snap is None else Sent(**{**_fields(packet), "snap": snap}))
    gaps_ms = data.draw(st.sampled_from([1, 30, 100]))
    timed = [Sent(**{**_fields(each), "ms": i * gaps_ms}) for i, each in enumerate(kept)]
    reading = read(timed, isn)
    _, a, b = only(reading)
    assert [a, b] == [_pieces(have[side], sent[side]) for side in (0, 1)]


def _fields(packet: Sent) -> dict[str, object]:
    return {name: getattr(packet, name) for name in Sent.__dataclass_fields__}


def _pieces(have: bytearray, sent: bytes) -> list[Piece]:
    pieces: list[Piece] = []
    for there, byte in zip(have, sent, strict=True):
        piece: Piece = bytes([byte]) if there else 1
        if pieces and type(pieces[-1]) is type(piece):
            pieces[-1] += piece  # type: ignore[operator]
        else:
            pieces.append(piece)
    return pieces


@given(st.data())
@settings(max_examples=examples(100))
def test_a_capture_begun_midway_gives_the_rest(data: st.DataObject) -> None:
    packets, sent, isn = data.draw(conversations())
    cut = data.draw(st.integers(3, len(packets) - 1))
    reading = read(packets[cut:], isn)
    for side in (0, 1):
        rest = b"".join(each.data for each in packets[cut:] if each.side == side)
        here = side if reading.tcp.connections[0].a_text == "10.0.0.1:50000" else 1 - side
        got = reading.streams.get((0, here), [])
        assert got == ([rest] if rest else [])
        assert sent[side].endswith(rest)


@given(st.data())
@settings(max_examples=examples(200))
def test_random_segments_raise_no_error_and_do_not_depend_on_windows(data: st.DataObject) -> None:
    numbers = st.sampled_from([0, 1, 2, 5, 9, 1 << 20, 65 << 20, 1 << 30, 1 << 31, 2**32 - 3])
    packets = data.draw(
        st.lists(
            st.builds(
                Sent,
                st.integers(0, 1),
                st.binary(max_size=6),
                numbers,
                numbers,
                st.sampled_from(
                    [0, ACK, SYN, SYN | ACK, FIN, FIN | ACK, RST, RST | ACK, SYN | FIN]
                ),
                st.none() | st.integers(0, 20_000),
                st.sampled_from([1, 2]),
                st.sampled_from([0, 0, 7]),
                st.none() | st.integers(0, 3),
            ),
            max_size=25,
        )
    )
    read(packets)
