"""Assumptions of rules about brokers, checked with Apache Kafka itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest

from dissector.protocol.messages import Message, decode_response
from dissector.protocol.records import Record, build_records, new_batch
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import PASSWORD, USER, Shape
from tests.default_frames import sized
from tests.dissector.cli.cli_traffic import request_frame

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

PRODUCE, METADATA, HANDSHAKE, AUTHENTICATE = 0, 3, 17, 36
TOKEN = f"\0{USER}\0{PASSWORD}".encode()
PATIENCE_S = 90.0
LIFETIME_MS = 2000

SECURE = [
    Shape(version, sasl=True, properties=(("connections.max.reauth.ms", str(LIFETIME_MS)),))
    for version in ("4.x", "3.9.x")
]


class Line:
    """A connection to a broker, byte by byte."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)

    def send(self, frame: bytes) -> bytes | None:
        """Send a frame with its size; return the response, None if the broker disconnects."""
        try:
            self.socket.sendall(frame)
            head = self._read(4)
            return None if head is None else self._read(int.from_bytes(head, "big"))
        except (ConnectionError, BrokenPipeError):
            return None

    def ask(self, key: int, version: int, **values: Any) -> Message | None:
        answer = self.send(request_frame(key, version, 1, **values))
        return None if answer is None else decode_response(answer, key, version)

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                return None
            data += piece
        return data


@contextmanager
def line(kafka: StartCluster, shape: Shape, listener: str = "SASL_PLAINTEXT") -> Iterator[Line]:
    it = Line(kafka(shape).bootstrap(listener).split(",")[0])
    with it.socket:
        yield it


def log_in(it: Line) -> int:
    """Log in; return the lifetime of the session in ms."""
    assert it.ask(HANDSHAKE, 1, mechanism="PLAIN").body.error_code == 0
    response = it.ask(AUTHENTICATE, 2, auth_bytes=TOKEN)
    assert response.body.error_code == 0
    return response.body.session_lifetime_ms


@pytest.mark.parametrize("shape", SECURE, ids=lambda it: it.version)
class TestBroker:
    def test_f06_an_invalid_batch_with_acks_0_ends_the_connection(
        self, kafka: StartCluster, shape: Shape
    ) -> None:
        batch = build_records([new_batch([Record(value=b"lamp")])])
        spoilt = batch[:20] + bytes([batch[20] ^ 1]) + batch[21:]
        with line(kafka, shape, "PLAINTEXT") as it:
            assert it.ask(METADATA, 9, topics=[{"name": "f06"}], allow_auto_topic_creation=True)
            data = [{"name": "f06", "partition_data": [{"index": 0, "records": spoilt}]}]
            it.socket.sendall(
                request_frame(PRODUCE, 9, 7, acks=0, timeout_ms=1000, topic_data=data)
            )
            assert it.ask(METADATA, 9, topics=None) is None

    def test_f01_a_negative_size_ends_the_connection(
        self, kafka: StartCluster, shape: Shape
    ) -> None:
        with line(kafka, shape, "PLAINTEXT") as it:
            assert it.ask(METADATA, 9, topics=[]) is not None
            assert it.send((0xFFFFFFFE).to_bytes(4, "big")) is None

    def test_f14_versions_not_offered_end_the_connection(
        self, kafka: StartCluster, shape: Shape
    ) -> None:
        with line(kafka, shape, "PLAINTEXT") as it:
            frame = bytearray(request_frame(METADATA, 12, 1, topics=None))
            frame[6:8] = (99).to_bytes(2, "big")
            assert it.send(bytes(frame)) is None

    def test_v06_a_request_before_the_login_ends_the_connection(
        self, kafka: StartCluster, shape: Shape
    ) -> None:
        with line(kafka, shape) as it:
            assert it.ask(HANDSHAKE, 1, mechanism="PLAIN").body.error_code == 0
            assert it.ask(METADATA, 9, topics=None).body.brokers == []
            assert it.ask(METADATA, 9, topics=None) is None

    def test_s01_raw_tokens_follow_version_0(self, kafka: StartCluster, shape: Shape) -> None:
        with line(kafka, shape) as it:
            assert it.ask(HANDSHAKE, 0, mechanism="PLAIN").body.error_code == 0
            assert it.send(sized(TOKEN)) == b""
            assert it.ask(METADATA, 9, topics=None).body.brokers
        with line(kafka, shape) as it:
            assert it.ask(HANDSHAKE, 0, mechanism="PLAIN").body.error_code == 0
            assert it.ask(AUTHENTICATE, 2, auth_bytes=TOKEN) is None

    def test_s02_a_session_ends(self, kafka: StartCluster, shape: Shape) -> None:
        with line(kafka, shape) as it:
            lifetime_ms = log_in(it)
            assert 0 < lifetime_ms <= LIFETIME_MS
            begun = monotonic()
            while it.ask(METADATA, 9, topics=[]) is not None:
                assert monotonic() - begun < PATIENCE_S
            assert monotonic() - begun > lifetime_ms / 1000 * 0.9

    def test_s02_reauthentication_extends_the_session(
        self, kafka: StartCluster, shape: Shape
    ) -> None:
        with line(kafka, shape) as it:
            lifetime_ms = log_in(it)
            begun = monotonic()
            while monotonic() - begun < lifetime_ms / 1000 / 2:
                assert it.ask(METADATA, 9, topics=[]) is not None
            log_in(it)
            while monotonic() - begun < lifetime_ms / 1000 * 1.2:
                assert it.ask(METADATA, 9, topics=[]) is not None
