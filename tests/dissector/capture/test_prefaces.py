"""Headers of proxies before Kafka."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from dissector import Options, open_capture
from dissector.capture.prefaces import Preface, read_preface
from dissector.engine.reading.capture import Capture
from dissector.engine.reading.connection_rows import connection_rows
from tests.default_frames import request, response
from tests.tcp_captures import Wire, pieces, write

LIST_GROUPS = 16
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def binary(command: int, family: int, body: bytes, size: int | None = None) -> bytes:
    """Return a header of version 2."""
    length = len(body) if size is None else size
    return SIGNATURE + struct.pack(">BBH", command, family, length) + body


def addresses(source: str, target: str, *ports: int) -> bytes:
    """Return the addresses of a header of version 2."""
    return ip_address(source).packed + ip_address(target).packed + struct.pack(">HH", *ports)


V4 = binary(0x21, 0x11, addresses("203.0.113.7", "10.0.0.2", 51234, 9092))
V6 = binary(0x21, 0x21, addresses("2001:db8::7", "fd00::2", 51234, 9092) + b"\x04\0\2xx")
LINE = b"PROXY TCP4 203.0.113.7 10.0.0.2 51234 9092\r\n"
HEAD = b"CONNECT kafka-1.example.com:9092 HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 Connection established\r\nVia: y\r\n\r\n"

HEADERS = {
    "v1": (LINE, "203.0.113.7:51234"),
    "v1, IPv6": (b"PROXY TCP6 2001:db8::7 fd00::2 51234 9092\r\n", "[2001:db8::7]:51234"),
    "v1, unknown": (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    "v2": (V4, "203.0.113.7:51234"),
    "v2, IPv6, with a TLV": (V6, "[2001:db8::7]:51234"),
    "v2, UNIX": (binary(0x21, 0x31, b"/run/kafka.sock".ljust(216, b"\0")), "unix:/run/kafka.sock"),
    "v2, local": (binary(0x20, 0x00, b""), None),
    "v2, unspecified": (binary(0x21, 0x00, b"what ever"), None),
    "two proxies": (V6 + LINE, "203.0.113.7:51234"),
    "CONNECT": (HEAD, "CONNECT kafka-1.example.com:9092"),
}


@pytest.mark.parametrize(("header", "origin"), HEADERS.values(), ids=HEADERS)
def test_the_client_of_a_header(header: bytes, origin: str | None) -> None:
    assert read_preface(header, is_client=True) == Preface(origin, len(header))
    assert read_preface(header + b"rest", is_client=True) == Preface(origin, len(header))
    assert read_preface(header, is_client=False) == Preface(None, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PROXY TCP4 203.0.113.7 10.0.0.2 51234 9092\n",
        b"PROXY TCP4 203.0.113.700 10.0.0.2 51234 9092\r\n",
        b"PROXY TCP4 2001:db8::7 10.0.0.2 51234 9092\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.2 65536 9092\r\n",
        b"PROXY TCP6 " + b"0" * 100 + b":: :: 1 2\r\n",
        b"PROXY UNKNOWN " + b"x" * 100 + b"\r\n",
        b"PROXY UNKNOWN \x1b[31m\r\n",
        V4[:-1],
        binary(0x21, 0x11, b"\1\2\3\4", 65535),
        binary(0x31, 0x11, V4[16:]),
        b"CONNECT \x1b[31m:9092 HTTP/1.1\r\n\r\n",
        b"CONNECT " + b"x" * 300 + b" HTTP/1.1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n" + b"x" * 20_000 + b"\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_other_bytes_are_no_header(data: bytes) -> None:
    assert read_preface(data, is_client=True) == Preface(None, 0)


@pytest.mark.parametrize(
    "body", [b"\1" * 11, b"/\x1b[31m".ljust(216, b"\0")], ids=["too short", "control characters"]
)
def test_no_address_of_a_header_with_an_invalid_one(body: bytes) -> None:
    family = 0x11 if len(body) == 11 else 0x31
    header = binary(0x21, family, body)
    assert read_preface(header, is_client=True) == Preface(None, len(header))


def test_the_answer_to_a_connect_request() -> None:
    assert read_preface(ANSWER, is_client=False) == Preface(None, len(ANSWER))


def capture(path: Path, header: bytes, answer: bytes, places: list[int]) -> str:
    """Write a capture of a proxied connection, its header cut at places, and of a direct one."""
    wire = Wire()
    connection = wire.connect().syn()
    if answer:
        connection.client(*pieces(header, places)).broker(answer)
        header = b""
    first = pieces(header + request(LIST_GROUPS, 0, 1), places)
    connection.client(*first).broker(response(LIST_GROUPS, 0, 1))
    for number in (2, 3):
        connection.client(request(LIST_GROUPS, 0, number)).broker(response(LIST_GROUPS, 0, number))
    direct = wire.connect(50001).syn()
    direct.client(request(LIST_GROUPS, 0, 1)).broker(response(LIST_GROUPS, 0, 1))
    return write(path, wire.packets)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("places", [[], [3], [16], [5, 20], list(range(1, 50, 7))])
@pytest.mark.parametrize(
    ("header", "answer", "origin"),
    [
        (LINE, b"", "203.0.113.7:51234"),
        (V6, b"", "[2001:db8::7]:51234"),
        (HEAD, ANSWER, "CONNECT kafka-1.example.com:9092"),
        (b"PROXY TCP4 9.9.9.9\r\n", b"", None),
    ],
    ids=["v1", "v2", "CONNECT", "invalid"],
)
def test_the_origin_of_a_connection_is_a_column(
    header: bytes, answer: bytes, origin: str | None, places: list[int], tmp_path: Path
) -> None:
    path = capture(tmp_path / "a.pcap", header, answer, places)
    read = open_capture(path)
    assert read.exchanges()["origin"].to_list() == [origin] * 3 + [None]
    assert read.streams()["origin"].to_list() == [origin, None]
    assert [each.origin for each in open_capture(path)] == [origin] * 3 + [None]
    assert len(open_capture(path, filter='origin contains "203.0"').exchanges()) == 3 * (
        header == LINE
    )
    small = Capture([path], Options(window_bytes=100))
    for _ in small.windows():
        pass
    assert small.reading is not None
    assert [row["origin"] for row in connection_rows(small.reading)] == [origin, None]
