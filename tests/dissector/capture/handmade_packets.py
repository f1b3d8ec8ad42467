"""Hand-made captures and packets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32

A, B = "10.0.0.1", "10.0.0.2"


def pcap(
    packets: Iterable[tuple[int, bytes]],
    *,
    order: str = "<",
    magic: int = 0xA1B23C4D,
    link: int = 1,
    version: tuple[int, int] = (2, 4),
    snap: int | None = None,
) -> bytes:
    """Return a classic pcap file of (time in its units, bytes)."""
    parts = [struct.pack(f"{order}IHHiIII", magic, *version, 0, 0, 65535, link)]
    units = 1_000_000 if magic != 0xA1B23C4D else 1_000_000_000
    for time, packet in packets:
        kept = packet[:snap]
        head = struct.pack(f"{order}IIII", time // units, time % units, len(kept), len(packet))
        parts += head, (b"" if magic != 0xA1B2CD34 else bytes(8)), kept
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a pcapng block."""
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack(f"{order}II", kind, length) + body + struct.pack(f"{order}I", length)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    link: int = 1, *, order: str = "<", snap: int = 0, options: Sequence[tuple[int, bytes]] = ()
) -> bytes:
    body = struct.pack(f"{order}HHI", link, 0, snap)
    for code, value in options:
        body += struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(1, body, order)


def enhanced(packet: bytes, ticks: int, number: int = 0, order: str = "<") -> bytes:
    head = struct.pack(
        f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet)
    )
    return block(6, head + packet, order)


@cache
def address(text: str) -> bytes:
    import ipaddress

    return ipaddress.ip_address(text).packed


def tcp(
    payload: bytes = b"",
    *,
    seq: int = 0,
    ack: int = 0,
    flags: int = ACK,
    ports: tuple[int, int] = (50000, 9092),
    options: bytes = b"",
    window: int = 4096,
) -> bytes:
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(
        ">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset, flags, window, 0, 0
    )
    return head + options + payload


def udp(payload: bytes, ports: tuple[int, int]) -> bytes:
    return struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload


def ipv4(
    payload: bytes,
    *,
    protocol: int = 6,
    source: str = A,
    target: str = B,
    options: bytes = b"",
    length: int | None = None,
    number: int = 1,
    fragment: int = 0,
) -> bytes:
    """Return an IPv4 packet; `fragment` is the field of flags and offset."""
    total = 20 + len(options) + len(payload) if length is None else length
    first = 0x40 | (20 + len(options)) // 4
    head = struct.pack(">BBHHHBBH", first, 0, total, number, fragment, 64, protocol, 0)
    return head + address(source) + address(target) + options + payload


def ipv6(
    payload: bytes,
    *,
    following: int = 6,
    source: str = "fd00::1",
    target: str = "fd00::2",
    length: int | None = None,
) -> bytes:
    size = len(payload) if length is None else length
    head = struct.pack(">IHBB", 0x60000000, size, following, 64)
    return head + address(source) + address(target) + payload


def ethernet(payload: bytes, kind: int = 0x0800, tags: Sequence[tuple[int, int]] = ()) -> bytes:
    """Return an Ethernet frame; `tags` are (ethertype of the tag, VLAN id), outermost first."""
    frame = bytes(6) + b"\x02" + bytes(5)
    for ethertype, vlan in tags:
        frame += struct.pack(">HH", ethertype, vlan)
    return frame + struct.pack(">H", kind) + payload
