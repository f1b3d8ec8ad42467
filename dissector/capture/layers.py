"""Packets become TCP segments: the second stage of reading a capture."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Bytes, Int64s, Packets, Segments, UInt64s
from dissector.capture.cursor import PART, Cursor, PassedOver
from dissector.capture.gather import Located, ipv4_addresses, ipv6_addresses, u8, u16, u32
from dissector.capture.internet import CARRIERS, IS_FRAGMENT, TCP, UDP, enter_ipv4, enter_ipv6
from dissector.capture.links import IPV4, IPV6, MALFORMED, enter_links, strip_tags, tags_text
from dissector.capture.tunnels import (
    MAX_LENGTH_TYPE,
    MPLS_TYPES,
    PPPOE_SESSION,
    TUNNEL_PORTS,
    Tunnels,
)

# Ports, sequence numbers, header length and flags: what a cut packet must at least show.
_TCP_KNOWN_BYTES = 14
_TCP_MIN_BYTES = 20

# No host sends segments near this size (Linux's largest are 512 KiB); a jumbo length may claim it.
_MAX_SEGMENT_BYTES = 16 << 20


class Layers:
    """
    Finds the TCP segments in packets, through link layers, VLANs, tunnels and IP.

    What is common is read whole columns at a time; the rest packet by packet (`Tunnels`). Lengths
    are those of the IP headers, whatever the frame's is. Checksums are never looked at: a host
    that leaves them to its network card captures them wrong.

    Two directions of which only one is tagged with a VLAN are in two networks, and so in two
    connections.

    Attributes:
        networks: Names of the networks that were met: `vlan 5`, `vlan 5.7`, `vni 100`,
            `vlan 5 vni 100`; the first is empty, for packets in none.
        passed_over: How many packets gave no segment, by reason.
    """

    def __init__(self) -> None:
        self.networks: list[str] = [""]
        self.passed_over: dict[str, int] = {}
        self._numbers: dict[str, int] = {"": 0}
        self._tunnels = Tunnels()

    def segments(self, packets: Packets) -> Segments:
        """Return the TCP segments of the next window of the capture."""
        located, kind = enter_links(packets)
        tags = strip_tags(packets.data, located, kind)
        found = _Found(packets.data)
        rare = (kind >= 0) & (kind <= MAX_LENGTH_TYPE)
        rare |= np.isin(kind, (*MPLS_TYPES, PPPOE_SESSION))
        for ethertype in (IPV4, IPV6):
            rare[self._enter(ethertype, packets.data, located.where(kind == ethertype), found)] = (
                True
            )
        self._unwrap(packets, located.where(rare), kind[rare], tags, found)
        self._count("malformed", np.count_nonzero(kind == MALFORMED))
        known = rare | (kind == IPV4) | (kind == IPV6) | (kind == MALFORMED)
        self._count("not IP", len(packets) - np.count_nonzero(known))
        return self._read_tcp(packets, found, self._tag_networks(tags))

    def finish(self) -> None:
        """Count what can't be completed any more: the capture has ended."""
        fragments = self._tunnels.fragments
        self._count("IP datagrams of which fragments are missing", fragments.waiting)

    def _count(self, reason: str, number: int | np.signedinteger) -> None:
        if number:
            self.passed_over[reason] = self.passed_over.get(reason, 0) + int(number)

    def _network(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.networks)
            self.networks.append(name)
        return number

    def _tag_networks(self, tags: Int64s) -> Int64s:
        """Return the number of the network that each packet's VLAN tags put it in."""
        if not tags.any():
            return tags
        values, inverse = np.unique(tags, return_inverse=True)
        numbers = [self._network(tags_text(value)) for value in values.tolist()]
        return np.array(numbers, dtype=np.int64)[inverse]

    def _enter(self, ethertype: int, data: Bytes, located: Located, found: _Found) -> Int64s:
        """Add what carries TCP; return the rows of those that must be unwrapped one by one."""
        inner = located.where(np.ones(len(located), dtype=np.bool_))
        protocol = (enter_ipv4 if ethertype == IPV4 else enter_ipv6)(data, inner)
        tcp = protocol == TCP
        found.add(ethertype, inner.where(tcp), located.at[tcp])
        rare = np.isin(protocol, (IS_FRAGMENT, *CARRIERS))
        if ethertype == IPV4:
            rare |= protocol == 51
        rare |= _to_tunnel(data, inner, protocol)
        malformed = protocol == MALFORMED
        self._count("malformed", np.count_nonzero(malformed))
        self._count("not TCP", np.count_nonzero(~tcp & ~rare & ~malformed))
        return located.row[rare]

    def _unwrap(
        self, packets: Packets, located: Located, kind: Int64s, tags: Int64s, found: _Found
    ) -> None:
        """Take the slow way, packet by packet, in order: fragments meet across packets."""
        data = packets.data.data
        given_up = self._tunnels.fragments.given_up
        for i, row in enumerate(located.row.tolist()):
            cursor = Cursor(
                data=data,
                at=int(located.at[i]),
                end=int(min(located.end[i], located.sent_end[i])),
                sent_end=int(located.sent_end[i]),
                network=tags_text(int(tags[row])),
                time_ns=int(packets.time_ns[row]),
            )
            try:
                self._tunnels.find_tcp(cursor, int(kind[i]))
            except PassedOver as reason:
                if str(reason) != PART:
                    self._count(str(reason), 1)
            else:
                found.add_one(row, cursor, self._network(cursor.network))
        given_up = self._tunnels.fragments.given_up - given_up
        self._count("IP datagrams of which fragments are missing", given_up)

    def _read_tcp(self, packets: Packets, found: _Found, networks: Int64s) -> Segments:
        data, located, source, target, network = found.in_order(networks)
        known = located.has(_TCP_KNOWN_BYTES)
        size = np.zeros(len(located), dtype=np.int64)
        size[known] = (u8(data, located.at[known] + 12) >> 4) * 4
        good = (size >= _TCP_MIN_BYTES) & (located.at + size <= located.sent_end)
        good &= located.sent_end - located.at <= _MAX_SEGMENT_BYTES
        self._count("malformed", np.count_nonzero(~good))
        located, size = located.where(good), size[good]
        start = located.at + size
        captured = np.maximum(located.end - start, 0)
        at = located.at
        return Segments(
            data=data,
            packet=packets.first + located.row,
            time_ns=packets.time_ns[located.row],
            network=network[good].astype(np.int32),
            source=source[good],
            target=target[good],
            source_port=u16(data, at).astype(np.int32),
            target_port=u16(data, at + 2).astype(np.int32),
            seq=u32(data, at + 4),
            ack=u32(data, at + 8),
            flags=u8(data, at + 13).astype(np.int32),
            start=np.minimum(start, len(data)),
            length=located.sent_end - start,
            captured=captured,
        )


