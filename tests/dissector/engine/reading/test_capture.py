"""Whole captures: files, windows, options and results in Python."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path

import pytest

from dissector import Capture, CaptureError, dissect, open_capture
from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_records import COLUMNS as RECORD_COLUMNS
from tests.default_frames import request, response
from tests.dissector.engine.facts.test_topic_table import NAMELESS, fetched
from tests.tcp_captures import (
    START_NS,
    STEP_NS,
    Packet,
    Wire,
    WireConnection,
    pcap_file,
    pcapng_file,
    write,
)

PRODUCE, HEARTBEAT = 0, 12
CAPTURES = Path(__file__).parents[4] / "captures"


def heartbeat(n: int, **values: object) -> bytes:
    return request(HEARTBEAT, 4, n, group_id="g", member_id=f"member-{n}", **values)


def beat(n: int, **values: object) -> bytes:
    return response(HEARTBEAT, 4, n, **values)


def beats(connection: WireConnection, *ids: int) -> WireConnection:
    for n in ids:
        connection.client(heartbeat(n)).broker(beat(n))
    return connection


def stdin(packets: list[Packet]) -> Capture:
    return open_capture("-", stdin=io.BytesIO(pcap_file(packets)))


def answered(capture: Capture) -> list[int | None]:
    return [e.correlation_id for e in capture if e.status == "answered"]


def crossing() -> list[Packet]:
    """Two connections with exchanges across every cut between files."""
    wire = Wire()
    first, second = wire.connect(50000).syn(), wire.connect(50001).syn()
    for n in range(8):
        long = heartbeat(n, group_instance_id="i" * 300)
        first.client(long[:100])
        second.client(heartbeat(100 + n))
        first.client(long[100:]).broker(beat(n))
        second.broker(beat(100 + n)[:9], beat(100 + n)[9:])
    second.client(heartbeat(200))
    first.fin()
    return wire.packets


@pytest.mark.thinned(4)
@pytest.mark.parametrize("cut", range(1, 74, 6))
def test_three_files_of_different_kinds_are_one_capture(cut: int, tmp_path: Path) -> None:
    packets = crossing()
    one = write(tmp_path / "one.pcap", packets)
    ends = [0, cut, cut + (len(packets) - cut) // 2, len(packets)]
    parts = [packets[a:b] for a, b in pairwise(ends)]
    names = ["a.pcap", "b.pcapng", "c.pcap.gz"]
    write(tmp_path / names[0], parts[0])
    write(tmp_path / names[1], parts[1])
    (tmp_path / names[2]).write_bytes(gzip.compress(pcapng_file(parts[2])))
    whole = [exchange.row() for exchange in open_capture(one)]
    split = [exchange.row() for exchange in open_capture(*(tmp_path / name for name in names))]
    assert len(whole) == 17
    for row, part in zip(whole, split, strict=True):
        asked_in = sum(row["request_time_ns"] >= p[0].time_ns for p in parts) - 1
        assert part["capture"] == str(tmp_path / names[asked_in])
        assert part | {"capture": one} == row


def test_ports_select_connections_and_identify_the_broker() -> None:
    wire = Wire()
    beats(wire.connect(50000, broker_port=9092).syn(), 1)
    beats(wire.connect(50001, broker_port=9999).syn(), 2)
    file = pcap_file(wire.packets)
    for ports, found in (((), [1, 2]), ((9092,), [1]), ((9999, 9092), [1, 2]), ((1,), [])):
        assert answered(open_capture("-", ports=ports, stdin=io.BytesIO(file))) == found


def test_ports_identify_connections_with_responses_only() -> None:
    wire = Wire()
    beats(wire.connect().syn(), *range(7, 12))
    responses = [p for p in wire.packets[3:] if p.side == 1]
    for ports in ((), (9092,)):
        capture = open_capture("-", ports=ports, stdin=io.BytesIO(pcap_file(responses)))
        rows = [(e.status, e.correlation_id, e.broker) for e in capture]
        assert rows == [("one_sided", n, "10.0.0.2:9092") for n in range(7, 12)]


def test_tls_is_recognised_and_not_read() -> None:
    wire = Wire()
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(506)
    wire.connect().syn().client(hello).broker(b"\x16\x03\x03\x00\x7a" + bytes(122)).client(
        heartbeat(1)
    )
    capture = stdin(wire.packets)
    assert list(capture) == []
    assert capture.reading.correlator.spoken() == {"tls": 1}


def test_a_tls_alert_to_a_kafka_client_is_not_a_response() -> None:
    wire = Wire()
    wire.connect().syn().client(heartbeat(1)).broker(b"\x15\x03\x03\x00\x02\x02\x50").fin()
    capture = stdin(wire.packets)
    assert [(e.status, e.correlation_id) for e in capture] == [("unanswered", 1)]
    assert capture.reading.correlator.state_of(0).skipped[1] == 7


def test_same_addresses_and_ports_in_two_vlans_are_two_connections() -> None:
    wire = Wire()
    first, second = wire.connect(vlan=5).syn(), wire.connect(vlan=6).syn()
    first.client(heartbeat(1))
    second.client(heartbeat(1, group_instance_id="other"))
    second.broker(beat(1, error_code=27))
    first.broker(beat(1))
    rows = [(e.connection, e.client, e.errors) for e in stdin(wire.packets)]
    assert rows == [
        (1, "10.0.0.1:50000", ["REBALANCE_IN_PROGRESS"]),
        (0, "10.0.0.1:50000", []),
    ]


def test_ipv6_addresses_are_in_brackets() -> None:
    wire = Wire()
    beats(wire.connect(hosts=("fd00::1", "fd00::2")).syn(), 1)
    (exchange,) = stdin(wire.packets)
    assert (exchange.client, exchange.broker) == ("[fd00::1]:50000", "[fd00::2]:9092")


def test_frame_above_the_limit_is_a_problem_and_the_next_is_read() -> None:
    wire = Wire()
    connection = wire.connect().syn()
    connection.client(heartbeat(1, group_instance_id="i" * 3000)).broker(beat(1))
    beats(connection, 2)
    file = io.BytesIO(pcap_file(wire.packets))
    first, second = open_capture("-", max_frame_bytes=1000, stdin=file)
    assert (first.api, first.correlation_id, first.status) == ("Heartbeat", 1, "answered")
    assert first.request_bytes > 3000
    assert first.request.body is None
    assert "were not captured" in str(first.problems[0])
    assert second.problems == []


def test_rows_come_at_the_end_of_exchanges_or_of_their_connection() -> None:
    wire = Wire()
    first, second = wire.connect(50000).syn(), wire.connect(50001).syn()
    first.client(heartbeat(1), heartbeat(2))
    second.client(heartbeat(3), heartbeat(4))
    first.broker(beat(2), beat(99)).fin()
    second.client(request(PRODUCE, 7, 5, acks=0)).broker(beat(4))
    statuses = [(e.status, e.correlation_id) for e in stdin(wire.packets)]
    assert statuses == [
        ("answered", 2),
        ("orphan", 99),
        ("unanswered", 1),
        ("no_response", 5),
        ("answered", 4),
        ("unanswered", 3),
    ]


def test_times_are_those_of_the_packets_that_completed_the_frames() -> None:
    wire = Wire()
    connection = wire.connect().syn()
    request, response = heartbeat(1), beat(1)
    connection.send(0, request[:3], request[3:20], request[20:]).send(1, response[:5], response[5:])
    (exchange,) = stdin(wire.packets)
    assert (exchange.request_packet, exchange.response_packet) == (6, 9)
    assert exchange.request_time_ns == START_NS + 5 * STEP_NS
    assert exchange.latency_ms == 3.0


def test_tables_have_the_columns_of_pairs_and_records(tmp_path: Path) -> None:
    wire = Wire()
    fetched(beats(wire.connect().syn(), 1), 2, NAMELESS).client(heartbeat(3))
    file = write(tmp_path / "a.pcap", wire.packets)
    table = open_capture(file).exchanges()
    assert tuple(table.columns) == COLUMNS
    assert table.to_dicts() == [exchange.row() for exchange in dissect(file)]
    kinds = {name: str(kind) for name, kind in table.schema.items()}
    assert {kinds[n] for n in ("request_time_ns", "response_bytes", "connection")} == {"Int64"}
    assert (kinds["api_key"], kinds["latency_ms"]) == ("Int16", "Float64")
    assert {kinds[n] for n in ("errors", "topics", "problems")} == {"List(String)"}
    assert [len(part) for part in open_capture(file).batches()] == [2, 1]  # one stays unanswered
    records = open_capture(file).records()
    assert tuple(records.columns) == RECORD_COLUMNS
    assert records.row(0, named=True)["value"] == b"value"
    assert records.row(0, named=True)["offset"] == 7


def test_capture_without_kafka_gives_empty_tables_with_columns() -> None:
    empty = io.BytesIO(pcap_file([]))
    table = open_capture("-", stdin=empty).exchanges()
    assert (table.height, tuple(table.columns)) == (0, COLUMNS)


def test_invalid_utf8_is_preserved() -> None:
    wire = Wire()
    wire.connect().syn().client(
        heartbeat(1), request(HEARTBEAT, 4, 2, "caf\udce9", group_id="\udcff")
    ).broker(beat(2))
    exchange = next(iter(stdin(wire.packets)))
    assert exchange.client_id == "caf\udce9"
    assert exchange.request.body.group_id == "\udcff"
    assert stdin(wire.packets).exchanges()["client_id"].to_list() == ["caf\\xe9", "test"]


def test_a_damaged_file_gives_its_problem_and_the_exchanges_before_it(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(pcap_file(crossing())[:-30])
    windows = list(open_capture(file).windows())
    ((name, problem),) = [each for window in windows for each in window.problems]
    assert name == str(file)
    assert "cut off" in problem.what
    assert len(list(open_capture(file))) == 17


def test_a_file_other_than_a_capture_is_an_error_before_reading(tmp_path: Path) -> None:
    good = write(tmp_path / "a.pcap", crossing())
    (tmp_path / "b.pcap").write_text("no capture")
    with pytest.raises(CaptureError, match=r"b\.pcap: not a capture: text"):
        next(dissect(good, tmp_path / "b.pcap"))


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_doubtful_responses_are_kept_up_to_a_limit(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire()
    wire.connect(50000).broker(beat(7)).fin()
    beats(wire.connect(50001).syn(), 1)
    wire.connect(50002).broker(beat(8)).fin()
    file = write(tmp_path / "a.pcap", wire.packets)
    monkeypatch.setattr("dissector.engine.correlation.state_tables.MAX_DOUBTFUL_BYTES", room)
    statuses = [(row.correlation_id, row.status) for row in open_capture(file)]
    orphans = [(8, "orphan")] if room == 0 else [(7, "orphan"), (8, "orphan")]
    assert statuses == [(1, "answered"), *orphans]


@pytest.mark.parametrize("came", [2, -2], ids=["in the header", "in the body"])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("reset", "the connection was reset before {} bytes of the response came"),
        ("closed, then reset", "the connection was reset before {} bytes of the response came"),
        ("closed", "the connection was closed before {} bytes of the response came"),
        ("reused", "the connection ended before {} bytes of the response came"),
        ("", "{} bytes of the response were not captured"),
    ],
)
def test_a_message_incomplete_at_the_end_of_its_connection(
    tmp_path: Path, how: str, expected: str, came: int
) -> None:
    """The capture is complete: only an earlier end of the capture explains missing bytes."""
    wire = Wire()
    connection = wire.connect().syn()
    connection.client(request(HEARTBEAT, 4, 1, group_id="g", generation_id=1, member_id="m"))
    answer = response(HEARTBEAT, 4, 1)
    there = 4 + came if came > 0 else len(answer) + came
    if how == "closed, then reset":
        connection.fin(0)
    connection.broker(answer[:there])
    if how.endswith("reset"):
        connection.rst(0)
    elif how == "closed":
        connection.fin()
    elif how == "reused":
        wire.connect(isn=(900_000, 900_000)).syn()
    file = write(tmp_path / "a.pcap", wire.packets)
    if not how and came > 0:
        expected = "a response header has at least 4 bytes, but only 2 are there"
    what = expected.format(len(answer) - there)
    assert [each.what for row in open_capture(file) for each in row.problems] == [what]
    (batch,) = open_capture(file).batches()
    assert [each.split(": ", 1)[1] for row in batch["problems"] for each in row] == [what]
