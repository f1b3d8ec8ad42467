"""
Captures for tests: TCP connections as packets, to be reordered, repeated, lost or truncated.

A `Wire` collects packets; a `WireConnection` sends on it. A capture file can be written from any
list of packets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.dissector.capture.handmade_packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    block,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    section,
    tcp,
)

START_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000
HEADERS_BYTES = 14 + 20 + 20
"""Ethernet, IPv4 and TCP without options: what stands before the payload of a plain packet."""

TSRESOL = 9
"""The option of a pcapng interface that says how fine its times are."""


@dataclass(frozen=True)
class Packet:
    """
    One packet.

    Attributes:
        time_ns: Time of capture.
        data: Bytes from the Ethernet header on.
        connection: Number of its connection on the wire.
        side: Sender: 0 is the client, 1 the broker.
        start: Offset of its payload in the stream of its side.
        payload: Its payload.
        snap: Number of captured bytes; None means all.
    """

    time_ns: int
    data: bytes
    connection: int = 0
    side: int = 0
    start: int = 0
    payload: bytes = b""
    snap: int | None = None

    @property
    def end(self) -> int:
        """Offset behind its payload in the stream of its side."""
        return self.start + len(self.payload)

    def cut(self, snap: int) -> Packet:
        """Return the packet truncated to this snaplen."""
        return replace(self, snap=snap)


@dataclass
class Wire:
    """
    Packets in the order of the capture.

    Attributes:
        packets: Packets so far.
        now_ns: Time of the next packet, a millisecond after the last.
    """

    packets: list[Packet] = field(default_factory=list)
    now_ns: int = START_NS
    connections: int = 0

    def connect(
        self,
        port: int = 50000,
        *,
        hosts: tuple[str, str] = ("10.0.0.1", "10.0.0.2"),
        broker_port: int = 9092,
        vlan: int | None = None,
        isn: tuple[int, int] = (1000, 2**32 - 500),
    ) -> WireConnection:
        """Create a connection, without packets yet."""
        self.connections += 1
        return WireConnection(self, self.connections - 1, hosts, (port, broker_port), vlan, isn)


class WireConnection:
    """
    One connection, with sequence and acknowledgement numbers from its sent bytes.

    Attributes:
        sent: Bytes sent by each side so far.
        windows: The receive window that each side announces.
    """

    def __init__(
        self,
        wire: Wire,
        number: int,
        hosts: tuple[str, str],
        ports: tuple[int, int],
        vlan: int | None,
        isn: tuple[int, int],
    ) -> None:
        self.wire = wire
        self.number = number
        self.hosts = hosts
        self.ports = ports
        self.vlan = vlan
        self.isn = isn
        self.sent = [bytearray(), bytearray()]
        self.windows = [4096, 4096]
        self._closed = [0, 0]

    def syn(self) -> WireConnection:
        """Shake hands."""
        self.send_segment(0, SYN, before=True)
        self.send_segment(1, SYN | ACK, before=True)
        return self.ack(0)

    def client(self, *data: bytes) -> WireConnection:
        """Send from the client, one packet per part, each acknowledged by the broker."""
        return self.send(0, *data)

    def broker(self, *data: bytes) -> WireConnection:
        """Send from the broker, one packet per part, each acknowledged by the client."""
        return self.send(1, *data)

    def send(self, side: int, *data: bytes) -> WireConnection:
        for piece in data:
            self.send_segment(side, ACK | PSH, piece)
        return self.ack(1 - side)

    def retransmit(self, side: int, start: int, end: int) -> WireConnection:
        """Retransmit bytes."""
        self._put(side, ACK | PSH, start, bytes(self.sent[side][start:end]))
        return self

    def ack(self, side: int) -> WireConnection:
        """Acknowledge the bytes of the other side."""
        return self.send_segment(side, ACK)

    def fin(self, *sides: int) -> WireConnection:
        """Close, from both sides by default."""
        for side in sides or (0, 1):
            self.send_segment(side, FIN | ACK)
            self._closed[side] = 1
        return self.ack(0 if 1 in sides or not sides else 1)

    def rst(self, side: int = 0) -> WireConnection:
        """Reset."""
        return self.send_segment(side, RST | ACK)

    def send_segment(
        self, side: int, flags: int, data: bytes = b"", before: bool = False
    ) -> WireConnection:
        start = len(self.sent[side]) + self._closed[side]
        self.sent[side] += data
        self._put(side, flags, -1 if before else start, data)
        return self

    def _put(self, side: int, flags: int, start: int, data: bytes) -> None:
        other = 1 - side
        ack = self.isn[other] + 1 + len(self.sent[other]) + self._closed[other]
        segment = tcp(
            data,
            seq=self.isn[side] + 1 + start,
            ack=ack if flags & ACK else 0,
            flags=flags,
            ports=self.ports if side == 0 else (self.ports[1], self.ports[0]),
            window=self.windows[side],
        )
        hosts = {"source": self.hosts[side], "target": self.hosts[other]}
        version6 = ":" in self.hosts[0]
        packet = ipv6(segment, **hosts) if version6 else ipv4(segment, **hosts)
        tags = [] if self.vlan is None else [(0x8100, self.vlan)]
        frame = ethernet(packet, 0x86DD if version6 else 0x0800, tags)
        wire = self.wire
        wire.packets.append(Packet(wire.now_ns, frame, self.number, side, start, data))
        wire.now_ns += STEP_NS


def pieces(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Split bytes at offsets; those outside are ignored."""
    ends = sorted({place for place in places if 0 < place < len(data)} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def retimed(packets: Iterable[Packet]) -> list[Packet]:
    """Return packets in this order with times a millisecond apart."""
    return [
        replace(packet, time_ns=START_NS + number * STEP_NS)
        for number, packet in enumerate(packets)
    ]


def pcap_file(packets: Iterable[Packet]) -> bytes:
    """Write a classic pcap file with nanoseconds."""
    header = pcap([])
    records = (
        pcap([(packet.time_ns, packet.data)], snap=packet.snap)[len(header) :] for packet in packets
    )
    return header + b"".join(records)


def pcapng_file(packets: Iterable[Packet]) -> bytes:
    """Write a pcapng file with nanoseconds."""
    blocks = [section(), interface(options=[(TSRESOL, b"\x09")])]
    for packet in packets:
        kept = packet.data[: packet.snap]
        ticks = packet.time_ns >> 32, packet.time_ns & 0xFFFFFFFF
        head = struct.pack("<IIIII", 0, *ticks, len(kept), len(packet.data))
        blocks.append(block(6, head + kept))
    return b"".join(blocks)


def write(path: Path, packets: Sequence[Packet]) -> str:
    """Write a capture to `path`, as pcapng by its suffix; return the path as text."""
    make = pcapng_file if path.suffix == ".pcapng" else pcap_file
    path.write_bytes(make(packets))
    return str(path)
