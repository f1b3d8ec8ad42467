"""
The headers of many packets in one kernel, from the link layer to the TCP segment.

It reads common encapsulations: Ethernet, Linux cooked, loopback and raw IP, VLAN tags, IPv4, and
IPv6 with its extension headers. Packets with others are listed for the slow path (`Tunnels`), with
a row reserved for each.
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture.iana_numbers import (
    IPV4,
    IPV6,
    MAX_8023_LENGTH,
    MPLS_TYPES,
    PPPOE_SESSION,
    TCP,
    VLAN_TYPES,
)
from dissector.capture.integers import high_half, u16, u32
from dissector.capture.packets.ip import (
    SLOW_PATH,
    copy_addresses,
    is_tunnel,
    read_ipv4_header,
    read_ipv6_header,
)
from dissector.capture.packets.links import MALFORMED, NOT_IP, read_link_header, read_vlan_tags
from dissector.capture.packets.networks import find_slot
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, I32Table, I64Cube, I64Table

# Columns of 64 bits, and of 32 bits.
PACKET, TIME, SEQ, ACK, START, LENGTH, CAPTURED = range(7)
WIDE = 7
NETWORK, SOURCE_PORT, TARGET_PORT, FLAGS = range(4)
NARROW = 4

# Columns of the list of deferred packets: the packet, its reserved row, the offset and the
# ethertype after its VLAN tags, and the tags.
DEFERRED_PACKET, DEFERRED_ROW, DEFERRED_AT, DEFERRED_KIND, DEFERRED_TAGS = range(5)
DEFERRED_COLUMNS = 5

# The kernel's state: the next packet; rows and deferred packets so far; packets without a segment,
# by reason; and VLAN tags that are not in the table.
NEXT, ROWS, DEFERRED_COUNT, MALFORMED_COUNT, NOT_IP_COUNT, NOT_TCP_COUNT, NEW_TAGS, TOUCHED = range(
    8
)
STATE = 8


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


class SegmentTable(NamedTuple):
    """
    The columns of segments.

    Attributes:
        wide: Columns of 64 bits.
        narrow: Columns of 32 bits.
        addresses: [2, n, 2] of 64 bits: source and destination, high and low.
        deferred: The list of deferred packets.
    """

    wide: I64Table
    narrow: I32Table
    addresses: I64Cube
    deferred: I64Table


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
        networks: [n, 2], a hash table: VLAN tags, or 0, and the number of their network.
        secret: Key of its hash.
        table: Receives the rows.
        state: Begin position; position at which the kernel stopped.
    """
    data, start, deferred = packets.data, packets.start, table.deferred
    rows, deferred_count = state[ROWS], state[DEFERRED_COUNT]
    malformed, not_ip, not_tcp = 0, 0, 0
    state[NEW_TAGS] = 0
    packet = prefetched = state[NEXT]
    while packet < len(start):
        if packet == prefetched:
            state[TOUCHED] = _prefetch(data, start, packets.captured, packet)
            prefetched += _PREFETCH_PACKETS
        end = start[packet] + packets.captured[packet]
        original = packets.original[packet]
        sent_end = start[packet] + original if original > 0 else end
        ip_at, kind = read_link_header(data, packets.link[packet], start[packet], end)
        tags = 0
        if kind in VLAN_TYPES:
            ip_at, kind, tags = read_vlan_tags(data, kind, ip_at, end)
        at, protocol = ip_at, kind
        if kind == IPV4:
            protocol, at, end, sent_end = read_ipv4_header(data, ip_at, end, sent_end)
        elif kind == IPV6:
            protocol, at, end, sent_end = read_ipv6_header(data, ip_at, end, sent_end)
        elif 0 <= kind <= MAX_8023_LENGTH or kind in MPLS_TYPES or kind == PPPOE_SESSION:
            protocol = SLOW_PATH
        elif kind != MALFORMED:
            protocol = NOT_IP
        if protocol != TCP and protocol >= 0 and is_tunnel(data, protocol, at, end):
            protocol = SLOW_PATH
        network = 0
        if tags and protocol in (TCP, SLOW_PATH):
            slot = find_slot(networks, secret, tags)
            if networks[slot, 0] == 0:
                state[NEW_TAGS] = tags
                break
            network = networks[slot, 1]
        if protocol == SLOW_PATH:
            deferred[deferred_count, DEFERRED_PACKET] = packet
            deferred[deferred_count, DEFERRED_ROW] = rows
            deferred[deferred_count, DEFERRED_AT] = ip_at
            deferred[deferred_count, DEFERRED_KIND] = kind
            deferred[deferred_count, DEFERRED_TAGS] = tags
            deferred_count += 1
            rows += 1
        elif protocol == TCP and read_tcp_header(
            data, at, end, sent_end, table.wide, table.narrow, rows
        ):
            table.wide[PACKET, rows] = first + packet
            table.wide[TIME, rows] = packets.time_ns[packet]
            table.narrow[NETWORK, rows] = network
            copy_addresses(data, kind, ip_at, table.addresses, rows)
            rows += 1
        elif protocol in (TCP, MALFORMED):
            malformed += 1
        elif protocol == NOT_IP:
            not_ip += 1
        else:
            not_tcp += 1
        packet += 1
    state[NEXT], state[ROWS], state[DEFERRED_COUNT] = packet, rows, deferred_count
    state[MALFORMED_COUNT] += malformed
    state[NOT_IP_COUNT] += not_ip
    state[NOT_TCP_COUNT] += not_tcp


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
