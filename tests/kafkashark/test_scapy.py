"""Layers of scapy build and dissect like the codecs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from scapy.compat import raw
from scapy.layers.inet import IP, TCP
from scapy.packet import Padding
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession

from dissector.errors import EncodeError
from dissector.public import Exchange, codec, open_capture
from kafkashark.scapy import KafkaRequest, KafkaResponse, bind_ports

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "captures" / "demo.pcap"
CLEAN = ROOT / "captures" / "kafka39-franz-go.pcap"
"""Without retransmissions, at which scapy's TCPSession loses its place."""

API_VERSIONS = {"api_key": 18, "api_version": 3, "correlation_id": 7}
SOFTWARE = {"client_software_name": "mine", "client_software_version": "1"}


@cache
def exchanges(capture: Path = DEMO) -> list[Exchange]:
    return [exchange.kept() for exchange in open_capture(capture)]


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def test_a_request_is_built_by_its_codec() -> None:
    data = bytes(KafkaRequest(**API_VERSIONS, client_id="me", body=SOFTWARE))
    body = codec(18, 3, "request").build(SOFTWARE)
    assert data == framed(b"\0\x12\0\x03\0\0\0\x07\0\x02me\0" + body)


def test_fields_have_defaults() -> None:
    assert bytes(KafkaRequest()) == framed(b"\0\x12\0\0\0\0\0\0\xff\xff")
    assert bytes(KafkaResponse(correlation_id=1, body=b"raw")) == framed(b"\0\0\0\x01raw")


def test_built_packets_are_dissected() -> None:
    second = KafkaRequest(bytes(KafkaRequest(**API_VERSIONS, client_id="me", body=SOFTWARE)))
    assert (second.api_key, second.api_version, second.correlation_id) == (18, 3, 7)
    assert second.client_id == "me"
    assert second.body.client_software_name == "mine"
    assert second.problems == []


def test_all_messages_of_a_capture_are_rebuilt_unchanged() -> None:
    for exchange in exchanges():
        assert exchange.request is not None
        request = KafkaRequest(framed(exchange.request.frame))
        assert request.body == exchange.request.body
        assert bytes(request) == framed(exchange.request.frame)
        if exchange.response is None:
            continue
        response = KafkaResponse(framed(exchange.response.frame)).decoded_by(request)
        assert response.body == exchange.response.body
        assert bytes(response) == framed(exchange.response.frame)
        assert response.answers(request)
        assert response.hashret() == request.hashret()


def test_a_changed_field_changes_the_bytes() -> None:
    request = KafkaRequest(bytes(KafkaRequest(**API_VERSIONS, body=SOFTWARE)))
    request.body.client_software_name = "another"
    del request.size  # as with all layers of scapy: else it keeps its captured value
    assert KafkaRequest(bytes(request)).body.client_software_name == "another"
    request.client_id = "longer than before"
    assert bytes(request) == bytes(
        KafkaRequest(
            **API_VERSIONS,
            client_id="longer than before",
            body=SOFTWARE | {"client_software_name": "another"},
        )
    )


def test_a_response_of_another_request() -> None:
    request = KafkaRequest(**API_VERSIONS)
    assert not KafkaResponse(correlation_id=8).answers(request)
    assert not KafkaResponse(correlation_id=7).answers(IP())


def test_wrong_fields_are_errors() -> None:
    with pytest.raises(EncodeError, match="version 99 is not known"):
        bytes(KafkaRequest(api_key=18, api_version=99))
    with pytest.raises(EncodeError, match="client_software_name"):
        bytes(KafkaRequest(**API_VERSIONS, body={"client_software_name": 7}))


@pytest.mark.parametrize("data", [b"\0", b"\0\0\0\x05\0", framed(b"\0\x12\0\x03"), b"\xff" * 30])
def test_bytes_other_than_a_message(data: bytes) -> None:
    for kind in (KafkaRequest, KafkaResponse):
        packet = kind(data)
        assert raw(packet) == data
        packet.show(dump=True)


def test_an_undecodable_body_stays_bytes() -> None:
    packet = KafkaRequest(framed(b"\0\x12\0\x03\0\0\0\x07\0\x02me\0\x05"))
    assert packet.body == b"\x05"
    assert "request" in str(packet.problems[0])


def test_frames_of_one_segment_are_layers() -> None:
    one, two = (KafkaRequest(correlation_id=number) for number in (1, 2))
    packet = KafkaRequest(bytes(one) + bytes(two) + b"\0\0")
    assert [packet.getlayer(KafkaRequest, n).correlation_id for n in (1, 2)] == [1, 2]
    assert packet[Padding].load == b"\0\0"


@pytest.fixture
def sniffed() -> Iterator[Any]:
    ports = {int(exchange.broker.rpartition(":")[2]) for exchange in exchanges(CLEAN)}
    before = TCP.payload_guess[:]
    bind_ports(*ports)
    yield sniff(offline=str(CLEAN), session=TCPSession, quiet=True)
    TCP.payload_guess[:] = before


def test_tcp_sessions_are_reassembled(sniffed: Any) -> None:
    """The same messages as from kafkashark, with responses decoded by their requests."""
    found: Counter[tuple[str, Any, int, bool]] = Counter()
    for packet in sniffed:
        layer = packet.getlayer(KafkaRequest) or packet.getlayer(KafkaResponse)
        while isinstance(layer, KafkaRequest | KafkaResponse):
            body = isinstance(layer.body, Container)
            found[layer.kind, layer.api_key, layer.correlation_id, body] += 1
            layer = layer.payload
    assert found == Counter(
        (
            message.kind,
            exchange.api_key,
            exchange.correlation_id,
            isinstance(message.body, Container),
        )
        for exchange in exchanges(CLEAN)
        for message in exchange.messages
        if message.size == len(message.frame)
    )


def test_secrets_are_masked_in_shown_packets() -> None:
    body = {"auth_bytes": b"\0user\0hunter2"}
    built = KafkaRequest(api_key=36, api_version=2, correlation_id=1, body=body)
    for packet in (built, KafkaRequest(bytes(built))):
        assert "hunter2" not in f"{packet.show(dump=True)}{packet!r}"
        assert "***" in packet.show(dump=True)
    assert b"hunter2" in bytes(built)


def test_the_error_without_scapy_names_the_extra() -> None:
    code = "import sys; sys.modules['scapy.config'] = None; import kafkashark.scapy"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.stderr.splitlines()[-1].startswith(
        "ImportError: kafkashark.scapy needs an extra: pip install 'kafkashark[scapy]'"
    )
