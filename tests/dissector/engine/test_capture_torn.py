"""Imperfect captures: reordered, repeated, with holes, begun midway, truncated."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from dissector import Capture, Options
from dissector.engine.exchanges.exchange import COLUMNS
from tests.default_frames import request, response
from tests.example_counts import examples
from tests.tcp_captures import (
    HEADERS_BYTES,
    Packet,
    Wire,
    WireConnection,
    pcap_file,
    pieces,
    retimed,
)

PRODUCE, FIND_COORDINATOR, JOIN_GROUP = 0, 10, 11


@dataclass
class Sent:
    """The frames sent on one connection with their positions, and their pairs."""

    connection: WireConnection
    requests: list[tuple[int, bytes]] = field(default_factory=list)
    responses: list[tuple[int, bytes]] = field(default_factory=list)


def ask(n: int, mark: str, size: int) -> bytes:
    if n % 3 == 0:
        return request(JOIN_GROUP, 5, n, group_id=mark, member_id="m" * size)
    return request(FIND_COORDINATOR, 2, n, key=mark, key_type=0)


def answer(n: int, mark: str, size: int) -> bytes:
    if n % 3 == 0:
        return response(JOIN_GROUP, 5, n, leader=mark, member_id="m" * size)
    return response(FIND_COORDINATOR, 2, n, host=mark, node_id=n)


def fire_and_forget(n: int, mark: str) -> bytes:
    return request(PRODUCE, 7, n, transactional_id=mark, acks=0, timeout_ms=1)


@st.composite
def conversations(draw: st.DrawFn, reuse: bool = False, handshake: bool = True) -> list[Sent]:
    """Draw several interleaved connections; some requests pipelined, in packets of any size."""
    wire = Wire()
    sent = [Sent(wire.connect(50000 + n)) for n in range(draw(st.integers(1, 3)))]
    if handshake:
        for each in sent:
            each.connection.syn()
    for turn in range(draw(st.integers(1, 7))):
        _turn(draw, draw(st.sampled_from(sent)), turn, reuse)
    for each in sent:
        if draw(st.booleans()):
            each.connection.fin()
    return sent


def _turn(draw: st.DrawFn, sent: Sent, turn: int, reuse: bool) -> None:
    """Let a client send up to three requests and the broker answer them."""
    request_bytes, response_bytes, connection = b"", b"", sent.connection
    for number in range(draw(st.integers(1, 3))):
        n = 7 if reuse else turn * 3 + number
        mark = f"{connection.number}-{turn}-{number}"
        size = draw(st.sampled_from((0, 30, 400)))
        if draw(st.integers(0, 4)) == 0:
            frame = fire_and_forget(n, mark)
        else:
            frame = ask(n, mark, size)
            sent.responses.append(
                (len(connection.sent[1]) + len(response_bytes), answer(n, mark, size))
            )
            response_bytes += sent.responses[-1][1]
        sent.requests.append((len(connection.sent[0]) + len(request_bytes), frame))
        request_bytes += frame
    cuts = st.lists(st.integers(1, 500), max_size=3)
    connection.client(*pieces(request_bytes, draw(cuts)))
    if response_bytes:
        connection.broker(*pieces(response_bytes, draw(cuts)))


def read(packets: Sequence[Packet], window_bytes: int = 1 << 20) -> list[tuple]:
    """Read packets; return each row without its times."""
    options = Options(window_bytes=window_bytes, stdin=io.BytesIO(pcap_file(packets)))
    return [
        (
            e.client,
            e.status,
            e.api_key,
            e.correlation_id,
            frame(e.request),
            e.request_bytes,
            frame(e.response),
            e.response_bytes,
        )
        for e in Capture(["-"], options)
    ]


def frame(message) -> bytes | None:
    return None if message is None else message.frame


def name(sent: Sent) -> str:
    return f"10.0.0.1:{sent.connection.ports[0]}"


def true_rows(sent: Sequence[Sent]) -> Counter:
    """Return (client, status, request, response) of every exchange, from the sent frames."""
    rows: Counter = Counter()
    for each in sent:
        responses = [frame for _, frame in each.responses]
        for _, request_frame in each.requests:
            if request_frame[4:6] == b"\0\0":
                rows[name(each), "no_response", request_frame[4:], None] += 1
            else:
                rows[name(each), "answered", request_frame[4:], responses.pop(0)[4:]] += 1
    return rows


def seen_rows(rows: Sequence[tuple]) -> Counter:
    return Counter((row[0], row[1], row[4], row[6]) for row in rows)


ANY = settings(deadline=None, max_examples=examples(80))


@given(conversations(reuse=True))
@ANY
def test_a_complete_capture_gives_all_exchanges(sent: list[Sent]) -> None:
    """Also with one correlation id for all: pairs follow the order of sending."""
    assert seen_rows(read(sent[0].connection.wire.packets)) == true_rows(sent)


@given(conversations(), st.data())
@ANY
def test_packets_out_of_order(sent: list[Sent], data: st.DataObject) -> None:
    packets = sent[0].connection.wire.packets
    late = [data.draw(st.integers(0, 15)) if packet.payload else 0 for packet in packets]
    order = sorted(range(len(packets)), key=lambda i: (i + late[i], i))
    mixed = retimed(packets[i] for i in order)
    assert seen_rows(read(mixed)) == true_rows(sent)


@given(conversations(reuse=True), st.data())
@ANY
def test_duplicates_and_retransmissions_with_other_boundaries(
    sent: list[Sent], data: st.DataObject
) -> None:
    wire = sent[0].connection.wire
    clean = list(wire.packets)
    packets = list(clean)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(packets) - 1))
        packets.insert(data.draw(st.integers(at + 1, len(packets))), packets[at])
    for _ in range(data.draw(st.integers(0, 4))):
        connection = data.draw(st.sampled_from(sent)).connection
        side = data.draw(st.integers(0, 1))
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(connection.sent[side]))] * 2)))
        at = next(
            (
                i + 1
                for i, p in reversed(list(enumerate(packets)))
                if (p.connection, p.side) == (connection.number, side) and p.end >= end
            ),
            len(packets),
        )
        retransmission = connection.retransmit(side, start, end).wire.packets.pop()
        packets.insert(data.draw(st.integers(at, len(packets))), retransmission)
    assert read(retimed(packets)) == read(retimed(clean))


def survivors(
    frames: Sequence[tuple[int, bytes]], side: int, sent: Sent, packets: Sequence[Packet]
) -> set[bytes]:
    """Return the completely captured frames of one side."""
    there: set[int] = set()
    for packet in packets:
        if (packet.connection, packet.side) == (sent.connection.number, side):
            there.update(range(packet.start, packet.end))
    return {frame for at, frame in frames if there.issuperset(range(at, at + len(frame)))}


def check_nothing_invented(sent: Sequence[Sent], rows: Sequence[tuple]) -> None:
    """Check that every frame is a sent one, or the beginning of one, and every pair is correct."""
    for each in sent:
        request_frames = {identity(frame[4:]): frame[4:] for _, frame in each.requests}
        response_frames = {
            int.from_bytes(frame[4:8], "big"): frame[4:] for _, frame in each.responses
        }
        seen: Counter = Counter()
        for client, status, _, _, request_frame, _, response_frame, _ in rows:
            if client != name(each):
                continue
            if request_frame is not None and len(request_frame) >= 8:
                assert request_frames[identity(request_frame)].startswith(request_frame)
            if response_frame is not None and len(response_frame) >= 4:
                n = int.from_bytes(response_frame[:4], "big")
                assert response_frames[n].startswith(response_frame)
                if status == "answered":
                    assert identity(request_frame)[1] == n
            seen[request_frame, response_frame] += 1
        assert all(count == 1 for count in seen.values())


def identity(request_frame: bytes) -> tuple[int, int]:
    """Return API key and correlation id."""
    return int.from_bytes(request_frame[:2], "big"), int.from_bytes(request_frame[4:8], "big")


def check_survivors(sent: Sequence[Sent], rows: Sequence[tuple], kept: Sequence[Packet]) -> None:
    """Check that each surviving request is an exchange, with its response if that survives."""
    for each in sent:
        request_frames = survivors(each.requests, 0, each, kept)
        response_frames = {
            int.from_bytes(frame[4:8], "big"): frame
            for frame in survivors(each.responses, 1, each, kept)
        }
        for frame in request_frames:
            statuses = [row[1] for row in rows if row[0] == name(each) and row[4] == frame[4:]]
            due = frame[4:6] != b"\0\0"
            _, n = identity(frame[4:])
            if due and n in response_frames:
                assert statuses == ["answered"]
            else:
                assert len(statuses) == 1


@given(conversations(), st.data())
@ANY
def test_lost_packets(sent: list[Sent], data: st.DataObject) -> None:
    packets = sent[0].connection.wire.packets
    lost = data.draw(st.sets(st.integers(0, len(packets) - 1), max_size=8))
    kept = [packet for i, packet in enumerate(packets) if i not in lost]
    rows = read(kept)
    check_nothing_invented(sent, rows)
    check_survivors(sent, rows, kept)


@given(conversations(handshake=False), st.data())
@ANY
def test_capture_begins_in_the_middle(sent: list[Sent], data: st.DataObject) -> None:
    """The rest is correlated; responses to earlier requests are orphans."""
    packets = sent[0].connection.wire.packets
    kept = packets[data.draw(st.integers(0, len(packets))) :]
    rows = read(kept)
    check_nothing_invented(sent, rows)
    check_survivors(sent, rows, kept)
    for each in sent:
        request_ids = {identity(f[4:])[1] for f in survivors(each.requests, 0, each, kept)}
        responses = survivors(each.responses, 1, each, kept)
        strays = {f[4:] for f in responses if int.from_bytes(f[4:8], "big") not in request_ids}
        mine = [row for row in rows if row[0] == name(each)]
        assert {row[6] for row in mine if row[1] == "orphan"} <= strays


@given(conversations(reuse=True), st.sampled_from((1, 60, 200, 1000)), st.data())
@ANY
def test_windows_of_any_size_give_the_same_rows_in_the_same_order(
    sent: list[Sent], window_bytes: int, data: st.DataObject
) -> None:
    """Also with holes and reordering."""
    packets = sent[0].connection.wire.packets
    late = [data.draw(st.sampled_from((0, 0, 3, 15))) if p.payload else 0 for p in packets]
    order = sorted(range(len(packets)), key=lambda i: (i + late[i], i))
    mixed = retimed(packets[i] for i in order if late[i] != 3)
    assert read(mixed, window_bytes) == read(mixed)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(18, 120), st.booleans())
@ANY
def test_snaplen(kinds: list[int], snap: int, whole: bool) -> None:
    """Frames at the start of packets are paired by their headers, however short the snaplen."""
    wire = Wire()
    connection = wire.connect()
    if whole:
        connection.syn()
    for n, kind in enumerate(kinds):
        size = (0, 300, 0)[kind]
        long = ask(3 * n, f"group-{n}", size)
        connection.client(*pieces(long, [len(long) // 2] if size else []))
        connection.broker(answer(3 * n, f"group-{n}", size))
    cut = [packet.cut(HEADERS_BYTES + snap) for packet in wire.packets]
    assert rows_of(cut) == rows_of(wire.packets)
    assert len(rows_of(cut)) == len(kinds)


def rows_of(packets: Sequence[Packet]) -> list[tuple]:
    """List sizes and headers of the frames of each row, and their times."""
    options = Options(stdin=io.BytesIO(pcap_file(packets)))
    return [
        tuple(e.column(name) for name in COLUMNS if name not in ("errors", "topics", "problems"))
        for e in Capture(["-"], options)
    ]
