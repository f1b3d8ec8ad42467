"""
Server side of SASL. Without a password PLAIN accepts any; OAUTHBEARER always does.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER); KIP-43, KIP-152.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

_DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS = 4096
MECHANISMS = ("PLAIN", *_DIGESTS, "OAUTHBEARER")


class SaslError(Exception):
    """Authentication failed."""


@dataclass(slots=True)
class SaslServer:
    """
    State of one authentication.

    Attributes:
        mechanism: One of `MECHANISMS`.
        password: Password of clients; required for SCRAM, because the server also proves it.
        is_done: Whether the client is authenticated.
    """

    mechanism: str
    password: str = field(default="", repr=False)
    is_done: bool = False
    _signed: str = field(default="", init=False, repr=False)
    _salt: bytes = field(default=b"", init=False, repr=False)

    def reply(self, token: bytes) -> bytes:
        """
        Return the reply to a message of the client.

        Raises:
            SaslError: The mechanism is unknown, the secret is wrong, or the message is malformed.
        """
        if self.mechanism in ("PLAIN", "OAUTHBEARER"):
            if self.mechanism == "PLAIN" and self.password:
                self._check_plain(token)
            self.is_done = True
            return b""
        digest = _DIGESTS.get(self.mechanism)
        if digest is None:
            raise SaslError(f"SASL mechanism {self.mechanism} is not supported")
        if not self.password:
            raise SaslError(f"{self.mechanism} requires the client's password: --sasl-secret")
        text = token.decode(errors="replace")
        return (self._final(digest, text) if self._signed else self._first(text)).encode()

    def _check_plain(self, token: bytes) -> None:
        given = token.rpartition(b"\0")[2]
        if not hmac.compare_digest(given, self.password.encode()):
            raise SaslError("wrong password")

    def _first(self, text: str) -> str:
        bare = text.partition(",")[2].partition(",")[2]
        nonce = _attributes(bare).get("r", "")
        if not nonce:
            raise SaslError("nonce missing")
        self._salt = secrets.token_bytes(16)
        salt = base64.b64encode(self._salt).decode()
        reply = f"r={nonce}{secrets.token_urlsafe(18)},s={salt},i={_ITERATIONS}"
        self._signed = f"{bare},{reply}"
        return reply

    def _final(self, digest: str, text: str) -> str:
        without_proof, _, proof = text.rpartition(",p=")
        signed = f"{self._signed},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(digest, self.password.encode(), self._salt, _ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if not hmac.compare_digest(base64.b64encode(expected).decode(), proof):
            raise SaslError("wrong password")
        self.is_done = True
        server_key = hmac.digest(salted, b"Server Key", digest)
        return f"v={base64.b64encode(hmac.digest(server_key, signed, digest)).decode()}"


def _attributes(message: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in message.split(",") if part[1:2] == "="}
