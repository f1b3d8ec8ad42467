"""
The headers of many packets, in one loop: from the link layer to the segment that TCP carries.

Common wrappings are read here: Ethernet, Linux cooked, loopback and raw IP, VLAN tags, IPv4, and
IPv6 with its extension headers. Packets with others are listed, with a row kept free for each.
"""

from __future__ import annotations

from typing import Any

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

# The columns of 64 and of 32 bits.
PACKET, TIME, SEQ, ACK, START, LENGTH, CAPTURED = range(7)
WIDE = 7
NETWORK, SOURCE_PORT, TARGET_PORT, FLAGS = range(4)
NARROW = 4

# The columns of what is listed: which packet, the row kept free for it, what follows its VLAN tags
# and where, and the tags.
RARE_PACKET, RARE_ROW, RARE_AT, RARE_KIND, RARE_TAGS = range(5)
RARE = 5

# The loop's state: the next packet, rows and list filled so far; packets passed over, by reason;
# and tags that are not known.
NEXT, ROWS, DEFERRED_COUNT, MALFORMED_COUNT, NOT_IP_COUNT, NOT_TCP_COUNT, NEW_TAGS, TOUCHED = range(
    8
)
STATE = 8

# How many packets are brought into the processor's cache at once, and how much of each.
_TOUCH = 64
_TOUCH_BYTES = 64

# Ports, sequence numbers, header length and flags: what a cut packet must at least show.
_TCP_KNOWN_BYTES = 14
_TCP_MIN_BYTES = 20

# No host sends segments near this size (Linux's largest are 512 KiB); a jumbo length may claim it.
_MAX_SEGMENT_BYTES = 16 << 20


@device_function
def read_tcp_header(
    data: Any, at: int, end: int, sent_end: int, wide: Any, narrow: Any, row: int
) -> bool:
    """Write what a TCP header says into a row; return whether it is one."""
    if at + _TCP_KNOWN_BYTES > end:
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
def _touch(data: Any, start: Any, captured: Any, first: int) -> int:
    """
    Look at the next packets' headers, so that their way from memory is not waited for one by one.

    A loop this short has many reads under way at a time. What it returns means nothing.
    """
    total = 0
    for packet in range(first, min(first + _TOUCH, len(start))):
        if captured[packet] > 0:
            total += data[start[packet]]
            total += data[start[packet] + min(captured[packet], _TOUCH_BYTES) - 1]
    return total


@Kernel
def read_headers(
    data: Any,
    first: int,
    time_ns: Any,
    start: Any,
    captured: Any,
    original: Any,
    link: Any,
    known: Any,
    secret: Any,
    wide: Any,
    narrow: Any,
    addresses: Any,
    rare: Any,
    state: Any,
) -> None:
    """
    Write a row for each segment, until the packets end or one has tags that are not known.

    Args:
        data: The window.
        first: Number of its first packet.
        time_ns: When a packet was captured.
        start: Where a packet begins.
        captured: How much of it is there.
        original: How much was sent.
        link: Its link type.
        known: [n, 2], a hash table: VLAN tags, or 0, and the number of the network they make.
        secret: For its hash.
        wide: Columns of the segments, of 64 bits.
        narrow: Those of 32 bits.
        addresses: [2, n, 2] of 64 bits: source and target, high and low.
        rare: The list of other packets.
        state: Where to begin; how far it came.
    """
    rows, listed = state[ROWS], state[DEFERRED_COUNT]
    malformed, not_ip, not_tcp = 0, 0, 0
    state[NEW_TAGS] = 0
    packet = touched = state[NEXT]
    while packet < len(start):
        if packet == touched:
            state[TOUCHED] = _touch(data, start, captured, packet)
            touched += _TOUCH
        end = start[packet] + captured[packet]
        sent_end = start[packet] + original[packet] if original[packet] > 0 else end
        ip_at, kind = read_link_header(data, link[packet], start[packet], end)
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
            place = find_slot(known, secret, tags)
            if known[place, 0] == 0:
                state[NEW_TAGS] = tags
                break
            network = known[place, 1]
        if protocol == SLOW_PATH:
            rare[listed, RARE_PACKET] = packet
            rare[listed, RARE_ROW] = rows
            rare[listed, RARE_AT] = ip_at
            rare[listed, RARE_KIND] = kind
            rare[listed, RARE_TAGS] = tags
            listed += 1
            rows += 1
        elif protocol == TCP and read_tcp_header(data, at, end, sent_end, wide, narrow, rows):
            wide[PACKET, rows] = first + packet
            wide[TIME, rows] = time_ns[packet]
            narrow[NETWORK, rows] = network
            copy_addresses(data, kind, ip_at, addresses, rows)
            rows += 1
        elif protocol in (TCP, MALFORMED):
            malformed += 1
        elif protocol == NOT_IP:
            not_ip += 1
        else:
            not_tcp += 1
        packet += 1
    state[NEXT], state[ROWS], state[DEFERRED_COUNT] = packet, rows, listed
    state[MALFORMED_COUNT] += malformed
    state[NOT_IP_COUNT] += not_ip
    state[NOT_TCP_COUNT] += not_tcp


@Kernel
def compact_rows(wide: Any, narrow: Any, addresses: Any, row: int, rows: int) -> int:
    """Move rows together from `row` on, where those of packet -1 are none; return how many."""
    for each in range(row, rows):
        if wide[PACKET, each] >= 0:
            for column in range(WIDE):
                wide[column, row] = wide[column, each]
            for column in range(NARROW):
                narrow[column, row] = narrow[column, each]
            for side in range(2):
                addresses[side, row, 0] = addresses[side, each, 0]
                addresses[side, row, 1] = addresses[side, each, 1]
            row += 1
    return row
