"""
Replaces names and secrets in SASL tokens; the form of a token stays.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

import base64
import re

from dissector.protocol.field_roles import ValueKind
from dissector.redaction.messages.values import ValueRedactor

_ERRORS = re.compile(r"e=[a-z-]{1,40}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_STATUS = re.compile(r'(\{"status":")(invalid_token|invalid_request|insufficient_scope)"', re.ASCII)


def redact_token(
    values: ValueRedactor, data: bytes, mechanism: str | None, from_client: bool
) -> bytes:
    """
    Return a token with other names and secrets; zeros where it is of an unknown kind.

    Args:
        values: The replacements.
        data: The token.
        mechanism: The mechanism of the connection, if it is known.
        from_client: Whether the client sent it.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return bytes(len(data))
    token = _Token(values)
    for read in (_plain, _scram, _bearer) if from_client else (_scram_server, _bearer_server):
        new = read(token, text).encode("utf-8")
        if new and len(new) == len(data):
            return new
    return bytes(len(data))


class _Token:
    """The replacements of the parts of a token."""

    def __init__(self, values: ValueRedactor) -> None:
        self._values = values

    def name(self, text: str) -> str:
        """Return the pseudonym of a user; of one with unusual characters, letters."""
        if self._values.keeps(ValueKind.PRINCIPAL):
            return text
        names = self._values.pseudonyms
        return names.name(text) if not text or _NAME.fullmatch(text) else self.secret(text)

    def secret(self, text: str) -> str:
        """Return letters."""
        return self._values.pseudonyms.letters(text)

    def nonce(self, text: str) -> str:
        """Return a nonce with parts that depend on earlier ones, because servers extend it."""
        letters = self._values.pseudonyms.letters
        return "".join(letters(text[: at + 1])[at] for at in range(min(len(text), 256)))

    def base64(self, text: str) -> str:
        """Return the base64 of other bytes."""
        try:
            raw = base64.b64decode(text.encode(), validate=True)
        except ValueError:
            return self.secret(text)
        return base64.b64encode(self._values.pseudonyms.noise(raw)).decode()


def _plain(token: _Token, text: str) -> str:
    parts = text.split("\0")
    if len(parts) != 3:
        return ""
    return "\0".join((token.name(parts[0]), token.name(parts[1]), token.secret(parts[2])))


def _attributes(token: _Token, text: str) -> str:
    """Replace the attributes of a SCRAM message; empty if it is not one."""
    out = []
    for part in text.split(","):
        name, equals, value = part[:1], part[1:2], part[2:]
        if equals != "=":
            return ""
        match name:
            case "n" | "a":
                value = token.name(value)
            case "r":
                value = token.nonce(value)
            case "s" | "p" | "v" | "c":
                value = value if name == "c" else token.base64(value)
            case "i":
                value = value if value.isdigit() else token.secret(value)
            case "e":
                value = value if _ERRORS.fullmatch(part) else token.secret(value)
            case _:
                value = "true" if part == "tokenauth=true" else token.secret(value)
        out.append(f"{name}={value}")
    return ",".join(out)


def _scram(token: _Token, text: str) -> str:
    first = re.fullmatch(r"([ny],)((?:a=[^,]*)?,)(n=.*)", text, re.DOTALL)
    if first is None:
        return _attributes(token, text) if text.startswith("c=") else ""
    authzid = first[2][:-1]
    acting = _attributes(token, authzid) if authzid else ""
    rest, *extensions = first[3].split(",tokenauth=true")
    inner = _attributes(token, rest)
    return f"{first[1]}{acting},{inner}{',tokenauth=true' * len(extensions)}" if inner else ""


def _scram_server(token: _Token, text: str) -> str:
    return _attributes(token, text) if text[:2] in ("r=", "v=", "e=") else ""


def _bearer(token: _Token, text: str) -> str:
    if text == "\1":
        return text
    first = re.fullmatch(r"([ny],)((?:a=[^,]*)?,)\x01(.*)\x01", text, re.DOTALL)
    if first is None:
        return ""
    acting = f"a={token.name(first[2][2:-1])}" if len(first[2]) > 1 else ""
    pairs = []
    for pair in first[3].split("\1"):
        name, equals, value = pair.partition("=")
        scheme, space, credential = value.partition(" ")
        if name == "auth" and scheme == "Bearer":
            pairs.append(f"auth=Bearer{space}{token.secret(credential)}")
        else:
            pairs.append(token.secret(name) + equals + token.secret(value))
    return "".join((first[1], acting, ",\1", "\1".join(pairs), "\1"))


def _bearer_server(token: _Token, text: str) -> str:
    known = _STATUS.match(text)
    rest = len(text) - len(known[0]) - 1 if known else -1
    return f"{known[0]}{' ' * rest}}}" if known and rest >= 0 else ""
