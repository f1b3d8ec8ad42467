"""
Link layers as data: how long the header of each is, and what names the layer behind it.

Source: https://www.tcpdump.org/linktypes.html and the pages it links to. PKTAP, IPNET and PPI:
https://www.tcpdump.org/linktypes/LINKTYPE_PKTAP.html, …/LINKTYPE_IPNET.html, …/LINKTYPE_PPI.html
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.iana_numbers import (
    ETHERNET,
    IEEE80211,
    IPV4,
    IPV6,
    MPLS_TYPES,
    PKTAP,
    PPP,
    PPPOE_SESSION,
    WIRESHARK_UPPER_PDU,
)

# Columns of the table: the rules, and a number that each needs.
SIZE_RULE, SIZE, NEXT_RULE, NEXT = range(4)
_COLUMNS = 4

UNREAD, FIXED, LITTLE_16, LITTLE_32, BIG_32, PADDED_BYTE, WIRELESS, NFLOG_ITEMS, PKTAP_SIZE = range(
    9
)
"""
Rules for the size of a header: a number of bytes, or a field at an offset, or the header's own way.

UNREAD, 0, is that of all types that are not in the table.
"""

(
    ETHERTYPE,
    FAMILY,
    FAMILY_BYTE,
    IP_VERSION,
    IS_TYPE,
    SNAP,
    PPP_PROTOCOL,
    IS_LINK,
    LINK_AT,
    EXPORTED_TAGS,
) = range(10)
"""
Rules for what follows: an ethertype at an offset; an address family of 4 bytes or of one at an
offset; the version in an IP header; always the same ethertype; IEEE 802.2 with SNAP; a PPP
protocol number; always the same link layer; a link type at an offset; an exported PDU.
"""


class LinkLayer(NamedTuple):
    """
    A link layer.

    Attributes:
        name: Its name, as `LINKTYPE_` has it.
        size_rule: How long its header is.
        size: The number of that rule.
        next_rule: What names the layer behind it.
        next: The number of that rule.
    """

    name: str
    size_rule: int
    size: int
    next_rule: int
    next: int = 0


LINK_LAYERS: dict[int, LinkLayer] = {
    0: LinkLayer("NULL", FIXED, 4, FAMILY),
    ETHERNET: LinkLayer("ETHERNET", FIXED, 14, ETHERTYPE, 12),
    PPP: LinkLayer("PPP", FIXED, 0, PPP_PROTOCOL),
    10: LinkLayer("FDDI", FIXED, 13, SNAP),
    12: LinkLayer("RAW", FIXED, 0, IP_VERSION),
    14: LinkLayer("RAW", FIXED, 0, IP_VERSION),
    50: LinkLayer("PPP_HDLC", FIXED, 0, PPP_PROTOCOL),
    51: LinkLayer("PPP_ETHER", FIXED, 0, IS_TYPE, PPPOE_SESSION),
    100: LinkLayer("ATM_RFC1483", FIXED, 0, SNAP),
    101: LinkLayer("RAW", FIXED, 0, IP_VERSION),
    104: LinkLayer("C_HDLC", FIXED, 4, ETHERTYPE, 2),
    IEEE80211: LinkLayer("IEEE802_11", WIRELESS, 0, SNAP),
    108: LinkLayer("LOOP", FIXED, 4, FAMILY),
    109: LinkLayer("ENC", FIXED, 12, FAMILY),
    113: LinkLayer("LINUX_SLL", FIXED, 16, ETHERTYPE, 14),
    117: LinkLayer("PFLOG", PADDED_BYTE, 0, FAMILY_BYTE, 1),
    119: LinkLayer("IEEE802_11_PRISM", FIXED, 144, IS_LINK, IEEE80211),
    127: LinkLayer("IEEE802_11_RADIOTAP", LITTLE_16, 2, IS_LINK, IEEE80211),
    138: LinkLayer("APPLE_IP_OVER_IEEE1394", FIXED, 18, ETHERTYPE, 16),
    149: LinkLayer("USER2", PKTAP_SIZE, 0, LINK_AT, 8),
    163: LinkLayer("IEEE802_11_AVS", BIG_32, 4, IS_LINK, IEEE80211),
    166: LinkLayer("PPP_PPPD", FIXED, 2, PPP_PROTOCOL),
    192: LinkLayer("PPI", LITTLE_16, 2, LINK_AT, 4),
    204: LinkLayer("PPP_WITH_DIR", FIXED, 1, PPP_PROTOCOL),
    205: LinkLayer("C_HDLC_WITH_DIR", FIXED, 5, ETHERTYPE, 3),
    219: LinkLayer("MPLS", FIXED, 0, IS_TYPE, MPLS_TYPES[0]),
    226: LinkLayer("IPNET", FIXED, 24, FAMILY_BYTE, 1),
    228: LinkLayer("IPV4", FIXED, 0, IS_TYPE, IPV4),
    229: LinkLayer("IPV6", FIXED, 0, IS_TYPE, IPV6),
    239: LinkLayer("NFLOG", NFLOG_ITEMS, 0, FAMILY_BYTE, 0),
    WIRESHARK_UPPER_PDU: LinkLayer("WIRESHARK_UPPER_PDU", FIXED, 0, EXPORTED_TAGS),
    PKTAP: LinkLayer("PKTAP", PKTAP_SIZE, 0, LINK_AT, 8),
    276: LinkLayer("LINUX_SLL2", FIXED, 20, ETHERTYPE, 0),
}
"""
The link layers that are read, by type. Old macOS writes PKTAP with the type 149, which is free for
private use: such a packet is read if it begins with a PKTAP header.
"""

_UNREAD_NAMES = {
    3: "AX25",
    6: "IEEE802_5",
    99: "SYMANTEC_FIREWALL",
    107: "FRELAY",
    122: "IP_OVER_FC",
    129: "ARCNET_LINUX",
    143: "DOCSIS",
    165: "BACNET_MS_TP",
    169: "GPRS_LLC",
    177: "LINUX_LAPD",
    187: "BLUETOOTH_HCI_H4",
    189: "USB_LINUX",
    195: "IEEE802_15_4_WITHFCS",
    197: "ERF",
    201: "BLUETOOTH_HCI_H4_WITH_PHDR",
    220: "USB_LINUX_MMAPPED",
    224: "FC_2",
    227: "CAN_SOCKETCAN",
    230: "IEEE802_15_4_NOFCS",
    240: "NETANALYZER",
    242: "IPOIB",
    247: "INFINIBAND",
    248: "SCTP",
    249: "USBPCAP",
    253: "NETLINK",
    254: "BLUETOOTH_LINUX_MONITOR",
    266: "USB_DARWIN",
    271: "VSOCK",
    283: "IEEE802_15_4_TAP",
}


def link_name(link: int) -> str:
    """Return number and name of a link type: `239 (NFLOG)`; the number alone if it has no name."""
    layer = LINK_LAYERS.get(link)
    name = _UNREAD_NAMES.get(link, "") if layer is None else layer.name
    if 147 <= link <= 162:
        name = f"USER{link - 147}"
    return f"{link} ({name})" if name else str(link)


def _table() -> Int64s:
    table = np.zeros((max(LINK_LAYERS) + 1, _COLUMNS), np.int64)
    for link, layer in LINK_LAYERS.items():
        table[link] = layer[1:]
    return table


LINK_TABLE = _table()
"""The rules by link type, for kernels."""
