"""
The headers of many packets in one kernel, from the link layer to the TCP segment.

It reads link layers, tags, IPv4, IPv6 with its extension headers, and exported PDUs. Packets with
other encapsulations are listed for the slow path (`Tunnels`), with a row reserved for each.
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture.iana_numbers import (
    IPV4,
    IPV6,
    MAX_8023_LENGTH,
    MPLS_TYPES,
    NSH,
    PPPOE_SESSION,
    TAG_TYPES,
    TCP,
)
from dissector.capture.integers import high_half, u16, u32
from dissector.capture.packets.exported_pdu_tags import read_exported_pdu
from dissector.capture.packets.ip import (
    copy_addresses,
    is_tunnel,
    read_ipv4_header,
    read_ipv6_header,
)
from dissector.capture.packets.links import read_link_header, read_tags
from dissector.capture.packets.networks import find_slot
from dissector.capture.packets.segment_columns import (
    ACK,
    CAPTURED,
    FLAGS,
    LENGTH,
    NARROW,
    NETWORK,
    PACKET,
    SEQ,
    SOURCE_PORT,
    START,
    TARGET_PORT,
    TIME,
    WIDE,
    SegmentTable,
)
from dissector.capture.packets.skip_reasons import (
    CODES,
    EXPORTED_PDU,
    LINK_UNREAD,
    MALFORMED,
    NOT_IP,
    NOT_TCP,
    SLOW_PATH,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, I32Table, I64Cube, I64Table

# Columns of the list of deferred packets: the packet, its reserved row, the offset and the
# ethertype after its VLAN tags, and the tags.
DEFERRED_PACKET, DEFERRED_ROW, DEFERRED_AT, DEFERRED_KIND, DEFERRED_TAGS = range(5)
DEFERRED_COLUMNS = 5

# The kernel's state: the next packet; rows and deferred packets so far; VLAN tags that are not in
# the table; and the packets without a segment, by the absolute values of `skip_reasons`.
NEXT, ROWS, DEFERRED_COUNT, NEW_TAGS, TOUCHED, SKIPPED = range(6)
STATE = SKIPPED + CODES


class PacketArrays(NamedTuple):
    """
    The packets of a window.

    Attributes:
        data: The window.
        time_ns: Capture times.
        start: Offsets of packets.
        captured: Captured lengths.
        original: Lengths on the wire.
        link: Link types.
    """

    data: U8
    time_ns: I64
    start: I64
    captured: I64
    original: I64
    link: I32


class Encapsulations(NamedTuple):
    """
    What the reader knows of encapsulations, and learns.

    Attributes:
        layers: `LINK_TABLE`.
        tunnel_ports: 65536 flags: whether a UDP port is that of a tunnel.
        unread: 65536 counters of packets by link type; the last is for all above.
    """

    layers: I64Table
    tunnel_ports: U8
    unread: I64


DEFERRED_TYPES = (*MPLS_TYPES, PPPOE_SESSION, NSH)

# Number of packets prefetched into the processor's cache at once, and bytes of each.
_PREFETCH_PACKETS = 64
_PREFETCH_BYTES = 64

# Ports, sequence numbers, header length and flags: the required part of a TCP header.
_TCP_MIN_CAPTURED_BYTES = 14
_TCP_MIN_BYTES = 20

# No host sends segments near this size (Linux's largest are 512 KiB); a jumbo length may claim it.
_MAX_SEGMENT_BYTES = 16 << 20


@device_function
def read_tcp_header(
    data: U8, at: int, end: int, sent_end: int, wide: I64Table, narrow: I32Table, row: int
) -> bool:
    """Write the fields of a TCP header into a row; return whether the header is valid."""
    if at + _TCP_MIN_CAPTURED_BYTES > end:
        return False
    start = at + high_half(data, at + 12) * 4
    if start < at + _TCP_MIN_BYTES or start > sent_end or sent_end - at > _MAX_SEGMENT_BYTES:
        return False
    narrow[SOURCE_PORT, row] = u16(data, at)
    narrow[TARGET_PORT, row] = u16(data, at + 2)
    wide[SEQ, row] = u32(data, at + 4)
    wide[ACK, row] = u32(data, at + 8)
    narrow[FLAGS, row] = data[at + 13]
    wide[START, row] = min(start, len(data))
    wide[LENGTH, row] = sent_end - start
    wide[CAPTURED, row] = max(end - start, 0)
    return True


@device_function
def _prefetch(data: U8, start: I64, captured: I64, first: int) -> int:
    """
    Read bytes of the next packets' headers, to load them into the cache in parallel.

    A loop this short has many reads under way at a time. The result has no meaning.
    """
    total = 0
    for packet in range(first, min(first + _PREFETCH_PACKETS, len(start))):
        if captured[packet] > 0:
            total += data[start[packet]]
            total += data[start[packet] + min(captured[packet], _PREFETCH_BYTES) - 1]
    return total


@Kernel
def read_headers(
    packets: PacketArrays,
    first: int,
    encapsulations: Encapsulations,
    networks: I64Table,
    secret: I64,
    table: SegmentTable,
    state: I64,
) -> None:
    """
    Write a row for each segment, until the packets end or one has unknown VLAN tags.

    Args:
        packets: Of the window.
        first: Number of its first packet.
        encapsulations: Known ones.
        networks: [n, 2], a hash table: VLAN tags, or 0, and the number of their network.
        secret: Key of its hash.
        table: Receives the rows.
        state: Begin position; position at which the kernel stopped.
    """
    data, start, deferred = packets.data, packets.start, table.deferred
    rows, deferred_count = state[ROWS], state[DEFERRED_COUNT]
    state[NEW_TAGS] = 0
    packet = prefetched = state[NEXT]
    while packet < len(start):
        if packet == prefetched:
            state[TOUCHED] = _prefetch(data, start, packets.captured, packet)
            prefetched += _PREFETCH_PACKETS
        end = start[packet] + packets.captured[packet]
        original = packets.original[packet]
        sent_end = start[packet] + original if original > 0 else end
        ip_at, kind, link = read_link_header(
            data, encapsulations.layers, packets.link[packet], start[packet], end
        )
        tags = 0
        if kind in TAG_TYPES:
            ip_at, kind, tags = read_tags(data, kind, ip_at, end)
        at, protocol = ip_at, kind
        if kind == IPV4:
            protocol, at, end, sent_end = read_ipv4_header(data, ip_at, end, sent_end)
        elif kind == IPV6:
            protocol, at, end, sent_end = read_ipv6_header(data, ip_at, end, sent_end)
        elif 0 <= kind <= MAX_8023_LENGTH or kind in DEFERRED_TYPES:
            protocol = SLOW_PATH
        elif kind == EXPORTED_PDU:
            protocol = read_exported_pdu(data, ip_at, min(end, sent_end), sent_end, table, rows)
        elif kind >= 0:
            protocol = NOT_IP
        if (
            protocol != TCP
            and protocol >= 0
            and is_tunnel(data, encapsulations.tunnel_ports, protocol, at, end)
        ):
            protocol = SLOW_PATH
        network = 0
        if tags and protocol in (TCP, SLOW_PATH):
            slot = find_slot(networks, secret, tags)
            if networks[slot, 0] == 0:
                state[NEW_TAGS] = tags
                break
            network = networks[slot, 1]
        if protocol == TCP and not read_tcp_header(
            data, at, end, sent_end, table.wide, table.narrow, rows
        ):
            protocol = MALFORMED
        if protocol == SLOW_PATH:
            deferred[deferred_count, DEFERRED_PACKET] = packet
            deferred[deferred_count, DEFERRED_ROW] = rows
            deferred[deferred_count, DEFERRED_AT] = ip_at
            deferred[deferred_count, DEFERRED_KIND] = kind
            deferred[deferred_count, DEFERRED_TAGS] = tags
            deferred_count += 1
            rows += 1
        elif protocol in (TCP, EXPORTED_PDU):
            table.wide[PACKET, rows] = first + packet
            table.wide[TIME, rows] = packets.time_ns[packet]
            table.narrow[NETWORK, rows] = network
            if protocol == TCP:
                copy_addresses(data, kind, ip_at, table.addresses, rows)
            rows += 1
        else:
            state[SKIPPED - (protocol if protocol < 0 else NOT_TCP)] += 1
            if protocol == LINK_UNREAD:
                encapsulations.unread[min(link, len(encapsulations.unread) - 1)] += 1
        packet += 1
    state[NEXT], state[ROWS], state[DEFERRED_COUNT] = packet, rows, deferred_count


@Kernel
def compact_rows(wide: I64Table, narrow: I32Table, addresses: I64Cube, row: int, rows: int) -> int:
    """Remove the rows from `row` on with packet -1; return the number of rows left."""
    for source in range(row, rows):
        if wide[PACKET, source] >= 0:
            for column in range(WIDE):
                wide[column, row] = wide[column, source]
            for column in range(NARROW):
                narrow[column, row] = narrow[column, source]
            for side in range(2):
                addresses[side, row, 0] = addresses[side, source, 0]
                addresses[side, row, 1] = addresses[side, source, 1]
            row += 1
    return row
