"""
Keys of records, from the secrets of a key log.

Source: RFC 5246 section 5 and 6.3 (TLS 1.2), RFC 7627 (extended master secret), RFC 8446 section 7
(TLS 1.3)
"""

from __future__ import annotations

import hashlib
import hmac
import struct

MASTER_BYTES = 48


def prf(hash_name: str, secret: bytes, label: bytes, seed: bytes, length: int) -> bytes:
    """Return bytes of TLS 1.2's pseudorandom function."""
    seed = label + seed
    block, out = seed, b""
    while len(out) < length:
        block = hmac.digest(secret, block, hash_name)
        out += hmac.digest(secret, block + seed, hash_name)
    return out[:length]


def master_secret(
    hash_name: str, premaster: bytes, client_random: bytes, server_random: bytes
) -> bytes:
    """Return the master secret of a premaster secret."""
    seed = client_random + server_random
    return prf(hash_name, premaster, b"master secret", seed, MASTER_BYTES)


def extended_master_secret(hash_name: str, premaster: bytes, transcript: bytes) -> bytes:
    """Return the extended master secret; the transcript ends with the ClientKeyExchange."""
    session_hash = hashlib.new(hash_name, transcript).digest()
    return prf(hash_name, premaster, b"extended master secret", session_hash, MASTER_BYTES)


def expand_label(hash_name: str, secret: bytes, label: bytes, length: int) -> bytes:
    """Return HKDF-Expand-Label of TLS 1.3 with an empty context."""
    info = struct.pack(">HB", length, 6 + len(label)) + b"tls13 " + label + b"\0"
    block, out, counter = b"", b"", 1
    while len(out) < length:
        block = hmac.digest(secret, block + info + bytes([counter]), hash_name)
        out += block
        counter += 1
    return out[:length]


def next_traffic_secret(hash_name: str, secret: bytes) -> bytes:
    """Return the traffic secret after a KeyUpdate."""
    return expand_label(hash_name, secret, b"traffic upd", len(secret))
