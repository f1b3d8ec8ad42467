"""A recorder between a client and a broker: what passes, what changes, and what is recorded."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.client.auth import Security
from dissector.errors import UsageError
from dissector.protocol.messages import Message
from record.public import Recorder
from tests.cluster.client.test_broker_connection import CERTIFICATE, served_tls
from tests.default_frames import sized
from tests.record.support.recorded_cluster import ADVERTISED, recorded
from tests.replay.support.scripted_broker import HANG_UP
from tests.serve.support.raw_client import RawClient
from tests.waiting import PATIENCE_S, wait_until

HEARTBEAT = {"group_id": "g", "member_id": "m", "generation_id": 1}


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_clients_get_listeners_and_the_recording_has_the_brokers(tmp_path: Path) -> None:
    with recorded(tmp_path, {"Heartbeat": lambda _: {"throttle_time_ms": 7}}) as running:
        with RawClient(running.recorder.bootstrap) as client:
            first = client.ask("Metadata", 12, topics=None)
            again = client.ask("Metadata", 1, topics=None)
            assert client.ask("Heartbeat", 4, **HEARTBEAT).throttle_time_ms == 7
        with RawClient(f"{first.brokers[0].host}:{first.brokers[0].port}") as client:
            assert client.ask("Heartbeat", 4, **HEARTBEAT).throttle_time_ms == 7
    listeners = [(each.host, each.port) for each in first.brokers]
    assert listeners[0] == ("127.0.0.1", port_of(running.recorder.bootstrap))
    assert listeners[1][0] == "127.0.0.1"
    assert listeners[1][1] not in (ADVERTISED[1], listeners[0][1])
    assert [(each.host, each.port) for each in again.brokers] == listeners
    found = running.exchanges()
    broker = f"127.0.0.1:{running.broker.port}"
    assert [(each.api, each.broker, each.status) for each in found] == [
        (api, broker, "answered") for api in ("Metadata", "Metadata", "Heartbeat", "Heartbeat")
    ]
    assert found[0].response is not None
    assert found[0].response.body is not None
    nodes = [(each.host, each.port) for each in found[0].response.body.brokers]
    assert nodes == [("127.0.0.1", running.broker.port), ADVERTISED]
    assert running.recorder.counts.requests == 4


def test_bytes_pass_unchanged(tmp_path: Path) -> None:
    """Also those of an API that nobody knows, and of a response that can't be read."""
    answers = {
        "api 999": lambda message: sized(
            (message.correlation_id or 0).to_bytes(4, "big") + b"\xff" * 9
        ),
        "FindCoordinator": lambda message: sized(
            (message.correlation_id or 0).to_bytes(4, "big") + b"\0\x7f\xff"
        ),
    }
    with (
        recorded(tmp_path, answers) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        client.send_request("FindCoordinator", 3, key="g")
        assert client.frame() == (1).to_bytes(4, "big") + b"\0\x7f\xff"
        client.send(sized(struct.pack(">hhih", 999, 0, 5, -1)))
        assert client.frame() == (5).to_bytes(4, "big") + b"\xff" * 9
        sent = [message.frame for message in running.broker.requests]
    assert sent[1] == struct.pack(">hhih", 999, 0, 5, -1)
    assert running.recorder.counts.unread == 1


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\x01", b"\0\0\0\x06hello!"]
)
def test_what_is_no_kafka_is_forwarded_and_counted(tmp_path: Path, data: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with Recorder(tmp_path / "a.pcapng", to=address) as recorder:
            client = socket.create_connection(
                ("127.0.0.1", port_of(recorder.bootstrap)), PATIENCE_S
            )
            server, _ = listening.accept()
            with client, server:
                client.sendall(data)
                assert server.recv(100) == data
                server.sendall(data[::-1])
                assert client.recv(100) == data[::-1]
                client.shutdown(socket.SHUT_WR)
                assert server.recv(100) == b""
                server.sendall(b"last words")
                assert client.recv(100) == b"last words"
        assert recorder.counts.foreign == 1


def test_a_broker_that_is_away_is_a_closed_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Recorder(tmp_path / "a.pcapng", to=f"127.0.0.1:{port}") as recorder,
        RawClient(recorder.bootstrap) as client,
    ):
        assert client.is_closed()
    assert recorder.counts.failed == {f"127.0.0.1:{port}": 1}


def accepts(token: bytes) -> Callable[[Message], Any]:
    return lambda _: {"auth_bytes": token, "session_lifetime_ms": 0}


def test_secrets_of_logins_are_blanked_and_reach_the_broker(tmp_path: Path) -> None:
    answers = {
        "SaslHandshake": lambda _: {"mechanisms": ["PLAIN"]},
        "SaslAuthenticate": accepts(b""),
        "Heartbeat": lambda _: {},
    }
    with recorded(tmp_path, answers) as running:
        with RawClient(running.recorder.bootstrap) as client:
            client.ask("SaslHandshake", 1, mechanism="PLAIN")
            client.ask("SaslAuthenticate", 2, auth_bytes=b"\0alice\0s3cret-word")
            client.ask("Heartbeat", 4, **HEARTBEAT)
        sent = running.broker.requests[1].body
        assert sent is not None
        assert sent.auth_bytes == b"\0alice\0s3cret-word"
    assert b"s3cret" not in running.file.read_bytes()
    token = running.exchanges()[1].request
    assert token is not None
    assert token.body is not None
    assert token.body.auth_bytes == b"\0alice\0***********"


