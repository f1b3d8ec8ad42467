"""
Writes TLS 1.3 connections with generated secrets, and their key log.

Source: RFC 8446, sections 4 (handshake), 5.2 (records) and 7 (keys).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dissector.tls.key_schedule import expand_label

AES_128_GCM_SHA256 = 0x1301
HANDSHAKE, DATA = 22, 23
MAX_DATA_BYTES = 1 << 14
FINISHED = bytes((20, 0, 0, 32)) + bytes(32)
ENCRYPTED_EXTENSIONS = b"\x08\0\0\x02\0\0"
VERSION_13 = b"\0\x2b"

_LABELS = ("CLIENT_HANDSHAKE", "SERVER_HANDSHAKE", "CLIENT", "SERVER")


class TlsWriter:
    """
    One connection.

    Attributes:
        lines: Lines of the key log.
    """

    def __init__(self, number: int) -> None:
        """Start a connection; its secrets depend on its number."""
        self._random = hashlib.sha256(b"random %d" % number).digest()
        secrets = [hashlib.sha256(f"{label} {number}".encode()).digest() for label in _LABELS]
        names = (f"{label}_TRAFFIC_SECRET{'_0' * (at > 1)}" for at, label in enumerate(_LABELS))
        self.lines = [
            f"{name} {self._random.hex()} {secret.hex()}"
            for name, secret in zip(names, secrets, strict=True)
        ]
        self._early = [_Keys(secret) for secret in secrets[:2]]
        self._keys = [_Keys(secret) for secret in secrets[2:]]

    def handshake(self) -> Iterator[tuple[int, bytes]]:
        """Yield side and bytes of a minimal handshake."""
        suite = struct.pack(">H", AES_128_GCM_SHA256)
        offer = VERSION_13 + b"\0\x03\x02\x03\x04"
        hello = b"\x03\x03" + self._random + b"\0" + b"\0\x02" + suite + b"\x01\0"
        yield 0, _clear(1, hello + struct.pack(">H", len(offer)) + offer)
        chosen = VERSION_13 + b"\0\x02\x03\x04"
        answer = b"\x03\x03" + self._random[::-1] + b"\0" + suite + b"\0"
        answer = _clear(2, answer + struct.pack(">H", len(chosen)) + chosen)
        yield 1, answer + self._early[1].seal(HANDSHAKE, ENCRYPTED_EXTENSIONS + FINISHED)
        yield 0, self._early[0].seal(HANDSHAKE, FINISHED)

    def seal(self, side: int, content: bytes) -> bytes:
        """Return data of a side as encrypted records."""
        starts = range(0, len(content), MAX_DATA_BYTES)
        parts = (content[at : at + MAX_DATA_BYTES] for at in starts)
        return b"".join(self._keys[side].seal(DATA, part) for part in parts)


class _Keys:
    """Key, nonce and sequence number of a direction."""

    def __init__(self, secret: bytes) -> None:
        self._aead = AESGCM(expand_label("sha256", secret, b"key", 16))
        self._nonce = int.from_bytes(expand_label("sha256", secret, b"iv", 12), "big")
        self._sequence = 0

    def seal(self, kind: int, content: bytes) -> bytes:
        header = struct.pack(">BHH", DATA, 0x0303, len(content) + 17)
        nonce = (self._nonce ^ self._sequence).to_bytes(12, "big")
        self._sequence += 1
        return header + self._aead.encrypt(nonce, content + bytes((kind,)), header)


def _clear(kind: int, body: bytes) -> bytes:
    """Return a record with an unencrypted handshake message."""
    message = struct.pack(">I", kind << 24 | len(body)) + body
    return struct.pack(">BHH", HANDSHAKE, 0x0301, len(message)) + message
