"""
The headers of many packets in one kernel, from the link layer to the TCP segment.

It reads link layers, tags, IPv4, IPv6 with its extension headers, and exported PDUs. Packets with
other encapsulations are listed for the slow path (`Tunnels`), with a row reserved for each.
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture import iana_numbers as iana
from dissector.capture.columns import CLOSED_WINDOW
from dissector.capture.integers import high_half, u16, u32
from dissector.capture.packets import skip_reasons
from dissector.capture.packets.exported_pdu_tags import read_exported_pdu
from dissector.capture.packets.ip import (
    copy_addresses,
    is_tunnel,
    read_ipv4_header,
    read_ipv6_header,
)
from dissector.capture.packets.link_layers import LinkRules
from dissector.capture.packets.links import read_link_header, read_tags
from dissector.capture.packets.networks import TaggedNetwork, find_slot
from dissector.capture.packets.segment_columns import SegmentTable
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8
from dissector.kernel.named_rows import NamedRow, Rows


class HeaderState(NamedRow):
    """
    How far the kernel came.

    Attributes:
        packet: The next packet.
        rows: Rows so far.
        deferred: Deferred packets so far.
        new_tags: VLAN tags that are not in the table of networks; 0 without any.
        touched: Has no meaning; see `_prefetch`.
    """

    packet: int
    rows: int
    deferred: int
    new_tags: int
    touched: int


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
        skipped: Counters of packets without a segment, by the absolute values of `skip_reasons`.
    """

    layers: Rows[LinkRules]
    tunnel_ports: U8
    unread: I64
    skipped: I64


DEFERRED_TYPES = (*iana.MPLS_TYPES, iana.PPPOE_SESSION, iana.NSH)

# Number of packets prefetched into the processor's cache at once, and bytes of each.
_PREFETCH_PACKETS = 64
_PREFETCH_BYTES = 64

# Ports, sequence numbers, header length and flags: the required part of a TCP header.
_TCP_MIN_CAPTURED_BYTES = 14
_TCP_MIN_BYTES = 20
_WINDOW_END = 16

# No host sends segments near this size (Linux's largest are 512 KiB); a jumbo length may claim it.
_MAX_SEGMENT_BYTES = 16 << 20


