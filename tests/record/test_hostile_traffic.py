"""Clients and clusters that misbehave: one line at most, bounded memory, and others go on."""

from __future__ import annotations

import signal
import socket
import ssl
import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from cluster.client.auth import Security
from cluster.client.listener import UnfinishedFrames
from record.public import Recorder
from record.relay import relay_server
from tests.cluster.client.test_broker_connection import CERTIFICATE
from tests.default_frames import sized
from tests.record.support.recorded_cluster import ADVERTISED, broker_thread, recorded
from tests.record.test_recorder import HEARTBEAT, port_of
from tests.serve.support.raw_client import RawClient
from tests.waiting import PATIENCE_S, wait_until

SASL_AUTHENTICATE, HEARTBEAT_KEY = 36, 12
ROOT = Path(__file__).parents[2]


def connected(bootstrap: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(bootstrap)), PATIENCE_S)


def request(api_key: int, version: int, body: bytes) -> bytes:
    return struct.pack(">hhih", api_key, version, 1, -1) + body


@pytest.mark.parametrize("api_key", [HEARTBEAT_KEY, SASL_AUTHENTICATE, 3])
@pytest.mark.parametrize("is_reset", [False, True])
def test_half_a_request(tmp_path: Path, api_key: int, is_reset: bool) -> None:
    with recorded(tmp_path, {"Heartbeat": lambda _: {}}) as running:
        half = sized(request(api_key, 0, b"s3cret" * 100))[:-300]
        with connected(running.recorder.bootstrap) as client:
            client.sendall(half)
            # A connection that is reset before it is accepted never gets there.
            wait_until(lambda: running.broker.connections)
            if is_reset:
                linger = struct.pack("ii", 1, 0)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wait_until(lambda: not running.broker.open)
        with RawClient(running.recorder.bootstrap) as other:
            other.ask("Heartbeat", 4, **HEARTBEAT)
    assert [each.api for each in running.exchanges()][-1] == "Heartbeat"
    is_recorded = b"s3cret" in running.file.read_bytes()
    assert is_recorded == (api_key != SASL_AUTHENTICATE) or is_reset


@pytest.mark.parametrize("size", [1 << 30, (1 << 31) - 1, -1, -(1 << 31)])
def test_sizes_that_are_none_are_forwarded(tmp_path: Path, size: int) -> None:
    data = struct.pack(">i", size) + request(HEARTBEAT_KEY, 4, b"rest")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        to = f"127.0.0.1:{listening.getsockname()[1]}"
        with Recorder(tmp_path / "a.pcapng", to=to) as recorder:
            client = connected(recorder.bootstrap)
            server, _ = listening.accept()
            with client, server:
                client.sendall(data)
                assert server.recv(len(data), socket.MSG_WAITALL) == data
    assert recorder.counts.foreign == 1


def test_large_messages_of_many_clients_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a login no byte is recorded then, as nobody knows where the secret is."""
    monkeypatch.setattr(relay_server, "UnfinishedFrames", partial(UnfinishedFrames, 10_000))
    token = b"\0alice\0" + b"s3cret" * 20_000
    answers = {"SaslAuthenticate": lambda _: {"auth_bytes": b""}, "Heartbeat": lambda _: {}}
    with (
        recorded(tmp_path, answers) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        client.ask("SaslAuthenticate", 2, auth_bytes=token)
        client.ask("Heartbeat", 4, **HEARTBEAT)
        sent = running.broker.requests[0].body
        assert sent is not None
        assert sent.auth_bytes == token
    assert b"s3cret" not in running.file.read_bytes()
    found = running.exchanges()
    assert found[-1].api == "Heartbeat"
    assert found[-1].status == "answered"


def test_secrets_go_to_no_host_that_only_the_cluster_names(tmp_path: Path) -> None:
    answers = {
        "SaslHandshake": lambda _: {"mechanisms": ["PLAIN"]},
        "SaslAuthenticate": lambda _: {"auth_bytes": b"", "session_lifetime_ms": 0},
    }
    security = Security(mechanism="PLAIN", username="alice", password="s3cret")
    with recorded(tmp_path, answers, security=security) as running:
        with RawClient(running.recorder.bootstrap) as client:
            brokers = client.ask("Metadata", 9, topics=[]).brokers
        assert {each.host for each in brokers} == {"127.0.0.1"}
        with RawClient(f"127.0.0.1:{brokers[1].port}") as client:
            assert client.is_closed()
    assert running.recorder.counts.failed == {f"{ADVERTISED[0]}:{ADVERTISED[1]}": 1}


def test_a_cluster_without_the_tls_that_we_speak(tmp_path: Path) -> None:
    security = Security.read(authority_file=CERTIFICATE, environment={})
    with (
        recorded(tmp_path, {}, security=security) as running,
        RawClient(running.recorder.bootstrap) as client,
    ):
        assert client.is_closed()
    assert sum(running.recorder.counts.failed.values()) == 1


@pytest.mark.long
def test_clients_without_the_tls_of_the_listener(tmp_path: Path) -> None:
    with broker_thread({}) as broker:
        words = ("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0", "-o")
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kafkashark", "record", *words, tmp_path / "a.pcapng"),
                f"--listener-tls-certificate={CERTIFICATE}",
            ],
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert process.stderr is not None
            port = port_of(process.stderr.readline().split()[-1])
            for data in (sized(request(18, 0, b"")), b"\x16\x03\x01\x02\0" + b"\xff" * 600, b""):
                with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                    with suppress(ConnectionError):
                        while client.recv(1000):
                            pass
            context = ssl.create_default_context(cafile=CERTIFICATE)
            with (
                socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
            ):
                client.sendall(sized(request(18, 0, b"")))
                assert client.recv(4)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=PATIENCE_S)[1]
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0, said
    assert broker.connections == 1
    assert "1 request of 4 connections" in said
    assert len(said.splitlines()) <= 2, said
