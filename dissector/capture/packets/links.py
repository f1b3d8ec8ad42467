"""Link layers and VLAN tags: device functions of the header kernel."""

from __future__ import annotations

from dissector.capture.iana_numbers import (
    ETHERNET,
    FAMILIES_IPV6,
    IPV4,
    IPV6,
    LINUX_SLL,
    LINUX_SLL2,
    LOOPBACK,
    RAW,
    RAW_IPV4,
    RAW_IPV6,
    VLAN_TYPES,
)
from dissector.capture.integers import high_half, u16, u32, u32_little
from dissector.kernel import device_function
from dissector.kernel.arrays import U8

MALFORMED, NOT_IP = -1, -2
"""Returned in place of an ethertype."""

VLAN_BITS = 12

_MAX_TAGS = 4


@device_function
def read_link_header(data: U8, link: int, at: int, end: int) -> tuple[int, int]:
    """Step over the header of a link layer; return its end, and the ethertype behind it."""
    if link == ETHERNET:
        return at + 14, u16(data, at + 12) if at + 14 <= end else MALFORMED
    if link == LINUX_SLL:
        return at + 16, u16(data, at + 14) if at + 16 <= end else MALFORMED
    if link == LINUX_SLL2:
        return at + 20, u16(data, at) if at + 20 <= end else MALFORMED
    if link in LOOPBACK:
        return at + 4, _loopback_type(data, at) if at + 4 <= end else MALFORMED
    if link in RAW:
        return at, _raw_ip_type(data, at) if at < end else MALFORMED
    if link == RAW_IPV4:
        return at, IPV4
    return at, IPV6 if link == RAW_IPV6 else NOT_IP


@device_function
def _loopback_type(data: U8, at: int) -> int:
    """
    Return the ethertype of a loopback frame.

    The address family is in the byte order of the capturing host: below 256 in one of the two.
    """
    family = u32(data, at)
    if family >= 256:
        family = u32_little(data, at) & 0xFFFFFF
    if family == 2:
        return IPV4
    return IPV6 if family in FAMILIES_IPV6 else NOT_IP


@device_function
def _raw_ip_type(data: U8, at: int) -> int:
    version = high_half(data, at)
    if version == 4:
        return IPV4
    return IPV6 if version == 6 else NOT_IP


@device_function
def read_vlan_tags(data: U8, kind: int, at: int, end: int) -> tuple[int, int, int]:
    """
    Step over VLAN tags; return their end, the ethertype behind them, and their ids.

    The ids are digits of base 4096, outermost first; 0 without any. Id 0 is a priority tag and no
    VLAN. Source: IEEE 802.1Q.
    """
    tags = 0
    count = 0
    while kind in VLAN_TYPES:
        if count == _MAX_TAGS or at + 4 > end:
            return at, MALFORMED, tags
        vlan = u16(data, at) & 0xFFF
        if vlan > 0:
            tags = tags << VLAN_BITS | vlan
        kind = u16(data, at + 2)
        at += 4
        count += 1
    return at, kind, tags
