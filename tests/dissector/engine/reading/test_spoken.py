"""Clients that speak another protocol than their server are named as that."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.engine.reading.capture import Capture
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.reading.notices import reading_notices
from dissector.engine.reading.spoken import mismatches, protocol_of, speaks_http
from tests.corpus import MADE
from tests.dissector.capture.handmade_packets import enhanced, interface, pcap, section
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.tcp_captures import Wire, write

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)
SERVER_HELLO = b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(40)
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
GET, OK = b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"

CASES = {
    "kafka": (heartbeat(1), beat(1), "fin", "kafka / kafka", ""),
    "tls": (HELLO, SERVER_HELLO, "fin", "tls / tls", ""),
    "http": (GET, OK, "fin", "http / http", ""),
    "tls client": (
        HELLO,
        b"",
        "fin",
        "tls / nothing",
        "the client spoke TLS, and the connection was closed without an answer",
    ),
    "tls client, reset": (
        HELLO,
        b"",
        "rst",
        "tls / nothing",
        "the client spoke TLS, and the connection was closed without an answer",
    ),
    "tls client, still open": (HELLO, b"", "", "tls / nothing", ""),
    "http client": (
        GET,
        b"",
        "fin",
        "http / nothing",
        "the client spoke HTTP, and the connection was closed without an answer",
    ),
    "tls server": (
        heartbeat(1),
        ALERT,
        "fin",
        "kafka / tls alert",
        "the client spoke Kafka, and the server TLS: it answered an alert (handshake_failure)",
    ),
    "http server": (
        heartbeat(1),
        OK,
        "fin",
        "kafka / http",
        "the client spoke Kafka, and the server HTTP",
    ),
    "neither": (b"hello, server", ALERT, "fin", "other / tls alert", "the client spoke another"),
    "tls refused": (HELLO, ALERT, "fin", "tls / tls alert", ""),
}


def read(path: Path) -> Capture:
    capture = Capture([path])
    for _ in capture.windows():
        pass
    return capture


@pytest.mark.parametrize("name", CASES)
def test_what_both_sides_spoke(name: str, tmp_path: Path) -> None:
    asked, answered, end, spoken, text = CASES[name]
    wire = Wire()
    for port in (50000, 50001):
        connection = wire.connect(port).syn()
        # The first bytes may come one by one.
        connection.client(asked[:1], asked[1:4], asked[4:])
        if answered:
            connection.broker(answered[:5], answered[5:])
        if end:
            connection.fin(1, 0) if end == "fin" else connection.rst(1)
    write(tmp_path / "a.pcap", wire.packets)
    reading = read(tmp_path / "a.pcap").reading
    assert reading is not None
    assert [row["protocols"] for row in connection_rows(reading)] == [spoken] * 2
    assert speaks_http(reading) == spoken.endswith("http")
    found = [each for _, each in mismatches(reading)]
    assert [each.startswith(text) for each in found] == [True, True] * bool(text)
    notices = list(reading_notices(reading))
    assert len(notices) == bool(text)
    if text:
        assert notices[0].startswith(f"2 connections to 10.0.0.2:9092: {text}")


def test_first_bytes_in_any_windows(tmp_path: Path) -> None:
    assert protocol_of(b"") == protocol_of(b"\x16") == protocol_of(b"GE") == ""
    assert protocol_of(b"SSH-2.0") == "ssh"
    assert protocol_of(b"\x16\x02\x00") == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tls_to_plain.pcap", "3 connections to 10.1.2.9:9092: the client spoke TLS"),
        ("plain_to_tls.pcap", "3 connections to 10.1.2.9:9093: the client spoke Kafka, and"),
        ("kafka_to_http.pcap", "3 connections to 10.1.2.9:80: the client spoke Kafka, and"),
    ],
)
def test_given_captures(name: str, text: str) -> None:
    reading = read(MADE / name).reading
    assert reading is not None
    (notice,) = reading_notices(reading)
    assert notice.startswith(text)


def test_unread_link_types_are_named_with_their_packets(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    frames = enhanced(b"x" * 60, 1) + enhanced(b"y" * 60, 2, 1) + enhanced(b"z" * 60, 3, 1)
    path.write_bytes(section() + interface(1) + interface(147) + frames)
    reading = read(path).reading
    assert reading is not None
    assert list(reading_notices(reading)) == [
        "2 packets of link type 147 (USER0), which is not read"
    ]
    (tmp_path / "b.pcap").write_bytes(pcap([(1, b"x")], link=60_000))
    reading = read(tmp_path / "b.pcap").reading
    assert reading is not None
    assert list(reading_notices(reading)) == ["1 packet of link type 60000, which is not read"]
