"""
Decryption of records: one object for each direction and key.

Source: RFC 8446 section 5 (TLS 1.3); RFC 5246 section 6.2.3, RFC 5288 (GCM), RFC 6655 (CCM), RFC
7905 (ChaCha20-Poly1305), RFC 7366 (encrypt-then-MAC)
"""

from __future__ import annotations

import hmac as constant_time
import struct
from abc import ABC, abstractmethod
from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.hmac import HMAC

from dissector.tls import sequence_search
from dissector.tls.cipher_suites import CipherSuite
from dissector.tls.key_schedule import expand_label, prf

MAX_SEQUENCE = (1 << 64) - 1

Aead = AESGCM | ChaCha20Poly1305 | AESCCM

UNVERIFIED = (InvalidTag, ValueError)
"""Errors of `open` for a record that does not verify, or is too short for its cipher."""

_HASHES: dict[str, type[HashAlgorithm]] = {"sha1": SHA1, "sha256": SHA256, "sha384": SHA384}
_MAC_BYTES = {"": 0, "sha1": 20, "sha256": 32, "sha384": 48}
_EXPLICIT_BYTES = 8
_BLOCK_BYTES = 16
_U16 = struct.Struct(">H")


class RecordCipher(ABC):
    """
    The read state of one direction: key and sequence number.

    Attributes:
        suite: Its cipher suite.
        sequence: The sequence number of the next record.
        min_body_bytes: The shortest body of a record.
    """

    __slots__ = ("min_body_bytes", "sequence", "suite")

    def __init__(self, suite: CipherSuite, min_body_bytes: int) -> None:
        self.suite = suite
        self.sequence = 0
        self.min_body_bytes = min_body_bytes

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not pickled")

    @abstractmethod
    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        """
        Return content type and plaintext of the next record.

        Raises:
            InvalidTag: Tag or MAC do not verify.
            ValueError: The body is too short for the cipher.
        """

    @abstractmethod
    def find(self, header: bytes, body: bytes, first: int, count: int) -> int | None:
        """Return the sequence number of a record, among `count` from `first` on; None: no match."""

    @abstractmethod
    def plain_bytes(self, body_bytes: int) -> int | None:
        """Return the length of the plaintext of a record; None if that depends on padding."""

    def _try(self, header: bytes, body: bytes, sequence: int) -> bool:
        """Return whether a record verifies with a sequence number; the state does not change."""
        kept = self.sequence
        self.sequence = sequence
        try:
            self.open(header, body)
        except UNVERIFIED:
            return False
        finally:
            self.sequence = kept
        return True

    def _find_upwards(self, header: bytes, body: bytes, first: int, count: int) -> int | None:
        for sequence in range(first, min(first + count, MAX_SEQUENCE)):
            if self._try(header, body, sequence):
                return sequence
        return None


class Tls13Cipher(RecordCipher):
    """Any AEAD of TLS 1.3."""

    __slots__ = ("_aead", "_iv", "_key", "_number")

    def __init__(self, suite: CipherSuite, secret: bytes) -> None:
        super().__init__(suite, suite.tag_bytes + 1)
        self._key = expand_label(suite.hash_name, secret, b"key", suite.key_bytes)
        self._iv = expand_label(suite.hash_name, secret, b"iv", 12)
        self._number = int.from_bytes(self._iv, "big")
        self._aead = _aead(suite, self._key)

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        """Return content type and plaintext of the next record."""
        nonce = (self._number ^ self.sequence).to_bytes(12, "big")
        inner = self._aead.decrypt(nonce, body, header)
        self.sequence = (self.sequence + 1) & MAX_SEQUENCE
        if not inner:
            return 0, b""
        if not inner[-1]:
            inner = inner.rstrip(b"\0")
            if not inner:
                return 0, b""
        return inner[-1], inner[:-1]

    def find(self, header: bytes, body: bytes, first: int, count: int) -> int | None:
        """Return the sequence number of a record, among `count` from `first` on."""
        if len(body) < self.min_body_bytes:
            return None
        mode = self.suite.mode
        if mode == "gcm" and isinstance(self._aead, AESGCM):
            found = sequence_search.gcm_sequence(self._aead, self._key, self._iv, header, body)
            is_inside = found is not None and first <= found < first + count
            return found if is_inside and self._try(header, body, found or 0) else None
        search = sequence_search.LastByte(
            self._key, self._iv, body, self.suite.tag_bytes, mode == "chacha20"
        )
        for sequence in search.candidates(first, count):
            if self._try(header, body, sequence):
                return sequence
        return None

    def plain_bytes(self, body_bytes: int) -> int | None:
        """Return the length of the plaintext of a record without padding."""
        return max(body_bytes - self.min_body_bytes, 0)


