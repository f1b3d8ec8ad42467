from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.auth import (
    Security,
    authenticate,
    bearer_dialogue,
    plain_dialogue,
    scram_dialogue,
)
from dissector.errors import ReplayError, UsageError
from dissector.protocol.headers import SASL_AUTHENTICATE, SASL_HANDSHAKE

RFC_7677 = {
    "client_first": b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    "server_first": b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "client_final": b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "server_final": b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
}
"""RFC 7677, section 3."""


def rfc_scram() -> Any:
    dialogue = scram_dialogue("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert next(dialogue) == RFC_7677["client_first"]
    return dialogue


def test_scram_exchanges_the_messages_of_the_rfc() -> None:
    dialogue = rfc_scram()
    assert dialogue.send(RFC_7677["server_first"]) == RFC_7677["client_final"]
    with pytest.raises(StopIteration):
        dialogue.send(RFC_7677["server_final"])


@pytest.mark.parametrize(
    ("server_first", "said"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=!!!,i=4096", "base64"),
        (b"\xff\xfe", "nonce"),
        (b"", "nonce"),
    ],
)
def test_scram_rejects_invalid_first_messages_of_the_broker(server_first: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rfc_scram().send(server_first)


@pytest.mark.parametrize("final", [b"v=AAAA", b"", b"e=other-error", b"v=\xff"])
def test_scram_verifies_the_signature_of_the_broker(final: bytes) -> None:
    dialogue = rfc_scram()
    dialogue.send(RFC_7677["server_first"])
    with pytest.raises(ValueError, match="broker"):
        dialogue.send(final)


@given(st.text(), st.text(min_size=1), st.sampled_from(["sha256", "sha512"]))
def test_scram_proof_is_valid_for_any_user_and_password(
    user: str, password: str, digest: str
) -> None:
    dialogue = scram_dialogue(digest, user, password)
    first = next(dialogue).decode()
    name, nonce = first.removeprefix("n,,n=").rsplit(",r=", 1)
    assert name.replace("=2C", ",").replace("=3D", "=") == user
    assert "," not in name
    salt = b"salt"
    server_first = f"r={nonce}more,s={base64.b64encode(salt).decode()},i=4096"
    final = dialogue.send(server_first.encode()).decode()
    without_proof, proof = final.rsplit(",p=", 1)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, 4096)
    signed = f"{first.removeprefix('n,,')},{server_first},{without_proof}".encode()
    stored = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    signature = hmac.digest(stored, signed, digest)
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(digest, key).digest() == stored
    server = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    with pytest.raises(StopIteration):
        dialogue.send(b"v=" + base64.b64encode(server))


def test_plain_and_oauthbearer_dialogues() -> None:
    assert next(plain_dialogue("ali ce", "pass,word")) == b"\0ali ce\0pass,word"
    accepted = bearer_dialogue("a.b.c")
    assert next(accepted) == b"n,,\1auth=Bearer a.b.c\1\1"
    with pytest.raises(StopIteration):
        accepted.send(b"")
    refused = bearer_dialogue("a.b.c")
    next(refused)
    assert refused.send(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(ValueError, match="invalid_token"):
        refused.send(b"")


class Broker:
    """Replaces a connection; answers authentication from a list."""

    address = "broker:9092"

    def __init__(self, handshake: int, *answers: tuple[int, str | None, bytes], high: int = 2):
        self.versions = {SASL_AUTHENTICATE: (0, high)} if high >= 0 else {}
        self.handshake = handshake
        self.answers = list(answers)
        self.requests: list[tuple[int, int, Mapping[str, Any]]] = []

    async def request_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        self.requests.append((api_key, version, body))
        if api_key == SASL_HANDSHAKE:
            return Container(error_code=self.handshake, mechanisms=["SCRAM-SHA-256", "GSSAPI"])
        code, text, challenge = self.answers.pop(0)
        answer = Container(error_code=code, error_message=text, auth_bytes=challenge)
        if version:
            answer.session_lifetime_ms = 3_600_000
        return answer


ALICE = Security(mechanism="PLAIN", username="alice", password="secret-of-alice")


def test_authentication_sends_handshake_and_credentials() -> None:
    broker = Broker(0, (0, None, b""))
    assert asyncio.run(authenticate(broker, ALICE)) == 3600
    assert [(key, version) for key, version, _ in broker.requests] == [(17, 1), (36, 2)]
    assert broker.requests[1][2] == {"auth_bytes": b"\0alice\0secret-of-alice"}


def test_authenticate_v0_sets_no_session_lifetime() -> None:
    assert asyncio.run(authenticate(Broker(0, (0, None, b""), high=0), ALICE)) == 0


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        (Broker(33), "UNSUPPORTED_SASL_MECHANISM.*it offers: SCRAM-SHA-256, GSSAPI"),
        (Broker(0, (58, "Authentication failed", b"")), "PLAIN failed: Authentication failed"),
        (Broker(0, (58, None, b"")), "PLAIN failed: SASL_AUTHENTICATION_FAILED"),
        (Broker(0, high=-1), "older than 1.0"),
    ],
)
def test_a_refused_login_is_an_error(broker: Broker, said: str) -> None:
    with pytest.raises(ReplayError, match=said) as raised:
        asyncio.run(authenticate(broker, ALICE))
    assert "secret-of-alice" not in str(raised.value)


