"""Connections as rows."""

from __future__ import annotations

import io

from dissector import Capture, open_capture
from dissector.engine.reading.connection_rows import COLUMNS, connection_rows
from tests.default_frames import request, response
from tests.tcp_captures import HEADERS_BYTES, Packet, Wire, pcap_file


def rows(packets: list[Packet]) -> list[dict]:
    capture: Capture = open_capture("-", stdin=io.BytesIO(pcap_file(packets)))
    list(capture)
    return list(connection_rows(capture.reading))


def beat(n: int) -> bytes:
    return request(12, 4, n, group_id="group")


def response_frame(n: int) -> bytes:
    return response(12, 4, n)


def test_one_connection_of_each_kind() -> None:
    wire = Wire()
    wire.connect(50000, vlan=5).syn().client(beat(1)).broker(response_frame(1)).fin()
    wire.connect(50001).syn().client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").rst()
    wire.connect(50002).syn().client(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
    wire.connect(50003).syn()
    kafka, tls, other, silent = rows(wire.packets)
    assert tuple(kafka) == COLUMNS
    assert (kafka["network"], kafka["a"], kafka["b"]) == (
        *("vlan 5", "10.0.0.1:50000"),
        "10.0.0.2:9092",
    )
    assert (kafka["bytes_a"], kafka["bytes_b"]) == (len(beat(1)), len(response_frame(1)))
    assert (kafka["entered_a"], kafka["skipped_a"], kafka["ended"]) == (0, 0, "fin")
    assert [row["speaks"] for row in (kafka, tls, other, silent)] == ["kafka", "tls", "other", None]
    assert [row["client"] for row in (kafka, tls, other, silent)] == ["a", None, None, None]
    assert [row["ended"] for row in (tls, other)] == ["rst", None]
    assert tls["skipped_a"] == 0


def test_skipped_missing_and_truncated_bytes_are_counted() -> None:
    wire = Wire()
    connection = wire.connect()
    connection.client(beat(1)[30:], beat(2)).broker(response_frame(2))
    connection.client(beat(3), beat(4)).broker(response_frame(4))
    packets = [p for p in wire.packets if p.payload != beat(3)]
    last = max(i for i, p in enumerate(packets) if p.payload == response_frame(4))
    packets[last] = packets[last].cut(HEADERS_BYTES + 10)
    (row,) = rows(packets)
    assert row["speaks"] == "kafka"
    assert (row["skipped_a"], row["entered_a"]) == (len(beat(1)) - 30, len(beat(1)) - 30)
    assert (row["gaps_a"], row["gap_bytes_a"]) == (1, len(beat(3)))
    assert (row["cut_bytes_b"], row["entered_b"]) == (len(response_frame(4)) - 10, 0)


def test_side_a_may_be_the_broker() -> None:
    wire = Wire()
    wire.connect().broker(response_frame(1)).client(beat(2)).broker(response_frame(2))
    (row,) = rows(wire.packets)
    assert (row["a"], row["client"]) == ("10.0.0.2:9092", "b")