def test_tokens_without_headers_are_blanked(tmp_path: Path) -> None:
    """After SaslHandshake v0; the last token of a Kerberos login gets no response."""
    answers = {
        "SaslHandshake": lambda _: {"mechanisms": ["GSSAPI"]},
        "api 32639": lambda _: sized(b"token of the broker"),
        "": lambda _: None,
        "Heartbeat": lambda _: {},
    }
    with recorded(tmp_path, answers) as running, RawClient(running.recorder.bootstrap) as client:
        client.ask("SaslHandshake", 0, mechanism="COMPANY")
        client.send(sized(b"\x7f\x7fpassword of a company"))
        assert client.frame() == b"token of the broker"
        client.send(sized(b"last"))
        client.ask("Heartbeat", 4, **HEARTBEAT)
    assert b"password" not in running.file.read_bytes()
    assert [each.api for each in running.exchanges()][-1] == "Heartbeat"


def test_it_logs_in_and_encrypts_for_clients(tmp_path: Path) -> None:
    """Also again before the session ends, between the requests of the client."""
    lifetimes = [1, 0]
    answers = {
        "SaslHandshake": lambda _: {"mechanisms": ["PLAIN"]},
        "SaslAuthenticate": lambda _: {
            "auth_bytes": b"",
            "session_lifetime_ms": lifetimes.pop(0) if lifetimes else 0,
        },
        "Heartbeat": lambda _: {},
    }
    security = Security.read(
        mechanism="PLAIN",
        username="alice",
        authority_file=CERTIFICATE,
        environment={"KAFKASHARK_PASSWORD": "s3cret-word"},
    )
    with recorded(tmp_path, answers, tls=served_tls(), security=security) as running:
        with RawClient(running.recorder.bootstrap) as client:
            while lifetimes:
                client.ask("Heartbeat", 4, **HEARTBEAT)
            client.ask("Heartbeat", 4, **HEARTBEAT)
        apis = [message.api for message in running.broker.requests]
    assert apis[:3] == ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]
    assert apis.count("SaslAuthenticate") == 2
    assert {each.api for each in running.exchanges()} == {"Heartbeat"}


def test_a_refused_login_closes_the_client(tmp_path: Path) -> None:
    answers = {"SaslHandshake": lambda _: {"error_code": 33, "mechanisms": ["SCRAM-SHA-256"]}}
    security = Security(mechanism="PLAIN", username="alice", password="s3cret")
    with (
        recorded(tmp_path, answers, security=security) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        assert client.is_closed()
    assert sum(running.recorder.counts.failed.values()) == 1


def test_faults_keep_the_order_of_answers(tmp_path: Path) -> None:
    faults = [
        ("api == Heartbeat and correlation_id == 2", "REBALANCE_IN_PROGRESS"),
        ("api == Heartbeat and correlation_id == 3", "delay:20"),
        ("api == Heartbeat and correlation_id == 4", "truncate"),
    ]
    with (
        recorded(tmp_path, {"Heartbeat": lambda _: {}}, faults=faults) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        for _ in range(4):
            client.send_request("Heartbeat", 4, **HEARTBEAT)
        bodies = [client.response(12, 4) for _ in range(3)]
        assert [each.correlation_id for each in bodies] == [1, 2, 3]
        assert [each.body.error_code for each in bodies if each.body] == [0, 27, 0]
        assert len(client.exactly(100)) < 4 + 4 + 1 + 4 + 2 + 1
        assert [message.correlation_id for message in running.broker.requests] == [1, 3, 4]
    assert sorted(running.recorder.counts.faults.values()) == [1, 1, 1]


def test_a_fault_may_close_the_connection(tmp_path: Path) -> None:
    with (
        recorded(tmp_path, {}, faults=[("api == Heartbeat", "close")]) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        client.send_request("Heartbeat", 4, **HEARTBEAT)
        assert client.is_closed()
    assert not running.broker.requests


def test_a_broker_that_hangs_up_ends_the_client(tmp_path: Path) -> None:
    with (
        recorded(tmp_path, {"Heartbeat": lambda _: HANG_UP}) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        client.send_request("Heartbeat", 4, **HEARTBEAT)
        assert client.is_closed()
    assert [each.status for each in running.exchanges()] == ["unanswered"]


def test_a_filter_chooses_the_recorded_exchanges(tmp_path: Path) -> None:
    """Whole ones, by both messages; those without a response too."""
    answers = {
        "Heartbeat": lambda message: (
            None if (message.correlation_id or 0) == 4 else {"error_code": 27}
        ),
        "FindCoordinator": lambda _: {},
    }
    text = "error == REBALANCE_IN_PROGRESS and latency_ms >= 0 or status == unanswered"
    with (
        recorded(tmp_path, answers, filter_text=text) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        client.ask("FindCoordinator", 3, key="g")
        client.ask("Metadata", 9, topics=[])
        assert client.ask("Heartbeat", 4, **HEARTBEAT).error_code == 27
        client.send_request("Heartbeat", 4, **HEARTBEAT)
        wait_until(lambda: len(running.broker.requests) == 4)
    found = running.exchanges()
    assert [(each.api, each.correlation_id) for each in found] == [
        ("Heartbeat", 3),
        ("Heartbeat", 4),
    ]
    assert [each.status for each in found] == ["answered", "unanswered"]
    with pytest.raises(UsageError, match="can't test request_packet"):
        Recorder(tmp_path / "b.pcapng", to="a:1", filter_text="request_packet > 3")
