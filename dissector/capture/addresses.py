"""IP addresses as two integers, high and low 64 bits, and their usual notation."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

IPV4_MAPPED = 0xFFFF_0000_0000
"""
Low 64 bits of `::ffff:0.0.0.0`, the prefix of IPv4 addresses; the high ones are 0. RFC 4291
2.5.5.2.
"""


@lru_cache(maxsize=1 << 13)
def address_text(high: int, low: int) -> str:
    """Return the usual notation of an address: `10.0.0.1`, `fd00::1`."""
    if high == 0 and low >> 32 == IPV4_MAPPED >> 32:
        return str(IPv4Address(low & 0xFFFF_FFFF))
    return IPv6Address(high << 64 | low).compressed


@lru_cache(maxsize=1 << 13)
def endpoint_text(high: int, low: int, port: int) -> str:
    """Return address and port: `10.0.0.1:9092`, `[fd00::1]:9092`."""
    text = address_text(high, low)
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
