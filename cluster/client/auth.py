"""
Client authentication: SASL PLAIN, SCRAM and OAUTHBEARER, with or without TLS.

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 (OAUTHBEARER); KIP-43, KIP-152 and
KIP-368 for how Kafka carries it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import ssl
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from construct import Container

from cluster.client.listener import log_warning
from dissector.errors import ReplayError, UsageError
from dissector.protocol.error_codes import error_name
from dissector.protocol.headers import SASL_AUTHENTICATE, SASL_HANDSHAKE
from dissector.small_files import read_small_text

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

PASSWORD_VARIABLE = "KAFKASHARK_PASSWORD"
TOKEN_VARIABLE = "KAFKASHARK_TOKEN"

_MIN_ITERATIONS = 4096
_MAX_ITERATIONS = 1_000_000
"""RFC 7677 requires at least 4096; the maximum bounds the CPU time a broker can cause."""

Dialogue = Generator[bytes, bytes, None]
"""Yields messages to send, receives the responses; raises ValueError if one can't be trusted."""


@dataclass(frozen=True, slots=True)
class Security:
    """
    Whether and how connections to the target are encrypted and authenticated, and to which hosts.

    Without the last attributes, connections go only to the hosts in the target's address. See
    `cluster.client.allowed_hosts`.

    Attributes:
        tls: The TLS context; None for plain TCP.
        mechanism: One of `MECHANISMS`; empty for none.
        username: For PLAIN and SCRAM.
        password: For PLAIN and SCRAM.
        token: For OAUTHBEARER.
        token_file: For OAUTHBEARER; read for each authentication, so that a token may be renewed.
        also: Other hosts that the target may name, `host` or `host:port`.
        follow_advertised: Whether it may name any host.
        allow_plaintext_password: Whether other hosts get passwords and tokens without TLS. This
            concerns SCRAM too: its messages allow a host to try passwords offline.
        option_prefix: Of the command-line options for these attributes, in messages.
        tell: Called with a message about other hosts before the first connection to them.
    """

    tls: ssl.SSLContext | None = None
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    also: tuple[str, ...] = ()
    follow_advertised: bool = False
    allow_plaintext_password: bool = False
    option_prefix: str = field(default="", repr=False, compare=False)
    tell: Callable[[str], None] = field(default=log_warning, repr=False, compare=False)

    @classmethod
    def read(
        cls,
        *,
        mechanism: str = "",
        username: str = "",
        secret_file: Path | None = None,
        tls: bool = False,
        authority_file: Path | None = None,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        **hosts: Any,
    ) -> Security:
        """
        Build the settings from options; secrets come only from a file or the environment.

        Args:
            mechanism: One of `MECHANISMS`; empty for none.
            username: For PLAIN and SCRAM.
            secret_file: Holds the password or the token; default: `$KAFKASHARK_PASSWORD` or
                `$KAFKASHARK_TOKEN`.
            tls: Whether to encrypt; implied by `authority_file` and `certificate_file`.
            authority_file: PEM: certificate authorities, instead of the system's.
            certificate_file: PEM: the client certificate.
            key_file: PEM: its private key, if not in the same file.
            environment: The environment variables.
            hosts: `also` and the attributes after it.

        Raises:
            UsageError: The mechanism is unknown, a file can't be read, or a secret is missing.
        """
        tls = tls or authority_file is not None or certificate_file is not None
        context = _context(authority_file, certificate_file, key_file) if tls else None
        if not mechanism:
            return cls(context, **hosts)
        mechanism = mechanism.upper()
        if mechanism not in MECHANISMS:
            raise UsageError(f"SASL mechanism {mechanism} is not one of {', '.join(MECHANISMS)}")
        variable = TOKEN_VARIABLE if mechanism == "OAUTHBEARER" else PASSWORD_VARIABLE
        secret = _secret(secret_file) if secret_file else environment.get(variable, "")
        if not secret:
            raise UsageError(f"SASL {mechanism} requires a secret, in a file or in ${variable}")
        if mechanism == "OAUTHBEARER":
            return cls(context, mechanism, token=secret, token_file=secret_file, **hosts)
        if not username:
            raise UsageError(f"SASL {mechanism} requires a user name")
        return cls(context, mechanism, username, secret, **hosts)

    def with_hosts(
        self, also: Iterable[str], follow_advertised: bool, allow_plaintext_password: bool
    ) -> Security:
        """Return these settings with more allowed hosts; see the attributes."""
        names = (also,) if isinstance(also, str) else tuple(also)
        return replace(
            self,
            also=self.also + names,
            follow_advertised=self.follow_advertised or follow_advertised,
            allow_plaintext_password=self.allow_plaintext_password or allow_plaintext_password,
        )

    def dialogue(self) -> Dialogue:
        """Return the dialogue of the mechanism."""
        match self.mechanism:
            case "PLAIN":
                return plain_dialogue(self.username, self.password)
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                digest = "sha256" if self.mechanism.endswith("256") else "sha512"
                return scram_dialogue(digest, self.username, self.password)
            case "OAUTHBEARER":
                return bearer_dialogue(_secret(self.token_file) if self.token_file else self.token)
        raise UsageError(f"SASL mechanism {self.mechanism} is not one of {', '.join(MECHANISMS)}")


