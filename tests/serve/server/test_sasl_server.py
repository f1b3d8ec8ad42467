"""Logins of clients: with any password, or with the given one."""

from __future__ import annotations

import pytest

from cluster.client.auth import scram_dialogue
from serve.public import Cassette
from serve.server.sasl_server import SaslError, SaslServer
from serve.server.serve_options import ServeOptions
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient

CAPTURE = SHIPPED / "kafka4-librdkafka-group.pcap"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_authenticates_both_sides(mechanism: str) -> None:
    server = SaslServer(mechanism, "secret")
    client = scram_dialogue("sha" + mechanism[-3:], "alice", "secret")
    final = client.send(server.reply(next(client)))
    with pytest.raises(StopIteration):
        client.send(server.reply(final))
    assert server.is_done


def test_a_wrong_password_is_refused() -> None:
    server = SaslServer("SCRAM-SHA-256", "secret")
    client = scram_dialogue("sha256", "alice", "wrong")
    final = client.send(server.reply(next(client)))
    with pytest.raises(SaslError, match="wrong"):
        server.reply(final)
    with pytest.raises(SaslError, match="--sasl-secret"):
        SaslServer("SCRAM-SHA-256").reply(b"n,,n=a,r=b")


def test_plain_takes_the_given_password_only() -> None:
    SaslServer("PLAIN", "secret").reply(b"\0alice\0secret")
    with pytest.raises(SaslError, match="wrong"):
        SaslServer("PLAIN", "secret").reply(b"\0alice\0guessed")


def test_plain_takes_any_password() -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as client:
        assert client.ask("SaslHandshake", 1, mechanism="PLAIN").error_code == 0
        done = client.ask("SaslAuthenticate", 2, auth_bytes=b"\0alice\0anything")
        assert (done.error_code, done.auth_bytes) == (0, b"")
        assert client.ask("SaslHandshake", 1, mechanism="GSSAPI").error_code == 33


def test_old_clients_send_raw_tokens() -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as client:
        assert client.ask("SaslHandshake", 0, mechanism="PLAIN").error_code == 0
        token = b"\0alice\0anything"
        client.send(len(token).to_bytes(4, "big") + token)
        assert client.frame() == b""
        assert client.ask("Metadata", 9, topics=[]).brokers


def test_a_login_without_the_password_fails() -> None:
    options = ServeOptions(password="")
    with Cassette(CAPTURE, options=options) as served, RawClient(served.bootstrap) as client:
        assert client.ask("SaslHandshake", 1, mechanism="SCRAM-SHA-256").error_code == 0
        assert client.ask("SaslAuthenticate", 2, auth_bytes=b"n,,n=a,r=b").error_code == 58
