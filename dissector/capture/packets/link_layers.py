"""
Link layers as data: how long the header of each is, and what names the layer behind it.

Source: https://www.tcpdump.org/linktypes.html and the pages it links to. PKTAP, IPNET and PPI:
https://www.tcpdump.org/linktypes/LINKTYPE_PKTAP.html, …/LINKTYPE_IPNET.html, …/LINKTYPE_PPI.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.capture import iana_numbers as iana
from dissector.kernel.named_rows import NamedRow, RowArray, rows_of, table_of


class SizeRule:
    """
    Rules for the size of a header.

    A number of bytes, or a field at an offset, or the header's own way. UNREAD, 0, is that of all
    types that are not in the table.
    """

    UNREAD, FIXED, LITTLE_16, LITTLE_32, BIG_32, PADDED_BYTE = range(6)
    WIRELESS, NFLOG_ITEMS, PKTAP_SIZE = range(6, 9)


class NextRule:
    """
    Rules for what follows.

    An ethertype at an offset; an address family of 4 bytes or of one at an offset; the version in
    an IP header; always the same ethertype; IEEE 802.2 with SNAP; a PPP protocol number; always the
    same link layer; a link type at an offset; an exported PDU.
    """

    ETHERTYPE, FAMILY, FAMILY_BYTE, IP_VERSION, IS_TYPE, SNAP = range(6)
    PPP_PROTOCOL, IS_LINK, LINK_AT, EXPORTED_TAGS = range(6, 10)


@dataclass(slots=True)
class LinkRules(NamedRow):
    """
    How to read the header of a link layer.

    Attributes:
        size_rule: How long it is.
        size: The number of that rule.
        next_rule: What names the layer behind it.
        next: The number of that rule.
    """

    size_rule: int = SizeRule.UNREAD
    size: int = 0
    next_rule: int = 0
    next: int = 0


class LinkLayer(NamedTuple):
    """
    A link layer.

    Attributes:
        name: Its name, as `LINKTYPE_` has it.
        size_rule: See `LinkRules`.
        size: See there.
        next_rule: See there.
        next: See there.
    """

    name: str
    size_rule: int
    size: int
    next_rule: int
    next: int = 0

    @property
    def rules(self) -> LinkRules:
        """How to read its header."""
        return LinkRules(*self[1:])


LINK_LAYERS: dict[int, LinkLayer] = {
    0: LinkLayer("NULL", SizeRule.FIXED, 4, NextRule.FAMILY),
    iana.ETHERNET: LinkLayer("ETHERNET", SizeRule.FIXED, 14, NextRule.ETHERTYPE, 12),
    iana.PPP: LinkLayer("PPP", SizeRule.FIXED, 0, NextRule.PPP_PROTOCOL),
    10: LinkLayer("FDDI", SizeRule.FIXED, 13, NextRule.SNAP),
    12: LinkLayer("RAW", SizeRule.FIXED, 0, NextRule.IP_VERSION),
    14: LinkLayer("RAW", SizeRule.FIXED, 0, NextRule.IP_VERSION),
    50: LinkLayer("PPP_HDLC", SizeRule.FIXED, 0, NextRule.PPP_PROTOCOL),
    51: LinkLayer("PPP_ETHER", SizeRule.FIXED, 0, NextRule.IS_TYPE, iana.PPPOE_SESSION),
    100: LinkLayer("ATM_RFC1483", SizeRule.FIXED, 0, NextRule.SNAP),
    101: LinkLayer("RAW", SizeRule.FIXED, 0, NextRule.IP_VERSION),
    104: LinkLayer("C_HDLC", SizeRule.FIXED, 4, NextRule.ETHERTYPE, 2),
    iana.IEEE80211: LinkLayer("IEEE802_11", SizeRule.WIRELESS, 0, NextRule.SNAP),
    108: LinkLayer("LOOP", SizeRule.FIXED, 4, NextRule.FAMILY),
    109: LinkLayer("ENC", SizeRule.FIXED, 12, NextRule.FAMILY),
    113: LinkLayer("LINUX_SLL", SizeRule.FIXED, 16, NextRule.ETHERTYPE, 14),
    117: LinkLayer("PFLOG", SizeRule.PADDED_BYTE, 0, NextRule.FAMILY_BYTE, 1),
    119: LinkLayer("IEEE802_11_PRISM", SizeRule.FIXED, 144, NextRule.IS_LINK, iana.IEEE80211),
    127: LinkLayer("IEEE802_11_RADIOTAP", SizeRule.LITTLE_16, 2, NextRule.IS_LINK, iana.IEEE80211),
    138: LinkLayer("APPLE_IP_OVER_IEEE1394", SizeRule.FIXED, 18, NextRule.ETHERTYPE, 16),
    149: LinkLayer("USER2", SizeRule.PKTAP_SIZE, 0, NextRule.LINK_AT, 8),
    163: LinkLayer("IEEE802_11_AVS", SizeRule.BIG_32, 4, NextRule.IS_LINK, iana.IEEE80211),
    166: LinkLayer("PPP_PPPD", SizeRule.FIXED, 2, NextRule.PPP_PROTOCOL),
    192: LinkLayer("PPI", SizeRule.LITTLE_16, 2, NextRule.LINK_AT, 4),
    204: LinkLayer("PPP_WITH_DIR", SizeRule.FIXED, 1, NextRule.PPP_PROTOCOL),
    205: LinkLayer("C_HDLC_WITH_DIR", SizeRule.FIXED, 5, NextRule.ETHERTYPE, 3),
    219: LinkLayer("MPLS", SizeRule.FIXED, 0, NextRule.IS_TYPE, iana.MPLS_TYPES[0]),
    226: LinkLayer("IPNET", SizeRule.FIXED, 24, NextRule.FAMILY_BYTE, 1),
    228: LinkLayer("IPV4", SizeRule.FIXED, 0, NextRule.IS_TYPE, iana.IPV4),
    229: LinkLayer("IPV6", SizeRule.FIXED, 0, NextRule.IS_TYPE, iana.IPV6),
    239: LinkLayer("NFLOG", SizeRule.NFLOG_ITEMS, 0, NextRule.FAMILY_BYTE, 0),
    iana.WIRESHARK_UPPER_PDU: LinkLayer(
        "WIRESHARK_UPPER_PDU", SizeRule.FIXED, 0, NextRule.EXPORTED_TAGS
    ),
    iana.PKTAP: LinkLayer("PKTAP", SizeRule.PKTAP_SIZE, 0, NextRule.LINK_AT, 8),
    276: LinkLayer("LINUX_SLL2", SizeRule.FIXED, 20, NextRule.ETHERTYPE, 0),
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


def _table() -> RowArray:
    layers = map(LINK_LAYERS.get, range(max(LINK_LAYERS) + 1))
    return table_of([LinkRules() if each is None else each.rules for each in layers], LinkRules)


LINK_TABLE = _table()
"""The rules by link type, for kernels."""

LINK_RULES = rows_of(LINK_TABLE, LinkRules)
"""The same, for single packets."""
