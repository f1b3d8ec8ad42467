"""
The handshake messages needed for decryption and the summary of a connection.

Source: RFC 8446 section 4, RFC 5246 section 7.4, RFC 6066 (server name), RFC 7301 (ALPN)
"""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass, field

HELLO_REQUEST, CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, END_OF_EARLY_DATA = 0, 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE, SERVER_HELLO_DONE, CLIENT_KEY_EXCHANGE = 8, 11, 14, 16
FINISHED, KEY_UPDATE = 20, 24

TLS12, TLS13 = 0x0303, 0x0304
VERSIONS = {
    0x0300: "SSL 3.0",
    0x0301: "TLS 1.0",
    0x0302: "TLS 1.1",
    TLS12: "TLS 1.2",
    TLS13: "TLS 1.3",
}

_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest."""

_SERVER_NAME, _ALPN, _ENCRYPT_THEN_MAC, _EXTENDED_MASTER, _TICKET = 0, 16, 22, 23, 35
_PRE_SHARED_KEY, _EARLY_DATA, _SUPPORTED_VERSIONS = 41, 42, 43

_MAX_NAME_CHARS = 255


class BadMessage(Exception):
    """A handshake message does not have the declared form; never leaves this package."""


@dataclass(slots=True)
class Hello:
    """
    A ClientHello or ServerHello.

    Attributes:
        version: The version in it, with `supported_versions` the one of a ServerHello.
        random: Its random.
        session_id: Its session id.
        suite: The suite that a ServerHello chose.
        is_retry: Whether it is a HelloRetryRequest.
        extensions: The content of its extensions by type.
    """

    version: int
    random: bytes
    session_id: bytes
    suite: int = 0
    is_retry: bool = False
    extensions: dict[int, bytes] = field(default_factory=dict)

    @property
    def server_name(self) -> str:
        """The server's name in a ClientHello; empty if it gives none."""
        content = self.extensions.get(_SERVER_NAME, b"")
        return _text(content[5 : 5 + int.from_bytes(content[3:5], "big")])

    @property
    def alpn(self) -> str:
        """The protocol that the server chose; empty if none."""
        return alpn_of(self.extensions)

    @property
    def ticket(self) -> bytes:
        """The session ticket of TLS 1.2 that a client offers."""
        return self.extensions.get(_TICKET, b"")

    @property
    def encrypts_then_macs(self) -> bool:
        """Whether the MAC is over the ciphertext."""
        return _ENCRYPT_THEN_MAC in self.extensions

    @property
    def has_extended_master(self) -> bool:
        """Whether the master secret depends on the transcript."""
        return _EXTENDED_MASTER in self.extensions

    @property
    def has_pre_shared_key(self) -> bool:
        """Whether a ServerHello accepts a resumption (TLS 1.3)."""
        return _PRE_SHARED_KEY in self.extensions

    @property
    def has_early_data(self) -> bool:
        """Whether a client sends data at once."""
        return _EARLY_DATA in self.extensions


def alpn_of(extensions: dict[int, bytes]) -> str:
    """Return the protocol that the server chose; empty if none."""
    content = extensions.get(_ALPN, b"")
    return _text(content[3 : 3 + content[2]]) if len(content) > 3 else ""


def accepts_early_data(extensions: dict[int, bytes]) -> bool:
    """Return whether these encrypted extensions accept the client's early data."""
    return _EARLY_DATA in extensions


def _text(raw: bytes) -> str:
    text = raw[:_MAX_NAME_CHARS].decode("ascii", "backslashreplace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


class _Parts:
    """Reads parts of a message from its front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise BadMessage(f"ends after {len(self.data)} bytes")
        self.at += count
        return part

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def vector(self, length_bytes: int) -> bytes:
        return self.take(self.number(length_bytes))

    @property
    def left(self) -> int:
        return len(self.data) - self.at


def read_client_hello(body: bytes) -> Hello:
    """Read the body of a ClientHello."""
    parts = _Parts(body)
    hello = Hello(parts.number(2), parts.take(32), parts.vector(1))
    parts.vector(2)
    parts.vector(1)
    hello.extensions = _extensions(parts)
    return hello


def read_server_hello(body: bytes) -> Hello:
    """Read the body of a ServerHello."""
    parts = _Parts(body)
    hello = Hello(parts.number(2), parts.take(32), parts.vector(1), suite=parts.number(2))
    parts.take(1)
    hello.extensions = _extensions(parts)
    hello.is_retry = hello.random == _RETRY_RANDOM
    chosen = hello.extensions.get(_SUPPORTED_VERSIONS)
    if chosen is not None and len(chosen) == 2:
        hello.version = int.from_bytes(chosen, "big")
    return hello


def read_encrypted_extensions(body: bytes) -> dict[int, bytes]:
    """Read the body of an EncryptedExtensions message."""
    return _extensions(_Parts(body))


def _extensions(parts: _Parts) -> dict[int, bytes]:
    if not parts.left:
        return {}
    inner = _Parts(parts.vector(2))
    extensions: dict[int, bytes] = {}
    while inner.left:
        kind = inner.number(2)
        extensions.setdefault(kind, inner.vector(2))
    return extensions


def read_ticket(body: bytes) -> bytes:
    """Return the ticket of a NewSessionTicket of TLS 1.2."""
    parts = _Parts(body)
    parts.take(4)
    return parts.vector(2)


def read_encrypted_premaster(body: bytes) -> bytes:
    """Return the encrypted premaster secret of a ClientKeyExchange with RSA."""
    return (
        body[2:] if len(body) >= 2 and struct.unpack_from(">H", body)[0] == len(body) - 2 else b""
    )


def read_subject(body: bytes, is_tls13: bool) -> str:
    """Return the subject of the first certificate of a Certificate message; empty for none."""
    parts = _Parts(body)
    if is_tls13:
        parts.vector(1)
    certificates = _Parts(parts.vector(3))
    if not certificates.left:
        return ""
    # Few connections have readable certificates, and the library is slow to load.
    from cryptography import x509

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            certificate = x509.load_der_x509_certificate(certificates.vector(3))
            subject = certificate.subject.rfc4514_string()
    except BadMessage:
        raise
    except Exception as error:  # the library declares no common base class
        raise BadMessage(f"unreadable certificate ({type(error).__name__})") from None
    return "".join(char if char.isprintable() else "?" for char in subject[:1024])