def _to_tunnel(data: Bytes, located: Located, protocol: Int64s) -> NDArray[np.bool_]:
    """Return which packets are UDP to the port of a tunnel."""
    tunnel: NDArray[np.bool_] = (protocol == UDP) & located.has(8)
    tunnel[tunnel] = np.isin(u16(data, located.at[tunnel] + 2), TUNNEL_PORTS)
    return tunnel


class _Found:
    """TCP headers found so far in a window, in the order of the ways that led to them."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._parts: list[tuple[Located, UInt64s, UInt64s]] = []
        self._rare: list[tuple[int, int, int, int, int]] = []
        self._rare_addresses: list[tuple[int, int, int, int]] = []
        self._joined = bytearray()

    def add(self, ethertype: int, located: Located, ip_at: Int64s) -> None:
        """Add headers right behind the IP headers at `ip_at`."""
        if ethertype == IPV4:
            source, target = ip_at + 12, ip_at + 16
            read = ipv4_addresses
        else:
            source, target = ip_at + 8, ip_at + 24
            read = ipv6_addresses
        self._parts.append((located, read(self._data, source), read(self._data, target)))

    def add_one(self, row: int, cursor: Cursor, network: int) -> None:
        """Add the header at the cursor; of a reassembled datagram, its bytes too."""
        base = 0
        if cursor.joined:
            base = len(self._data) + len(self._joined)
            self._joined += cursor.data
        self._rare.append(
            (row, base + cursor.at, base + cursor.end, base + cursor.sent_end, network)
        )
        self._rare_addresses.append((*cursor.source, *cursor.target))

    def in_order(self, networks: Int64s) -> tuple[Bytes, Located, UInt64s, UInt64s, Int64s]:
        """Return data, places, addresses and networks of all headers, in packet order."""
        rare = np.array(self._rare, dtype=np.int64).reshape(-1, 5)
        addresses = np.array(self._rare_addresses, dtype=np.uint64).reshape(-1, 4)
        located = Located(rare[:, 0], rare[:, 1], rare[:, 2], rare[:, 3])
        parts = [*self._parts, (located, addresses[:, :2], addresses[:, 2:])]
        network = _join([*(networks[part[0].row] for part in self._parts), rare[:, 4]])
        order = np.argsort(_join(part[0].row for part in parts), kind="stable")
        data = self._data
        if self._joined:
            data = np.concatenate([data, np.frombuffer(self._joined, dtype=np.uint8)])
        ordered = Located(
            _join(part[0].row for part in parts)[order],
            _join(part[0].at for part in parts)[order],
            _join(part[0].end for part in parts)[order],
            _join(part[0].sent_end for part in parts)[order],
        )
        source = np.concatenate([part[1] for part in parts])[order]
        target = np.concatenate([part[2] for part in parts])[order]
        return data, ordered, source, target, network[order]


def _join(columns: Iterable[Int64s]) -> Int64s:
    return np.concatenate(list(columns))
