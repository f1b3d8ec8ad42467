"""Link layers and tags before an ethertype: device functions of the header kernel."""

from __future__ import annotations

from dissector.capture import iana_numbers as iana
from dissector.capture.integers import high_half, u16, u32, u32_little
from dissector.capture.packets.link_layers import LinkRules, NextRule, SizeRule
from dissector.capture.packets.skip_reasons import EXPORTED_PDU, LINK_UNREAD, MALFORMED, NOT_IP
from dissector.capture.packets.special_links import (
    nflog_header_bytes,
    pktap_header_bytes,
    wireless_header_bytes,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import Rows

VLAN_BITS = 12

_MAX_TAGS = 4

_MAX_LINKS = 4
"""Link layers of a packet, one in the other: PKTAP, radiotap, 802.11."""


@device_function
def read_link_header(
    data: U8, layers: Rows[LinkRules], link: int, at: int, end: int
) -> tuple[int, int, int]:
    """
    Step over the headers of a link layer.

    Args:
        data: The window.
        layers: `LINK_TABLE`.
        link: The link type.
        at: Begin of the packet.
        end: End of its captured bytes.

    Returns:
        The end of the headers, the ethertype behind them or one of the negative numbers, and the
            innermost link type.
    """
    for _ in range(_MAX_LINKS):
        if link >= len(layers) or layers[link].size_rule == SizeRule.UNREAD:
            return at, LINK_UNREAD, link
        layer = layers[link]
        size = _header_bytes(data, layer.size_rule, layer.size, at, end)
        if size < 0 or at + size > end:
            if link == iana.USER2:
                return at, LINK_UNREAD, link
            return at, size if size < 0 else MALFORMED, link
        rule, place = layer.next_rule, layer.next
        body = at + size
        if rule == NextRule.ETHERTYPE:
            return body, u16(data, at + place), link
        if rule == NextRule.IS_TYPE:
            return body, place, link
        if rule == NextRule.FAMILY:
            return body, _loopback_type(data, at + place), link
        if rule == NextRule.FAMILY_BYTE:
            return body, _family_type(data[at + place]), link
        if rule == NextRule.IP_VERSION:
            return body, _raw_ip_type(data, body) if body < end else MALFORMED, link
        if rule == NextRule.SNAP:
            body, kind = _read_snap(data, body, end)
            return body, kind, link
        if rule == NextRule.PPP_PROTOCOL:
            body, kind = _read_ppp(data, body, end)
            return body, kind, link
        if rule == NextRule.EXPORTED_TAGS:
            return body, EXPORTED_PDU, link
        link = place if rule == NextRule.IS_LINK else u32_little(data, at + place)
        at = body
    return at, MALFORMED, link


@device_function
def _header_bytes(data: U8, rule: int, number: int, at: int, end: int) -> int:
    """Return the size of a header by its rule; a negative number if it has no valid one."""
    if rule == SizeRule.FIXED:
        return number
    if rule == SizeRule.WIRELESS:
        return wireless_header_bytes(data, at, end)
    if rule == SizeRule.NFLOG_ITEMS:
        return nflog_header_bytes(data, at, end)
    if rule == SizeRule.PKTAP_SIZE:
        return pktap_header_bytes(data, at, end)
    # The field that follows in the rule for the next layer lies before the size of 8 bytes.
    if at + 8 > end:
        return MALFORMED
    size = 0
    if rule == SizeRule.LITTLE_16:
        size = int(data[at + number]) | int(data[at + number + 1]) << 8
    elif rule == SizeRule.LITTLE_32:
        size = u32_little(data, at + number)
    elif rule == SizeRule.BIG_32:
        size = u32(data, at + number)
    elif rule == SizeRule.PADDED_BYTE:
        size = (int(data[at + number]) + 3) // 4 * 4
    return size if size >= 8 else MALFORMED


@device_function
def _family_type(family: int) -> int:
    if family == 2:
        return iana.IPV4
    return iana.IPV6 if family in iana.FAMILIES_IPV6 else NOT_IP


@device_function
def _loopback_type(data: U8, at: int) -> int:
    """
    Return the ethertype of a loopback frame.

    The address family is in the byte order of the capturing host: below 256 in one of the two.
    """
    family = u32(data, at)
    if family >= 256:
        family = u32_little(data, at) & 0xFFFFFF
    return _family_type(family)


@device_function
def _raw_ip_type(data: U8, at: int) -> int:
    version = high_half(data, at)
    if version == 4:
        return iana.IPV4
    return iana.IPV6 if version == 6 else NOT_IP


@device_function
def _read_snap(data: U8, at: int, end: int) -> tuple[int, int]:
    """
    Step over IEEE 802.2 with SNAP; return its end, and the ethertype.

    Some adapters pad the header before it to a multiple of 4 bytes: up to 2 bytes, as it is even.

    Source: RFC 1042.
    """
    for _ in range(2):
        if at + 8 > end:
            return at, MALFORMED
        if data[at] == 0xAA and data[at + 1] == 0xAA and data[at + 2] == 3:
            return at + 8, u16(data, at + 6)
        at += 2
    return at, NOT_IP


@device_function
def _read_ppp(data: U8, at: int, end: int) -> tuple[int, int]:
    """
    Step over a PPP header; return its end, and the ethertype that its protocol has.

    It may begin with address and control, or be Cisco's HDLC with an ethertype; the protocol may be
    compressed to a byte.

    Source: RFC 1661, RFC 1662; RFC 1547 4.3.1.
    """
    if at + 4 > end:
        return at, MALFORMED
    if data[at] in (0x0F, 0x8F) and data[at + 1] == 0:
        return at + 4, u16(data, at + 2)
    if data[at] == 0xFF and data[at + 1] == 3:
        at += 2
    protocol = int(data[at])
    at += 1
    if protocol % 2 == 0:
        protocol = protocol * 0x100 + int(data[at])
        at += 1
    return at, ppp_ethertype(protocol)


@device_function
def ppp_ethertype(protocol: int) -> int:
    """Return the ethertype of a PPP protocol number."""
    if protocol == iana.PPP_IPV4:
        return iana.IPV4
    if protocol == iana.PPP_IPV6:
        return iana.IPV6
    return iana.MPLS_TYPES[0] if protocol in iana.PPP_MPLS else NOT_IP


@device_function
def read_tags(data: U8, kind: int, at: int, end: int) -> tuple[int, int, int]:
    """
    Step over tags; return their end, the ethertype behind them, and the VLAN ids.

    The ids are digits of base 4096, outermost first; 0 without any. Id 0 is a priority tag and no
    VLAN. Tags of a virtual interface (VN-Tag) and of Cisco's metadata name no network.

    Source: IEEE 802.1Q; VN-Tag: IEEE 802.1BR's predecessor, 4 bytes; Cisco metadata: version,
    length in words of 4 bytes with the last ethertype, options.
    """
    tags = 0
    count = 0
    while kind in iana.TAG_TYPES:
        size = tag_bytes(data, kind, at, end)
        if count == _MAX_TAGS or size == MALFORMED or at + size > end:
            return at, MALFORMED, tags
        vlan = u16(data, at) & 0xFFF
        if kind in iana.VLAN_TYPES and vlan > 0:
            tags = tags << VLAN_BITS | vlan
        kind = u16(data, at + size - 2)
        at += size
        count += 1
    return at, kind, tags


@device_function
def tag_bytes(data: U8, kind: int, at: int, end: int) -> int:
    """Return the size of a tag, with the ethertype at its end; `MALFORMED` if it is incomplete."""
    if at + 4 > end:
        return MALFORMED
    if kind == iana.VN_TAG:
        return 6
    return 4 + 4 * int(data[at + 1]) if kind == iana.CISCO_METADATA else 4
