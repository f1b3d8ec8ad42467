"""
Checksums of IP and TCP.

Source: RFC 1071, RFC 9293 3.1 (TCP), RFC 8200 8.1 (its pseudo-header in IPv6).
"""

from __future__ import annotations

import numpy as np

_TCP = 6


def internet_checksum(data: bytes) -> int:
    """Return the checksum of bytes."""
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
