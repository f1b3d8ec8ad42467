"""A TLS 1.3 encoder for records that OpenSSL can't send: CCM, KeyUpdate, padding, early data."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dissector.tls.key_log import KeyLog
from tests.dissector.tls.endpoints import CLIENT, SERVER, Flight

SIDES = ("CLIENT", "SERVER")
HASHES: dict[int, type[HashAlgorithm]] = {0x1302: SHA384}
KEY_BYTES = {0x1302: 32, 0x1303: 32}
DATA, HANDSHAKE, CHANGE_CIPHER_SPEC, ALERT = 23, 22, 20, 21
FINISHED, KEY_UPDATE, END_OF_EARLY_DATA = 20, 24, 5


def expand(suite: int, secret: bytes, label: bytes, length: int) -> bytes:
    info = struct.pack(">HB", length, 6 + len(label)) + b"tls13 " + label + b"\0"
    return HKDFExpand(HASHES.get(suite, SHA256)(), length, info).derive(secret)


def aead(suite: int, key: bytes) -> AESGCM | ChaCha20Poly1305 | AESCCM:
    if suite == 0x1303:
        return ChaCha20Poly1305(key)
    if suite in (0x1304, 0x1305):
        return AESCCM(key, 16 if suite == 0x1304 else 8)
    return AESGCM(key)


def record(kind: int, content: bytes, version: int = 0x0303) -> bytes:
    return struct.pack(">BHH", kind, version, len(content)) + content


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def extension(kind: int, content: bytes) -> bytes:
    return struct.pack(">HH", kind, len(content)) + content


def vector(content: bytes, length_bytes: int) -> bytes:
    return len(content).to_bytes(length_bytes, "big") + content


class Maker:
    """
    Writes the records of one connection.

    Attributes:
        flights: Side and record.
        lines: Its key log.
        plain: Plaintext of each side.
    """

    def __init__(self, suite: int = 0x1302, seed: int = 1) -> None:
        self.suite = suite
        self.random = bytes([seed]) * 32
        self.flights: list[Flight] = []
        self.plain = [bytearray(), bytearray()]
        self.sequences = [0, 0]
        self.lines: list[str] = []
        self._secrets: dict[str, bytes] = {}
        size = 48 if suite == 0x1302 else 32
        labels = [f"{side}_{name}" for side in SIDES for name in ("HANDSHAKE", "DATA", "EARLY")]
        for number, label in enumerate(labels):
            secret = bytes([seed + 16 * (number + 1) & 255]) * size
            self._secrets[label] = secret
            side, name = label.split("_")
            wire = {
                "HANDSHAKE": f"{side}_HANDSHAKE_TRAFFIC_SECRET",
                "DATA": f"{side}_TRAFFIC_SECRET_0",
                "EARLY": f"{side}_EARLY_TRAFFIC_SECRET",
            }[name]
            if label != "SERVER_EARLY":
                self.lines.append(f"{wire} {self.random.hex()} {secret.hex()}")
        self._current: list[bytes] = [b"", b""]

    def keys(self) -> KeyLog:
        log = KeyLog()
        log.add("\n".join(self.lines).encode())
        return log

    def client_hello(self, early: bool = False) -> None:
        extensions = extension(43, b"\x02\x03\x04") + (extension(42, b"") if early else b"")
        body = b"\x03\x03" + self.random + b"\0" + vector(self.suite.to_bytes(2, "big"), 2)
        body += b"\x01\0" + vector(extensions, 2)
        self.send_clear(CLIENT, HANDSHAKE, message(1, body))

    def server_hello(self, random: bytes = b"s" * 32) -> None:
        body = b"\x03\x03" + random + b"\0" + self.suite.to_bytes(2, "big") + b"\0"
        body += vector(extension(43, b"\x03\x04"), 2)
        self.send_clear(SERVER, HANDSHAKE, message(2, body))

    def handshake(self) -> None:
        """A minimal handshake."""
        self.client_hello()
        self.server_hello()
        self.use(SERVER, "HANDSHAKE")
        self.send(SERVER, HANDSHAKE, message(8, b"\0\0") + message(FINISHED, bytes(32)))
        self.use(SERVER, "DATA")
        self.use(CLIENT, "HANDSHAKE")
        self.send(CLIENT, HANDSHAKE, message(FINISHED, bytes(32)))
        self.use(CLIENT, "DATA")

    def use(self, side: int, name: str) -> None:
        self._current[side] = self._secrets[f"{SIDES[side]}_{name}"]
        self.sequences[side] = 0

    def update(self, side: int) -> None:
        """Send KeyUpdate, and use the next keys."""
        self.send(side, HANDSHAKE, message(KEY_UPDATE, b"\0"))
        self.skip_update(side)

    def skip_update(self, side: int) -> None:
        secret = self._current[side]
        self._current[side] = expand(self.suite, secret, b"traffic upd", len(secret))
        self.sequences[side] = 0

    def send_clear(self, side: int, kind: int, content: bytes) -> None:
        self.flights.append((side, record(kind, content)))

    def send(self, side: int, kind: int, content: bytes, padding: int = 0) -> None:
        """Send an encrypted record."""
        secret = self._current[side]
        key = expand(self.suite, secret, b"key", KEY_BYTES.get(self.suite, 16))
        iv = int.from_bytes(expand(self.suite, secret, b"iv", 12), "big")
        inner = content + bytes([kind]) + bytes(padding)
        tag = 8 if self.suite == 0x1305 else 16
        header = struct.pack(">BHH", DATA, 0x0303, len(inner) + tag)
        nonce = (iv ^ self.sequences[side]).to_bytes(12, "big")
        self.flights.append((side, header + aead(self.suite, key).encrypt(nonce, inner, header)))
        self.sequences[side] += 1
        if kind == DATA:
            self.plain[side] += content

    def data(self, side: int, content: bytes, padding: int = 0) -> None:
        self.send(side, DATA, content, padding)
