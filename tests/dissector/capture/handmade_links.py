"""IP packets in each link layer, tag and tunnel, for hand-made captures."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.dissector.capture.handmade_packets import ethernet, ipv4, udp

SNAP = b"\xaa\xaa\x03\0\0\0"

Wrap = Callable[[bytes], bytes]


def ethertype(ip: bytes) -> int:
    return 0x0800 if ip[0] >> 4 == 4 else 0x86DD


def in_ethernet(ip: bytes) -> bytes:
    return ethernet(ip, ethertype(ip))


def ppp(ip: bytes) -> bytes:
    return struct.pack(">H", 0x21 if ip[0] >> 4 == 4 else 0x57) + ip


def hdlc(ip: bytes) -> bytes:
    return struct.pack(">HH", 0x0F00, ethertype(ip)) + ip


def snap(ip: bytes) -> bytes:
    return SNAP + struct.pack(">H", ethertype(ip)) + ip


def wireless(
    ip: bytes, kind: int = 0x08, flags: int = 1, more: bytes = b"", part: int = 0
) -> bytes:
    """Return an IEEE 802.11 frame; `more` are the optional fields of its header."""
    return bytes([kind, flags]) + bytes(20) + struct.pack("<H", part) + more + snap(ip)


def radiotap(frame: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 14, 0) + bytes(6) + frame


def pktap(frame: bytes, link: int, size: int = 108) -> bytes:
    head = struct.pack("<III24sIII", size, 1, link, b"en0", 1, 2, 14)
    return head + bytes(size - len(head)) + frame


def ppi(frame: bytes, link: int) -> bytes:
    return struct.pack("<BBHI", 0, 0, 12, link) + bytes(4) + frame


def nflog(ip: bytes, order: str = "<", items: int = 3) -> bytes:
    """Return a packet with items before it, of which one is padded."""
    out = bytes([2 if ip[0] >> 4 == 4 else 10, 0, 0, 7])
    for kind in range(1, 1 + items):
        out += struct.pack(f"{order}HH", 4 + 5 * kind, kind) + bytes(5 * kind + -5 * kind % 4)
    return out + struct.pack(f"{order}HH", 4 + len(ip), 9) + ip


def pflog(ip: bytes, size: int = 61, family: int = 30) -> bytes:
    head = bytes([size, 2 if ip[0] >> 4 == 4 else family])
    return head + bytes(size + -size % 4 - 2) + ip


def ipnet(ip: bytes) -> bytes:
    family = 2 if ip[0] >> 4 == 4 else 26
    return struct.pack(">BBHI", 1, family, 2, len(ip)) + bytes(16) + ip


def exported_pdu(ip: bytes, name: bytes = b"kafka\0\0\0") -> bytes:
    """Return the payload of a TCP packet without options of IP as Wireshark exports it."""
    is_v4 = ip[0] >> 4 == 4
    source, target = (ip[12:16], ip[16:20]) if is_v4 else (ip[8:24], ip[24:40])
    tcp = ip[20:] if is_v4 else ip[40:]
    first = 20 if is_v4 else 22
    ports = [struct.pack(">I", each) for each in struct.unpack_from(">HH", tcp)]
    tags = [(12, name), (first, source), (first + 1, target), (24, struct.pack(">I", 2))]
    tags += [(25, ports[0]), (26, ports[1]), (30, bytes(4)), (0, b"")]
    head = b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in tags)
    return head + tcp[(tcp[12] >> 4) * 4 :]


LINKS: dict[str, tuple[int, Wrap]] = {
    "ethernet": (1, in_ethernet),
    "ppp": (9, ppp),
    "ppp with address and control": (9, lambda ip: b"\xff\x03" + ppp(ip)),
    "ppp with a short protocol": (9, lambda ip: ppp(ip)[1:]),
    "ppp in hdlc": (50, lambda ip: b"\xff\x03" + ppp(ip)),
    "hdlc as ppp": (50, hdlc),
    "pppoe": (51, lambda ip: struct.pack(">HHH", 0x1100, 1, len(ip) + 2) + ppp(ip)),
    "fddi": (10, lambda ip: b"\x50" + bytes(12) + snap(ip)),
    "atm": (100, snap),
    "hdlc": (104, hdlc),
    "802.11": (105, wireless),
    "802.11 padded": (105, lambda ip: wireless(ip, 0x88, 2, bytes(4))),
    "802.11 qos": (105, lambda ip: wireless(ip, 0x88, 2, bytes(2))),
    "802.11 qos, 4 addresses": (105, lambda ip: wireless(ip, 0x88, 3, bytes(8))),
    "802.11 ht control": (105, lambda ip: wireless(ip, 0x88, 0x81, bytes(6))),
    "enc": (109, lambda ip: struct.pack("<III", 2 if ip[0] >> 4 == 4 else 24, 1, 0) + ip),
    "pflog": (117, pflog),
    "pflog of freebsd": (117, lambda ip: pflog(ip, 72, 28)),
    "prism": (119, lambda ip: struct.pack("<II", 0x44, 144) + bytes(136) + wireless(ip)),
    "radiotap": (127, lambda ip: radiotap(wireless(ip))),
    "firewire": (138, lambda ip: bytes(16) + struct.pack(">H", ethertype(ip)) + ip),
    "old pktap": (149, lambda ip: pktap(in_ethernet(ip), 1)),
    "avs": (163, lambda ip: struct.pack(">II", 1, 64) + bytes(56) + wireless(ip)),
    "pppd": (166, lambda ip: b"\x01\x03" + ppp(ip)),
    "ppi": (192, lambda ip: ppi(wireless(ip), 105)),
    "ppp with direction": (204, lambda ip: b"\x01\xff\x03" + ppp(ip)),
    "hdlc with direction": (205, lambda ip: b"\x01" + hdlc(ip)),
    "mpls": (219, lambda ip: struct.pack(">I", 5 << 12 | 0x100) + ip),
    "ipnet": (226, ipnet),
    "nflog": (239, nflog),
    "nflog, big-endian": (239, lambda ip: nflog(ip, ">")),
    "nflog, packet only": (239, lambda ip: nflog(ip, items=0)),
    "pktap": (258, lambda ip: pktap(in_ethernet(ip), 1, 156)),
    "pktap of raw ip": (258, lambda ip: pktap(ip, 12)),
    "pktap of radiotap": (258, lambda ip: pktap(radiotap(wireless(ip)), 127)),
}
"""Link type, and the packet of that type, for packets of IPv4 and IPv6."""


def in_udp(payload: bytes, port: int) -> bytes:
    return ethernet(ipv4(udp(payload, (3333, port)), protocol=17, source="1.1.1.1"))


def vxlan_gpe(payload: bytes, kind: int, vni: int = 7) -> bytes:
    return struct.pack(">BxxBI", 0x0C if kind else 0x08, kind, vni << 8) + payload


def nsh(payload: bytes, kind: int) -> bytes:
    return struct.pack(">HBB", 0x0FC2, 2, kind) + bytes(4) + payload


def gtp(ip: bytes, flags: int = 0x30, options: bytes = b"") -> bytes:
    return struct.pack(">BBHI", flags, 0xFF, len(options) + len(ip), 9) + options + ip


def _ip_number(ip: bytes) -> int:
    return 1 if ip[0] >> 4 == 4 else 2


TUNNELS: dict[str, tuple[Wrap, str]] = {
    "vn-tag": (
        lambda ip: ethernet(struct.pack(">IH", 5, ethertype(ip)) + ip, 0x8926),
        "",
    ),
    "cisco metadata": (
        lambda ip: ethernet(struct.pack(">BBHHH", 1, 1, 1, 99, ethertype(ip)) + ip, 0x8909),
        "",
    ),
    "cisco metadata, then a vlan": (
        lambda ip: ethernet(
            struct.pack(">BBHHHHH", 1, 1, 1, 99, 0x8100, 5, ethertype(ip)) + ip, 0x8909
        ),
        "vlan 5",
    ),
    "vlan, then a vn-tag": (
        lambda ip: ethernet(struct.pack(">IH", 5, ethertype(ip)) + ip, 0x8926, tags=[(0x8100, 6)]),
        "vlan 6",
    ),
    "vxlan-gpe of ip": (lambda ip: in_udp(vxlan_gpe(ip, _ip_number(ip)), 4790), "vni 7"),
    "vxlan-gpe of ethernet": (lambda ip: in_udp(vxlan_gpe(in_ethernet(ip), 3), 4790), "vni 7"),
    "vxlan-gpe without protocol": (
        lambda ip: in_udp(vxlan_gpe(in_ethernet(ip), 0), 4790),
        "vni 7",
    ),
    "vxlan-gpe of nsh": (
        lambda ip: in_udp(vxlan_gpe(nsh(ip, _ip_number(ip)), 4), 4790),
        "vni 7",
    ),
    "nsh": (lambda ip: ethernet(nsh(in_ethernet(ip), 3), 0x894F), ""),
    "gtp": (lambda ip: in_udp(gtp(ip), 2152), ""),
    "gtp with a sequence number": (
        lambda ip: in_udp(gtp(ip, 0x32, bytes(4)), 2152),
        "",
    ),
    "gtp with extensions": (
        lambda ip: in_udp(gtp(ip, 0x34, b"\0\0\0\x85\x01\x10\x09\x85\x02" + bytes(7)), 2152),
        "",
    ),
    "mpls in udp": (lambda ip: in_udp(struct.pack(">I", 5 << 12 | 0x100) + ip, 6635), ""),
}
"""Ethernet frames with a packet of IP in tags and tunnels, and the name of its network."""