class Tls12Aead(RecordCipher):
    """AES-GCM, AES-CCM and ChaCha20-Poly1305 of TLS 1.2."""

    __slots__ = ("_aead", "_explicit", "_iv", "_last_explicit", "_last_sequence", "_number")

    def __init__(self, suite: CipherSuite, key: bytes, iv: bytes) -> None:
        self._explicit = 0 if suite.mode == "chacha20" else _EXPLICIT_BYTES
        super().__init__(suite, self._explicit + suite.tag_bytes)
        self._iv = iv
        self._number = int.from_bytes(iv, "big")
        self._aead = _aead(suite, key)
        self._last_explicit = self._last_sequence = 0

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        """Return content type and plaintext of the next record."""
        size = len(body) - self.min_body_bytes
        if size < 0:
            raise ValueError("record too short")
        sequence = self.sequence
        additional = sequence.to_bytes(8, "big") + header[:3] + _U16.pack(size)
        if self._explicit:
            explicit = body[:_EXPLICIT_BYTES]
            inner = self._aead.decrypt(self._iv + explicit, body[_EXPLICIT_BYTES:], additional)
            self._last_explicit = int.from_bytes(explicit, "big")
            self._last_sequence = sequence
        else:
            nonce = (self._number ^ sequence).to_bytes(12, "big")
            inner = self._aead.decrypt(nonce, body, additional)
        self.sequence = (sequence + 1) & MAX_SEQUENCE
        return header[0], inner

    def find(self, header: bytes, body: bytes, first: int, count: int) -> int | None:
        """
        Return the sequence number of a record, among `count` from `first` on.

        Explicit nonces that count show it at once.
        """
        if self._explicit:
            explicit = int.from_bytes(body[:_EXPLICIT_BYTES], "big")
            guess = self._last_sequence + explicit - self._last_explicit
            for sequence in (guess, explicit):
                if first <= sequence < first + count and self._try(header, body, sequence):
                    return sequence
        return self._find_upwards(header, body, first, count)

    def plain_bytes(self, body_bytes: int) -> int | None:
        """Return the length of the plaintext of a record."""
        return max(body_bytes - self.min_body_bytes, 0)


