"""Numbers that registries assign: link types, ethertypes, IP protocols, ports."""

from __future__ import annotations

IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TYPES = (0x8100, 0x88A8, 0x9100, 0x9200)
MPLS_TYPES = (0x8847, 0x8848)
PPPOE_SESSION = 0x8864
TRANSPARENT_ETHERNET = 0x6558
MAX_8023_LENGTH = 1535
"""An ethertype up to this value is the length of an IEEE 802.2 frame."""

VN_TAG, CISCO_METADATA = 0x8926, 0x8909
TAG_TYPES = (*VLAN_TYPES, VN_TAG, CISCO_METADATA)
"""Ethertypes of tags, which stand before another ethertype."""

NSH = 0x894F

ETHERNET, LINUX_SLL, LINUX_SLL2 = 1, 113, 276
PPP, IEEE80211, WIRESHARK_UPPER_PDU = 9, 105, 252
PKTAP, USER2 = 258, 149
"""Link types. Source: https://www.tcpdump.org/linktypes.html"""

FAMILIES_IPV6 = (10, 24, 26, 28, 30)
"""Values of AF_INET6 on the various systems; AF_INET is 2 everywhere."""

PPP_IPV4, PPP_IPV6, PPP_MPLS = 0x21, 0x57, (0x281, 0x283)
"""Numbers of PPP. Source: RFC 1332, RFC 5072, RFC 3032."""

TCP, UDP = 6, 17
ENCAPSULATING_PROTOCOLS = (4, 41, 47, 97, 137)
"""IP protocols that carry packets: IPv4, IPv6, GRE, EtherIP, MPLS."""

HOP_BY_HOP, FRAGMENT, AUTHENTICATION = 0, 44, 51
IPV6_EXTENSION_HEADERS = (HOP_BY_HOP, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140)
"""IPv6 extension headers. Source: IANA, IPv6 extension header types; RFC 8200, RFC 4302."""

JUMBO_PAYLOAD_OPTION = 0xC204
"""Type and length of the jumbo payload option. Source: RFC 2675."""

TUNNEL_PORTS = {
    2152: "gtp",
    4789: "vxlan",
    4790: "vxlan-gpe",
    6081: "geneve",
    6635: "mpls",
    8472: "vxlan",
}
"""
UDP ports of tunnels. Source: IANA, Service Name and Transport Protocol Port Number Registry; 8472
is Linux's own.
"""
