"""IPv4 and IPv6 headers: device functions of the header kernel."""

from __future__ import annotations

from dissector.capture import iana_numbers as iana
from dissector.capture.addresses import IPV4_MAPPED
from dissector.capture.integers import high_half, u16, u32
from dissector.capture.packets.skip_reasons import MALFORMED, SLOW_PATH
from dissector.kernel import device_function
from dissector.kernel.arrays import U8, I64Cube

_MAX_EXTENSIONS = 16


@device_function
def read_ipv4_header(data: U8, at: int, end: int, sent_end: int) -> tuple[int, int, int, int]:
    """
    Step over an IPv4 header; return the protocol behind it, its offset, and both ends.

    Both ends become the IP packet's. Hosts capture a total length of 0 in packets that the network
    card will segment (offload): such a packet ends where the frame does.

    Source: RFC 791.
    """
    if at + 20 > end:
        return MALFORMED, at, end, sent_end
    size = (data[at] & 15) * 4
    total = u16(data, at + 2)
    if high_half(data, at) != 4 or size < 20 or (0 < total < size) or at + size > end:
        return MALFORMED, at, end, sent_end
    if total > 0:
        sent_end = at + total
    if u16(data, at + 6) & 0x3FFF:
        return SLOW_PATH, at, end, sent_end
    protocol = int(data[at + 9])
    if protocol == iana.AUTHENTICATION:
        protocol = SLOW_PATH
    return protocol, at + size, min(end, sent_end), sent_end


@device_function
def read_ipv6_header(data: U8, at: int, end: int, sent_end: int) -> tuple[int, int, int, int]:
    """
    Step over an IPv6 header and its extension headers; return the same as for IPv4.

    A payload length of 0 means a jumbo payload, with its length in an option; without one it ends
    with the frame. Senders put the option first.

    Source: RFC 8200.
    """
    if at + 40 > end or high_half(data, at) != 6:
        return MALFORMED, at, end, sent_end
    length = u16(data, at + 4)
    protocol = int(data[at + 6])
    at += 40
    if length > 0:
        sent_end = at + length
    elif (
        protocol == iana.HOP_BY_HOP
        and at + 8 <= end
        and u16(data, at + 2) == iana.JUMBO_PAYLOAD_OPTION
    ):
        sent_end = at + u32(data, at + 4)
    end = min(end, sent_end)
    count = 0
    while protocol in iana.IPV6_EXTENSION_HEADERS:
        if count == _MAX_EXTENSIONS or at + 8 > end:
            return MALFORMED, at, end, sent_end
        size = (data[at + 1] + 1) * 8
        if protocol == iana.AUTHENTICATION:
            size = (data[at + 1] + 2) * 4
        elif protocol == iana.FRAGMENT:
            # An atomic fragment (offset 0, the only one) is a whole packet. Source: RFC 6946.
            if u16(data, at + 2) & 0xFFF9:
                return SLOW_PATH, at, end, sent_end
            size = 8
        protocol = int(data[at])
        at += size
        count += 1
    return protocol, at, end, sent_end


@device_function
def is_tunnel(data: U8, tunnel_ports: U8, protocol: int, at: int, end: int) -> bool:
    """Return whether the payload of an IP packet is, or may be, another packet."""
    if protocol == iana.UDP:
        return at + 8 <= end and tunnel_ports[u16(data, at + 2)] != 0
    return protocol in iana.ENCAPSULATING_PROTOCOLS


@device_function
def address_half(data: U8, at: int) -> int:
    """Return half of an IPv6 address as a signed integer of 64 bits."""
    high = u32(data, at)
    return (high - ((high >> 31) << 32)) << 32 | u32(data, at + 4)


@device_function
def copy_addresses(data: U8, kind: int, at: int, addresses: I64Cube, row: int) -> None:
    """Write the addresses of the IP header at `at` into a row."""
    if kind == iana.IPV4:
        addresses[0, row, 0] = 0
        addresses[0, row, 1] = IPV4_MAPPED | u32(data, at + 12)
        addresses[1, row, 0] = 0
        addresses[1, row, 1] = IPV4_MAPPED | u32(data, at + 16)
    else:
        addresses[0, row, 0] = address_half(data, at + 8)
        addresses[0, row, 1] = address_half(data, at + 16)
        addresses[1, row, 0] = address_half(data, at + 24)
        addresses[1, row, 1] = address_half(data, at + 32)