class Tls12Cbc(RecordCipher):
    """AES-CBC of TLS 1.2 with an HMAC over the plaintext or over the ciphertext."""

    __slots__ = ("_decryptor", "_mac", "_mac_bytes", "_macs_ciphertext")

    def __init__(self, suite: CipherSuite, key: bytes, mac_key: bytes, macs_ciphertext: bool):
        self._mac_bytes = _MAC_BYTES[suite.mac_name]
        blocks = 2 if macs_ciphertext else (self._mac_bytes + 1 + 15) // 16 + 1
        least = blocks * _BLOCK_BYTES + (self._mac_bytes if macs_ciphertext else 0)
        super().__init__(suite, least)
        # A record begins with its IV: decrypted along, it makes the state before it irrelevant.
        start = modes.CBC(bytes(_BLOCK_BYTES))
        self._decryptor = Cipher(algorithms.AES(key), start).decryptor()
        self._mac = HMAC(mac_key, _HASHES[suite.mac_name]())
        self._macs_ciphertext = macs_ciphertext

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        """Return content type and plaintext of the next record."""
        content, tag = self._split(body)
        self._verify(header, content, tag, self.sequence)
        if self._macs_ciphertext:
            content = self._unpad(self._decryptor.update(content)[_BLOCK_BYTES:])
        self.sequence = (self.sequence + 1) & MAX_SEQUENCE
        return header[0], content

    def find(self, header: bytes, body: bytes, first: int, count: int) -> int | None:
        """Return the sequence number of a record, among `count` from `first` on."""
        try:
            content, tag = self._split(body)
        except UNVERIFIED:
            return None
        for sequence in range(first, min(first + count, MAX_SEQUENCE)):
            if constant_time.compare_digest(self._tag_of(header, content, sequence), tag):
                return sequence
        return None

    def plain_bytes(self, body_bytes: int) -> int | None:
        """Return None: the length depends on the padding."""
        return None

    def _split(self, body: bytes) -> tuple[bytes, bytes]:
        """Return the input of the MAC, and the MAC."""
        size = self._mac_bytes
        encrypted = len(body) - (size if self._macs_ciphertext else 0)
        if len(body) < self.min_body_bytes or encrypted % _BLOCK_BYTES:
            raise ValueError("no whole blocks")
        if self._macs_ciphertext:
            return body[:-size], body[-size:]
        content = self._unpad(self._decryptor.update(body)[_BLOCK_BYTES:])
        if len(content) < size:
            raise ValueError("invalid padding")
        return content[:-size], content[-size:]

    def _verify(self, header: bytes, content: bytes, tag: bytes, sequence: int) -> None:
        if not constant_time.compare_digest(self._tag_of(header, content, sequence), tag):
            raise InvalidTag

    def _tag_of(self, header: bytes, content: bytes, sequence: int) -> bytes:
        mac = self._mac.copy()
        mac.update(sequence.to_bytes(8, "big") + header[:3] + _U16.pack(len(content)))
        mac.update(content)
        return mac.finalize()

    @staticmethod
    def _unpad(padded: bytes) -> bytes:
        size = padded[-1] + 1
        if size > len(padded) or padded[-size:] != bytes([padded[-1]]) * size:
            raise ValueError("invalid padding")
        return padded[:-size]


def tls12_ciphers(
    suite: CipherSuite,
    master: bytes,
    client_random: bytes,
    server_random: bytes,
    encrypts_then_macs: bool,
) -> tuple[RecordCipher, RecordCipher]:
    """Return the ciphers of client and server of a TLS 1.2 connection."""
    mac_bytes = _MAC_BYTES[suite.mac_name]
    iv_bytes = {"gcm": 4, "ccm": 4, "chacha20": 12, "cbc": 0}[suite.mode]
    seed, size = server_random + client_random, mac_bytes + suite.key_bytes + iv_bytes
    block = prf(suite.hash_name, master, b"key expansion", seed, 2 * size)
    parts = []
    for length in (mac_bytes, suite.key_bytes, iv_bytes):
        parts.append((block[:length], block[length : 2 * length]))
        block = block[2 * length :]
    mac_keys, keys, ivs = parts
    if suite.mode == "cbc":
        return (
            Tls12Cbc(suite, keys[0], mac_keys[0], encrypts_then_macs),
            Tls12Cbc(suite, keys[1], mac_keys[1], encrypts_then_macs),
        )
    return Tls12Aead(suite, keys[0], ivs[0]), Tls12Aead(suite, keys[1], ivs[1])


def _aead(suite: CipherSuite, key: bytes) -> Aead:
    if suite.mode == "gcm":
        return AESGCM(key)
    if suite.mode == "chacha20":
        return ChaCha20Poly1305(key)
    return AESCCM(key, suite.tag_bytes)
