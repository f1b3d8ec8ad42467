"""
The less common encapsulations of TCP, one packet at a time: tunnels, labels, fragments.

Each method of `Tunnels` skips one header and returns the method for the next one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TypeAlias

from dissector.capture import iana_numbers as iana
from dissector.capture.addresses import IPV4_MAPPED
from dissector.capture.integers import u16
from dissector.capture.packets.cursor import (
    INCOMPLETE_FRAGMENT,
    MALFORMED,
    NOT_TCP,
    Cursor,
    PacketSkipped,
)
from dissector.capture.packets.ip_fragments import FragmentReassembler
from dissector.capture.packets.links import ppp_ethertype, tag_bytes

_ERSPAN_2, _ERSPAN_3 = 0x88BE, 0x22EB
_MAX_LAYERS = 24
_GTP_PACKET = 0xFF


_Layer: TypeAlias = Callable[[Cursor], "_Layer | None"]

ETHERNET_HEADER = struct.Struct(">12xH")
IPV4_HEADER = struct.Struct(">BxHHHxB2x4s4s")
IPV6_HEADER = struct.Struct(">BxxxHBxQQQQ")
_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_TWO_U16 = struct.Struct(">HH")
UDP_HEADER = struct.Struct(">HHHxx")
_VXLAN = struct.Struct(">BxxxI")
_VXLAN_GPE = struct.Struct(">BxxBI")
_NSH = struct.Struct(">HBB")
_GTP = struct.Struct(">BBH4x")
GENEVE_HEADER = struct.Struct(">BxHI")
EXTENSION_HEADER = struct.Struct(">BBHI")
_LLC = struct.Struct(">BBB")


@cache
def _tag_header(size: int) -> struct.Struct:
    """Return the format of a tag with an ethertype at its end."""
    return struct.Struct(f">{size - 2}xH")


class Tunnels:
    """
    Finds the TCP header of a packet through all encapsulations.

    Attributes:
        fragments: Reassembly of IP datagrams, across packets.
    """

    def __init__(self, tunnel_ports: Mapping[int, str] = iana.TUNNEL_PORTS) -> None:
        """Start a capture; `tunnel_ports` are the names of tunnels by UDP port."""
        self.fragments = FragmentReassembler()
        self._tunnel_ports = tunnel_ports
        self._by_ethertype: dict[int, _Layer] = {
            iana.IPV4: self._ipv4,
            iana.IPV6: self._ipv6,
            iana.PPPOE_SESSION: self._pppoe,
            iana.TRANSPARENT_ETHERNET: self._ethernet,
            _ERSPAN_3: self._erspan_3,
            iana.NSH: self._nsh,
            **{kind: partial(self._tags, kind) for kind in iana.TAG_TYPES},
            **dict.fromkeys(iana.MPLS_TYPES, self._mpls),
        }
        self._by_tunnel: dict[str, _Layer] = {
            "geneve": self._geneve,
            "gtp": self._gtp,
            "mpls": self._mpls,
            "vxlan": self._vxlan,
            "vxlan-gpe": self._vxlan_gpe,
        }
        self._by_protocol: dict[int, _Layer | None] = {
            4: self._ipv4,
            6: None,
            17: self._udp,
            41: self._ipv6,
            47: self._gre,
            iana.AUTHENTICATION: self._authentication,
            97: self._etherip,
            137: self._mpls,
        }

    def find_tcp(self, cursor: Cursor, ethertype: int) -> None:
        """
        Move the cursor to the TCP header.

        Raises:
            PacketSkipped: The header is missing.
        """
        layer: _Layer | None = self._layer_of_type(ethertype)
        for _ in range(_MAX_LAYERS):
            if layer is None:
                return
            layer = layer(cursor)
        raise PacketSkipped(MALFORMED)

    def _layer_of_type(self, ethertype: int) -> _Layer:
        if ethertype <= iana.MAX_8023_LENGTH:
            return self._llc
        layer = self._by_ethertype.get(ethertype)
        if layer is None:
            raise PacketSkipped(NOT_TCP)
        return layer

    def _layer_of_protocol(self, number: int) -> _Layer | None:
        if number not in self._by_protocol:
            raise PacketSkipped(NOT_TCP)
        return self._by_protocol[number]

    def _ethernet(self, cursor: Cursor) -> _Layer:
        (ethertype,) = cursor.read(ETHERNET_HEADER)
        return self._layer_of_type(ethertype)

    def _tags(self, ethertype: int, cursor: Cursor) -> _Layer:
        """The counterpart of `read_tags` for one packet."""
        ids: list[int] = []
        while ethertype in iana.TAG_TYPES:
            size = tag_bytes(cursor.data, ethertype, cursor.at, cursor.end)
            if size < 0:
                raise PacketSkipped(MALFORMED)
            if ethertype in iana.VLAN_TYPES:
                ids.append(u16(cursor.data, cursor.at) & 0xFFF)
            (ethertype,) = cursor.read(_tag_header(size))
        if any(ids):
            cursor.enter_network(f"vlan {'.'.join(str(each) for each in ids if each)}")
        return self._layer_of_type(ethertype)

    def _llc(self, cursor: Cursor) -> _Layer:
        """IEEE 802.2 with SNAP and an ethertype. Source: RFC 1042."""
        if cursor.read(_LLC) != (0xAA, 0xAA, 3):
            raise PacketSkipped(NOT_TCP)
        cursor.skip(3)
        (ethertype,) = cursor.read(_U16)
        return self._layer_of_type(max(ethertype, iana.MAX_8023_LENGTH + 1))

    def _mpls(self, cursor: Cursor) -> _Layer:
        """Labels don't name their payload; its first half byte does. Source: RFC 3032, 4928."""
        bottom = 0
        while not bottom:
            (label,) = cursor.read(_U32)
            bottom = label & 0x100
        if cursor.at >= cursor.end:
            raise PacketSkipped(MALFORMED)
        version = cursor.data[cursor.at] >> 4
        if version == 4:
            return self._ipv4
        if version == 6:
            return self._ipv6
        if version == 0:
            cursor.skip(4)  # the control word of a pseudowire
        return self._ethernet

    def _pppoe(self, cursor: Cursor) -> _Layer:
        """Source: RFC 2516."""
        cursor.skip(4)
        (length,) = cursor.read(_U16)
        cursor.limit(cursor.at + length)
        (protocol,) = cursor.read(_U16)
        ethertype = ppp_ethertype(protocol)
        if ethertype < 0:
            raise PacketSkipped(NOT_TCP)
        return self._layer_of_type(ethertype)

    def _ipv4(self, cursor: Cursor) -> _Layer | None:
        """The counterpart of `read_ipv4_header` for one packet."""
        start = cursor.at
        first, total, number, fragment, protocol, source, target = cursor.read(IPV4_HEADER)
        size = (first & 15) * 4
        if first >> 4 != 4 or size < 20 or 0 < total < size:
            raise PacketSkipped(MALFORMED)
        cursor.skip(size - 20)
        if total:
            cursor.limit(start + total)
        cursor.source = (0, IPV4_MAPPED | int.from_bytes(source))  # type: ignore[arg-type]
        cursor.target = (0, IPV4_MAPPED | int.from_bytes(target))  # type: ignore[arg-type]
        layer = self._layer_of_protocol(protocol)
        if fragment & 0x3FFF:
            key = (cursor.network, cursor.source, cursor.target, number, protocol)
            self._reassemble(cursor, key, (fragment & 0x1FFF) * 8, fragment & 0x2000 != 0)
        return layer

    def _ipv6(self, cursor: Cursor) -> _Layer | None:
        """The counterpart of `read_ipv6_header` for one packet."""
        first, length, protocol, *addresses = cursor.read(IPV6_HEADER)
        if first >> 4 != 6:
            raise PacketSkipped(MALFORMED)
        if length:
            cursor.limit(cursor.at + length)
        elif protocol == iana.HOP_BY_HOP and cursor.at + 8 <= cursor.end:
            _, _, option, jumbo = EXTENSION_HEADER.unpack_from(cursor.data, cursor.at)
            if option == iana.JUMBO_PAYLOAD_OPTION:
                cursor.limit(cursor.at + jumbo)
        cursor.source = (addresses[0], addresses[1])
        cursor.target = (addresses[2], addresses[3])
        while protocol in iana.IPV6_EXTENSION_HEADERS:
            protocol = self._extension(cursor, protocol)
        return self._layer_of_protocol(protocol)

    def _extension(self, cursor: Cursor, kind: int) -> int:
        """Step over an extension header; return the type of the next."""
        following, units, field, number = cursor.read(EXTENSION_HEADER)
        if kind == iana.AUTHENTICATION:
            cursor.skip(units * 4)
        elif kind != iana.FRAGMENT:
            cursor.skip(units * 8)
        elif field & 0xFFF9:
            key = (cursor.network, cursor.source, cursor.target, number, "IPv6")
            self._reassemble(cursor, key, field & 0xFFF8, field & 1 != 0)
        return following

    def _reassemble(self, cursor: Cursor, key: tuple[object, ...], offset: int, more: bool) -> None:
        """Continue in the datagram that this fragment completes; otherwise skip the packet."""
        length = cursor.sent_end - cursor.at
        captured = cursor.data[cursor.at : cursor.end]
        datagram = self.fragments.add(
            key, cursor.time_ns, offset, length, captured, more, cursor.packet
        )
        if datagram is None:
            raise PacketSkipped(INCOMPLETE_FRAGMENT)
        cursor.data = memoryview(datagram.data)
        cursor.at = 0
        cursor.end = len(datagram.data)
        cursor.sent_end = datagram.length
        cursor.is_reassembled = True
        cursor.is_bounded = True

    def _authentication(self, cursor: Cursor) -> _Layer | None:
        """Source: RFC 4302."""
        following, units, _, _ = cursor.read(EXTENSION_HEADER)
        cursor.skip(units * 4)
        return self._layer_of_protocol(following)

    def _etherip(self, cursor: Cursor) -> _Layer:
        """Source: RFC 3378."""
        cursor.skip(2)
        return self._ethernet

    def _udp(self, cursor: Cursor) -> _Layer:
        _, port, length = cursor.read(UDP_HEADER)
        if length >= UDP_HEADER.size:
            cursor.limit(cursor.at - UDP_HEADER.size + length)
        if port not in self._tunnel_ports:
            raise PacketSkipped(NOT_TCP)
        return self._by_tunnel[self._tunnel_ports[port]]

    def _vxlan(self, cursor: Cursor) -> _Layer:
        """Source: RFC 7348."""
        flags, vni = cursor.read(_VXLAN)
        if not flags & 0x08:
            raise PacketSkipped(NOT_TCP)
        cursor.enter_network(f"vni {vni >> 8}")
        return self._ethernet

    def _vxlan_gpe(self, cursor: Cursor) -> _Layer:
        """Source: draft-ietf-nvo3-vxlan-gpe."""
        flags, protocol, vni = cursor.read(_VXLAN_GPE)
        if not flags & 0x08:
            raise PacketSkipped(NOT_TCP)
        cursor.enter_network(f"vni {vni >> 8}")
        return self._layer_of_next(protocol) if flags & 0x04 else self._ethernet

    def _nsh(self, cursor: Cursor) -> _Layer:
        """Service functions; the number of the path is no network. Source: RFC 8300."""
        first, _, protocol = cursor.read(_NSH)
        size = (first & 0x3F) * 4
        if first >> 14 or size < 8:
            raise PacketSkipped(MALFORMED)
        cursor.skip(size - _NSH.size)
        return self._layer_of_next(protocol)

    def _layer_of_next(self, protocol: int) -> _Layer:
        """Return the layer of a next protocol number. Source: IANA, NSH Next Protocol."""
        layers = {1: self._ipv4, 2: self._ipv6, 3: self._ethernet, 4: self._nsh, 5: self._mpls}
        if protocol not in layers:
            raise PacketSkipped(NOT_TCP)
        return layers[protocol]

    def _gtp(self, cursor: Cursor) -> _Layer:
        """
        GTP-U; its ends of tunnels name no network, as the directions have different ones.

        Source: 3GPP TS 29.281, 5.1 and 5.2.
        """
        flags, message, length = cursor.read(_GTP)
        if flags >> 4 != 3 or message != _GTP_PACKET:
            raise PacketSkipped(NOT_TCP)
        cursor.limit(cursor.at + length)
        if flags & 7:
            cursor.skip(3)
            extension = self._next_byte(cursor)
            while extension:
                size = self._next_byte(cursor) * 4
                if not size:
                    raise PacketSkipped(MALFORMED)
                cursor.skip(size - 2)
                extension = self._next_byte(cursor)
        return self._ip_of_any_version(cursor)

    def _next_byte(self, cursor: Cursor) -> int:
        return cursor.data[cursor.skip(1)]

    def _ip_of_any_version(self, cursor: Cursor) -> _Layer:
        if cursor.at >= cursor.end:
            raise PacketSkipped(MALFORMED)
        version = cursor.data[cursor.at] >> 4
        if version not in (4, 6):
            raise PacketSkipped(NOT_TCP)
        return self._ipv4 if version == 4 else self._ipv6

    def _geneve(self, cursor: Cursor) -> _Layer:
        """Source: RFC 8926."""
        first, ethertype, vni = cursor.read(GENEVE_HEADER)
        if first >> 6:
            raise PacketSkipped(NOT_TCP)
        cursor.skip((first & 0x3F) * 4)
        cursor.enter_network(f"vni {vni >> 8}")
        return self._layer_of_type(ethertype)

    def _gre(self, cursor: Cursor) -> _Layer:
        """
        GRE, with the mirrored frames that ERSPAN puts in it.

        The key names no network, not even as in NVGRE: mirrors in use give the two directions of a
        connection different keys.

        Source: RFC 2784, RFC 2890; NVGRE: RFC 7637; ERSPAN: draft-foschiano-erspan-03.
        """
        flags, ethertype = cursor.read(_TWO_U16)
        has_checksum, has_routing = flags & 0x8000, flags & 0x4000
        has_key, has_sequence = flags & 0x2000, flags & 0x1000
        if has_routing or flags & 7:
            raise PacketSkipped(NOT_TCP)  # source routes, PPTP
        if has_checksum:
            cursor.skip(4)
        cursor.skip(4 if has_key else 0)
        cursor.skip(4 if has_sequence else 0)
        if ethertype == _ERSPAN_2:
            cursor.skip(8 if has_sequence else 0)  # type I has no such header
            return self._ethernet
        return self._layer_of_type(ethertype)

    def _erspan_3(self, cursor: Cursor) -> _Layer:
        cursor.skip(8)
        (flags,) = cursor.read(_U32)
        cursor.skip(8 if flags & 1 else 0)
        carries_ip = flags >> 10 & 31 == 2
        if not carries_ip:
            return self._ethernet
        if cursor.at >= cursor.end:
            raise PacketSkipped(MALFORMED)
        return self._ipv6 if cursor.data[cursor.at] >> 4 == 6 else self._ipv4
