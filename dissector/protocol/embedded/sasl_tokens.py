"""
SASL tokens: user and step of the login, never the secrets in them.

The handshake determines the mechanism; if that is unknown, the mechanism is guessed from the bytes.
Fields of a token are shown only if they are known to be harmless; all others are left out.

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 and 6750 (OAUTHBEARER), RFC 4752 and
2743 (GSSAPI); KIP-12, KIP-43, KIP-84, KIP-255.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from dissector.protocol.embedded.secrecy.credentials import MASK as MASK
from dissector.protocol.embedded.secrecy.credentials import holds_credential

_SCRAM_BY_DIGEST = {32: "SCRAM-SHA-256", 64: "SCRAM-SHA-512"}
_SCRAM_ERRORS = {
    "invalid-encoding",
    "extensions-not-supported",
    "invalid-proof",
    "channel-bindings-dont-match",
    "server-does-support-channel-binding",
    "channel-binding-not-supported",
    "unsupported-channel-binding-type",
    "unknown-user",
    "invalid-username-encoding",
    "no-resources",
    "other-error",
}
_BEARER_ERRORS = {"invalid_request", "invalid_token", "insufficient_scope"}
_GSSAPI_OIDS = (
    bytes.fromhex("06092a864886f712010202"),  # Kerberos 5
    bytes.fromhex("06062b0601050502"),  # SPNEGO
)
_JSON_LIMIT = 65_536

_BEARER_TOKEN = re.compile(rb"(?i:\x01auth=bearer )([^\x01]+)\x01")
_SCRAM_SECRETS = re.compile(rb"(?:^|,)[psv]=([^,]+)")
"""Proof, salt and signature in the messages of SCRAM."""


@dataclass(frozen=True, slots=True)
class Token:
    """
    The parts of a SASL token that may be shown.

    Attributes:
        mechanism: `PLAIN`, `SCRAM-SHA-256`, `GSSAPI`, ...; `SCRAM` if the token does not show which
            one; None if unknown.
        user: The name that logs in, if the token has it.
        step: `client-first`, `server-final`, ...; empty if unknown.
        text: Summary in one line.
    """

    mechanism: str | None
    user: str | None
    step: str
    text: str


def decode_token(data: bytes, mechanism: str | None = None, from_client: bool = True) -> Token:
    """
    Decode a SASL token.

    Args:
        data: The token: `auth_bytes`, or a frame after SaslHandshake v0.
        mechanism: From the handshake; guessed if None.
        from_client: Whether the client sent it.
    """
    for name, decode in _DECODERS:
        if mechanism is None or _family(mechanism) == name:
            token = decode(data, mechanism, from_client)
            # A name that is itself a credential is not shown.
            if token is not None and not holds_credential(token.text):
                return token
    shown = mechanism if re.fullmatch(r"[A-Z0-9_-]{1,64}", mechanism or "") else "SASL"
    return Token(mechanism, None, "", f"{shown} token of {len(data)} bytes")


def token_secrets(data: bytes, *, from_client: bool) -> list[bytes]:
    """
    Return the secrets in a SASL token: a password, a bearer token, salt, proof and signature.

    Args:
        data: The token, of any mechanism.
        from_client: Whether the client sent it.
    """
    if from_client:
        bearer = _BEARER_TOKEN.search(data)
        if bearer:
            return [bearer[1].strip()]
        parts = data.split(b"\0")
        if len(parts) == 3 and parts[1] and parts[2]:
            return [parts[2]]
    is_scram = data.startswith(b"c=" if from_client else (b"r=", b"v="))
    return _SCRAM_SECRETS.findall(data) if is_scram else []


def _family(mechanism: str) -> str:
    return "SCRAM" if mechanism.startswith("SCRAM-") else mechanism


def _plain(data: bytes, mechanism: str | None, from_client: bool) -> Token | None:
    if not from_client:
        accepted = mechanism is not None and not data
        return Token("PLAIN", None, "accepted", "PLAIN accepted") if accepted else None
    parts = data.split(b"\0")
    text = _utf8(data)
    if len(parts) != 3 or not parts[1] or not parts[2] or text is None:
        return None
    if mechanism is None and not all(c.isprintable() or c == "\0" for c in text):
        return None
    authzid, user, _ = text.split("\0")
    acting = f" acts for {_quoted(authzid)}" if authzid else ""
    shown = f"PLAIN user {_quoted(user)}{acting} password {MASK}"
    return Token("PLAIN", user, "client-first", shown)


def _scram(data: bytes, mechanism: str | None, from_client: bool) -> Token | None:
    text = _utf8(data)
    if text is None:
        return None
    decode = _scram_client if from_client else _scram_server
    return decode(text, mechanism)


def _scram_client(text: str, mechanism: str | None) -> Token | None:
    first = re.fullmatch(r"[ny],(?:a=([^,]*))?,n=([^,]*),r=([^,]+)(?:,.*)?", text, re.DOTALL)
    if first:
        authzid, user, nonce = (_sasl_name(part or "") for part in first.groups())
        acting = f" acts for {_quoted(authzid)}" if authzid else ""
        name = mechanism or "SCRAM"
        shown = f"{name} user {_quoted(user)}{acting} nonce {_quoted(nonce)}"
        return Token(name, user, "client-first", shown)
    final = re.fullmatch(r"c=[^,]*,r=([^,]+)(?:,.*)?,p=([^,]*)", text, re.DOTALL)
    if final:
        name = mechanism or _scram_mechanism(final[2])
        shown = f"{name} nonce {_quoted(final[1])} proof {MASK}"
        return Token(name, None, "client-final", shown)
    return None


def _scram_server(text: str, mechanism: str | None) -> Token | None:
    first = re.fullmatch(r"r=([^,]+),s=[^,]*,i=(\d{1,10})(?:,.*)?", text, re.DOTALL | re.ASCII)
    if first:
        name = mechanism or "SCRAM"
        shown = f"{name} nonce {_quoted(first[1])} salt {MASK} iterations {first[2]}"
        return Token(name, None, "server-first", shown)
    final = re.fullmatch(r"([ve])=([^,]*)(?:,.*)?", text, re.DOTALL)
    if final is None:
        return None
    if final[1] == "e":
        name = mechanism or "SCRAM"
        error = final[2] if final[2] in _SCRAM_ERRORS else "without a known name"
        return Token(name, None, "server-final", f"{name} error {error}")
    name = mechanism or _scram_mechanism(final[2])
    return Token(name, None, "server-final", f"{name} signature {MASK}")


def _scram_mechanism(digest: str) -> str:
    """Return the SCRAM mechanism with this length of digest; the digest is in base64."""
    raw = _base64(digest)
    return _SCRAM_BY_DIGEST.get(len(raw or b""), "SCRAM")


def _sasl_name(text: str) -> str:
    """Undo the escapes of a SCRAM name."""
    return text.replace("=2C", ",").replace("=3D", "=")


def _oauthbearer(data: bytes, mechanism: str | None, from_client: bool) -> Token | None:
    text = _utf8(data)
    if text is None:
        return None
    if not from_client:
        return _oauthbearer_server(text, mechanism)
    if mechanism is not None and text == "\1":
        return Token("OAUTHBEARER", None, "client-final", "OAUTHBEARER acknowledges the error")
    first = re.fullmatch(r"[ny],(?:a=([^,]*))?,\x01(.*)\x01", text, re.DOTALL)
    if first is None:
        return None
    pairs = [pair.partition("=") for pair in first[2].split("\1") if pair]
    bearer = [value for key, _, value in pairs if key.lower() == "auth"]
    if not bearer or not bearer[0].lower().startswith("bearer "):
        return None
    authzid, credential = _sasl_name(first[1] or ""), bearer[0][7:].strip()
    # The claims of a web token are part of the credential: no user name is read from them.
    user = authzid if authzid not in credential else ""
    who = f" user {_quoted(user)}" if user else ""
    return Token("OAUTHBEARER", user or None, "client-first", f"OAUTHBEARER{who} token {MASK}")


def _oauthbearer_server(text: str, mechanism: str | None) -> Token | None:
    if mechanism is not None and not text:
        return Token("OAUTHBEARER", None, "accepted", "OAUTHBEARER accepted")
    status = (_json(text) or {}).get("status")
    if not isinstance(status, str):
        return None
    error = status if status in _BEARER_ERRORS else "without a known name"
    return Token("OAUTHBEARER", None, "server-error", f"OAUTHBEARER error {error}")


def _gssapi(data: bytes, mechanism: str | None, from_client: bool) -> Token | None:
    """Identify a GSSAPI token; only the first one of each side has its OID."""
    first = data[:1] == b"\x60" and any(oid in data[:24] for oid in _GSSAPI_OIDS)
    if mechanism is None and not first:
        return None
    step = ("client-first" if from_client else "server-first") if first else ""
    return Token("GSSAPI", None, step, f"GSSAPI token of {len(data)} bytes")


_DECODERS = (
    ("GSSAPI", _gssapi),
    ("OAUTHBEARER", _oauthbearer),
    ("SCRAM", _scram),
    ("PLAIN", _plain),
)


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode(), validate=True)
    except ValueError:
        return None


def _json(text: str) -> dict[str, Any] | None:
    if len(text) > _JSON_LIMIT:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _quoted(text: str) -> str:
    """Return text in quotes, escaped to one line."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