def plain_dialogue(username: str, password: str) -> Dialogue:
    """Return the dialogue of PLAIN: a single message."""
    yield f"\0{username}\0{password}".encode()


def bearer_dialogue(token: str) -> Dialogue:
    """Return the dialogue of OAUTHBEARER: a refusal must be acknowledged."""
    refusal = yield f"n,,\1auth=Bearer {token}\1\1".encode()
    if refusal:
        yield b"\1"
        raise ValueError(f"the token was refused: {refusal.decode(errors='replace')}")


def scram_dialogue(digest: str, username: str, password: str, nonce: str = "") -> Dialogue:
    """
    Return the SCRAM dialogue, in which the broker also proves that it knows the password.

    Args:
        digest: `sha256` or `sha512`.
        username: The user.
        password: Its password.
        nonce: The client nonce; random if empty.
    """
    nonce = nonce or secrets.token_urlsafe(24)
    name = username.replace("=", "=3D").replace(",", "=2C")
    first_bare = f"n={name},r={nonce}"
    server_first = (yield f"n,,{first_bare}".encode()).decode(errors="replace")
    attributes = _attributes(server_first)
    both, salt, iterations = (
        attributes.get("r", ""),
        attributes.get("s", ""),
        attributes.get("i", ""),
    )
    if not both.startswith(nonce) or both == nonce:
        raise ValueError("the broker's nonce does not extend ours")
    if not iterations.isdigit() or not _MIN_ITERATIONS <= int(iterations) <= _MAX_ITERATIONS:
        raise ValueError(f"the broker requests {iterations!r} iterations")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), _decoded(salt), int(iterations))
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    without_proof = f"c=biws,r={both}"
    signed = f"{first_bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored_key, signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    shown = _decoded(_attributes(final.decode(errors="replace")).get("v", ""))
    if not hmac.compare_digest(shown, expected):
        raise ValueError("the broker did not prove that it knows the password")


class RequestSender(Protocol):
    """The part of a connection that authentication needs."""

    address: str
    versions: dict[int, tuple[int, int]]

    async def request_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send a request ahead of all that are held back, and return the response body."""


async def authenticate(connection: RequestSender, security: Security) -> float:
    """
    Authenticate a connection; return the session lifetime in seconds, 0 for unlimited.

    Raises:
        ReplayError: The broker refuses.
    """
    highest = connection.versions.get(SASL_AUTHENTICATE, (0, -1))[1]
    if highest < 0:
        raise ReplayError(
            connection.address, "does not support SaslAuthenticate", "it is older than 1.0"
        )
    handshake = await connection.request_now(SASL_HANDSHAKE, 1, {"mechanism": security.mechanism})
    if handshake.error_code:
        offered = ", ".join(handshake.mechanisms) or "none"
        reason = f"refused SASL {security.mechanism} ({error_name(handshake.error_code)})"
        raise ReplayError(connection.address, reason, f"it offers: {offered}")
    dialogue = security.dialogue()
    token = next(dialogue)
    while True:
        response = await connection.request_now(
            SASL_AUTHENTICATE, min(highest, 2), {"auth_bytes": token}
        )
        if response.error_code:
            cause = response.error_message or error_name(response.error_code)
            raise ReplayError(connection.address, f"SASL {security.mechanism} failed: {cause}")
        try:
            token = dialogue.send(response.auth_bytes)
        except StopIteration:
            return float(response.get("session_lifetime_ms", 0)) / 1000
        except ValueError as error:
            reason = f"SASL {security.mechanism} failed: {error}"
            raise ReplayError(connection.address, reason) from None


def _attributes(message: str) -> dict[str, str]:
    """Parse `r=...,s=...,i=...`."""
    return {part[:1]: part[2:] for part in message.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("the broker's message is not in base64") from None


def _secret(file: Path) -> str:
    return read_small_text(file, "the secret ").strip("\r\n")


def _context(authority: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(str(each) for each in (authority, certificate, key) if each)
        raise UsageError(f"{names}: no usable certificates ({error})") from None
    return context