@device_function
def read_tcp_header(
    data: U8, at: int, end: int, sent_end: int, table: SegmentTable, row: int
) -> bool:
    """Write the fields of a TCP header into a row; return whether the header is valid."""
    if at + _TCP_MIN_CAPTURED_BYTES > end:
        return False
    start = at + high_half(data, at + 12) * 4
    if start < at + _TCP_MIN_BYTES or start > sent_end or sent_end - at > _MAX_SEGMENT_BYTES:
        return False
    table.source_port[row] = u16(data, at)
    table.target_port[row] = u16(data, at + 2)
    table.seq[row] = u32(data, at + 4)
    table.ack[row] = u32(data, at + 8)
    table.flags[row] = data[at + 13]
    if at + _WINDOW_END <= end and u16(data, at + 14) == 0:
        table.flags[row] |= CLOSED_WINDOW
    table.start[row] = min(start, len(data))
    table.length[row] = sent_end - start
    table.captured[row] = max(end - start, 0)
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
    networks: Rows[TaggedNetwork],
    secret: I64,
    table: SegmentTable,
    state: HeaderState,
) -> None:
    """
    Write a row for each segment, until the packets end or one has unknown VLAN tags.

    Args:
        packets: Of the window.
        first: Number of its first packet.
        encapsulations: Known ones.
        networks: A hash table of the networks of VLAN tags.
        secret: Key of its hash.
        table: Receives the rows.
        state: Begin position; position at which the kernel stopped.
    """
    data, start, deferred = packets.data, packets.start, table.deferred
    rows, deferred_count = state.rows, state.deferred
    state.new_tags = 0
    packet = prefetched = state.packet
    while packet < len(start):
        if packet == prefetched:
            state.touched = _prefetch(data, start, packets.captured, packet)
            prefetched += _PREFETCH_PACKETS
        end = start[packet] + packets.captured[packet]
        original = packets.original[packet]
        sent_end = start[packet] + original if original > 0 else end
        ip_at, kind, link = read_link_header(
            data, encapsulations.layers, packets.link[packet], start[packet], end
        )
        tags = 0
        if kind in iana.TAG_TYPES:
            ip_at, kind, tags = read_tags(data, kind, ip_at, end)
        at, protocol = ip_at, kind
        if kind == iana.IPV4:
            protocol, at, end, sent_end = read_ipv4_header(data, ip_at, end, sent_end)
        elif kind == iana.IPV6:
            protocol, at, end, sent_end = read_ipv6_header(data, ip_at, end, sent_end)
        elif 0 <= kind <= iana.MAX_8023_LENGTH or kind in DEFERRED_TYPES:
            protocol = skip_reasons.SLOW_PATH
        elif kind == skip_reasons.EXPORTED_PDU:
            protocol = read_exported_pdu(data, ip_at, min(end, sent_end), sent_end, table, rows)
        elif kind >= 0:
            protocol = skip_reasons.NOT_IP
        if (
            protocol != iana.TCP
            and protocol >= 0
            and is_tunnel(data, encapsulations.tunnel_ports, protocol, at, end)
        ):
            protocol = skip_reasons.SLOW_PATH
        network = 0
        if tags and protocol in (iana.TCP, skip_reasons.SLOW_PATH):
            slot = find_slot(networks, secret, tags)
            if networks[slot].tags == 0:
                state.new_tags = tags
                break
            network = networks[slot].number
        if protocol == iana.TCP and not read_tcp_header(data, at, end, sent_end, table, rows):
            protocol = skip_reasons.MALFORMED
        if protocol == skip_reasons.SLOW_PATH:
            left = deferred[deferred_count]
            left.packet = packet
            left.row = rows
            left.at = ip_at
            left.kind = kind
            left.tags = tags
            deferred_count += 1
            rows += 1
        elif protocol in (iana.TCP, skip_reasons.EXPORTED_PDU):
            table.packet[rows] = first + packet
            table.time_ns[rows] = packets.time_ns[packet]
            table.network[rows] = network
            if protocol == iana.TCP:
                copy_addresses(data, kind, ip_at, table.addresses, rows)
            rows += 1
        else:
            encapsulations.skipped[-(protocol if protocol < 0 else skip_reasons.NOT_TCP)] += 1
            if protocol == skip_reasons.LINK_UNREAD:
                encapsulations.unread[min(link, len(encapsulations.unread) - 1)] += 1
        packet += 1
    state.packet, state.rows, state.deferred = packet, rows, deferred_count


@device_function
def _move_row(table: SegmentTable, source: int, row: int) -> None:
    """Copy a row to another place."""
    table.packet[row] = table.packet[source]
    table.time_ns[row] = table.time_ns[source]
    table.seq[row] = table.seq[source]
    table.ack[row] = table.ack[source]
    table.start[row] = table.start[source]
    table.length[row] = table.length[source]
    table.captured[row] = table.captured[source]
    table.network[row] = table.network[source]
    table.source_port[row] = table.source_port[source]
    table.target_port[row] = table.target_port[source]
    table.flags[row] = table.flags[source]
    for side in range(2):
        table.addresses[side, row, 0] = table.addresses[side, source, 0]
        table.addresses[side, row, 1] = table.addresses[side, source, 1]


@Kernel
def compact_rows(table: SegmentTable, row: int, rows: int) -> int:
    """Remove the rows from `row` on with packet -1; return the number of rows left."""
    for source in range(row, rows):
        if table.packet[source] >= 0:
            _move_row(table, source, row)
            row += 1
    return row
