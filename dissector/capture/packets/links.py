"""Link layers and VLAN tags: parts of the loop over packets."""

from __future__ import annotations

from typing import Any

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
from dissector.capture.integers import high_half, u16, u32, u32_low
from dissector.kernel import device_function

MALFORMED, NOT_IP = -1, -2
"""In place of an ethertype."""

VLAN_BITS = 12

_MAX_TAGS = 4


@device_function
def read_link_header(data: Any, link: int, at: int, end: int) -> tuple[int, int]:
    """Step over a link layer's header; return where it ends, and the ethertype behind it."""
    if link == ETHERNET:
        return at + 14, u16(data, at + 12) if at + 14 <= end else MALFORMED
    if link == LINUX_SLL:
        return at + 16, u16(data, at + 14) if at + 16 <= end else MALFORMED
    if link == LINUX_SLL2:
        return at + 20, u16(data, at) if at + 20 <= end else MALFORMED
    if link in LOOPBACK:
        return at + 4, _family(data, at) if at + 4 <= end else MALFORMED
    if link in RAW:
        return at, _version(data, at) if at < end else MALFORMED
    if link == RAW_IPV4:
        return at, IPV4
    return at, IPV6 if link == RAW_IPV6 else NOT_IP


@device_function
def _family(data: Any, at: int) -> int:
    """A loopback's family is in the byte order of the host that captured: below 256 in one."""
    family = u32(data, at)
    if family >= 256:
        family = u32_low(data, at) & 0xFFFFFF
    if family == 2:
        return IPV4
    return IPV6 if family in FAMILIES_IPV6 else NOT_IP


@device_function
def _version(data: Any, at: int) -> int:
    version = high_half(data, at)
    if version == 4:
        return IPV4
    return IPV6 if version == 6 else NOT_IP


@device_function
def read_vlan_tags(data: Any, kind: int, at: int, end: int) -> tuple[int, int, int]:
    """
    Step over VLAN tags; return where they end, the ethertype behind them, and their ids.

    Ids are digits of base 4096, outermost first; 0 for none. Id 0 is a tag for priority only and no
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