def test_a_broker_with_a_wrong_scram_signature_is_an_error() -> None:
    security = Security(mechanism="SCRAM-SHA-512", username="alice", password="p")
    with pytest.raises(ReplayError, match="SCRAM-SHA-512 failed: the broker's nonce"):
        asyncio.run(authenticate(Broker(0, (0, None, b"r=x,s=,i=4096")), security))


def test_secrets_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from-file\n")
    environment = {"KAFKASHARK_PASSWORD": "from-env", "KAFKASHARK_TOKEN": "token-env"}
    read = Security.read(mechanism="plain", username="alice", environment=environment)
    assert (read.mechanism, read.username, read.password) == ("PLAIN", "alice", "from-env")
    assert "from-env" not in repr(read)
    read = Security.read(mechanism="PLAIN", username="alice", secret_file=file, environment={})
    assert read.password == "from-file"
    read = Security.read(mechanism="OAUTHBEARER", environment=environment)
    assert next(read.dialogue()) == b"n,,\1auth=Bearer token-env\1\1"
    assert Security.read(environment=environment) == Security()


def test_a_token_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    read = Security.read(mechanism="OAUTHBEARER", secret_file=file, environment={})
    assert next(read.dialogue()) == b"n,,\1auth=Bearer old\1\1"
    file.write_text("new")
    assert next(read.dialogue()) == b"n,,\1auth=Bearer new\1\1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanism": "GSSAPI"}, "GSSAPI is not one of PLAIN"),
        ({"mechanism": "PLAIN", "username": "a"}, r"requires a secret.*\$KAFKASHARK_PASSWORD"),
        ({"mechanism": "OAUTHBEARER"}, r"\$KAFKASHARK_TOKEN"),
        ({"mechanism": "PLAIN", "environment": {"KAFKASHARK_PASSWORD": "x"}}, "user name"),
        ({"mechanism": "PLAIN", "secret_file": Path("not-there")}, "not-there: the secret can"),
        ({"authority_file": Path("not-there.pem")}, r"not-there\.pem: no usable certificates"),
        ({"certificate_file": Path(__file__)}, r"test_auth\.py: no usable certificates"),
    ],
)
def test_inconsistent_options_are_errors(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Security.read(**{"environment": {}, **options})


def test_an_unknown_mechanism_is_an_error() -> None:
    with pytest.raises(UsageError, match="KERBEROS is not one of"):
        Security(mechanism="KERBEROS").dialogue()


def test_tls_checks_the_host_name() -> None:
    context = Security.read(tls=True, environment={}).tls
    assert context is not None
    assert context.check_hostname
