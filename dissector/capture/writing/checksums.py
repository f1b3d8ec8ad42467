"""
Checksums of IP and TCP.

Source: RFC 1071, RFC 9293 3.1 (TCP), RFC 8200 8.1 (its pseudo-header in IPv6).
"""

from __future__ import annotations

import numpy as np

_TCP = 6
_FEW_BYTES = 4096
"""Up to this many bytes one long number is faster than an array."""


def internet_checksum(data: bytes) -> int:
    """Return the checksum of bytes."""
    if len(data) <= _FEW_BYTES:
        # A sum of 16-bit digits with end-around carry is the number modulo 2^16 - 1.
        number = int.from_bytes(data, "big") << 8 * (len(data) % 2)
        return 0xFFFF ^ (number % 0xFFFF or (0xFFFF if number else 0))
    words = np.frombuffer(data + bytes(len(data) % 2), ">u2")
    total = int(words.sum(dtype=np.uint64))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def tcp_checksum(source: bytes, target: bytes, segment: bytes) -> int:
    """Return the checksum of a segment with a zeroed checksum field, between two addresses."""
    if len(source) == 4:
        pseudo = source + target + bytes((0, _TCP)) + len(segment).to_bytes(2, "big")
    else:
        pseudo = source + target + len(segment).to_bytes(4, "big") + bytes((0, 0, 0, _TCP))
    return internet_checksum(pseudo + segment)
