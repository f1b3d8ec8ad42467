"""TCP connections of a capture, read by dpkt: packets, ordered bytes and counters of each side."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import dpkt
from dpkt.tcp import TH_ACK, TH_FIN, TH_RST, TH_SYN


class Chunk(NamedTuple):
    """Some bytes of a stream, and the packet that brought them."""

    packet: int
    time_ns: int
    data: bytes


class Timed(NamedTuple):
    """The last of some bytes, and when they were sent."""

    end: int
    time_ns: int
    packet: int
    is_syn: bool


class RoundTrip(NamedTuple):
    """The packet of some bytes, the one that acknowledged them, and the time between."""

    sent: int
    acked: int
    time_ns: int


class Segment(NamedTuple):
    """A TCP segment: its packet and its endpoints as texts (`127.0.0.1:9092`)."""

    packet: int
    time_ns: int
    source: str
    target: str
    tcp: Any


@dataclass
class Side:
    """
    One direction of a connection.

    Attributes:
        endpoint: The sender.
        next: Sequence number of the next byte; None before the first packet.
        waiting: Segments behind missing ones, by sequence number.
        chunks: The bytes in order, each once.
        packets: All packets of the sender.
        bytes: The number of bytes in the stream.
        retransmissions: Packets with bytes that were there before.
        retransmitted: The number of such bytes.
        closed: Whether it sent a FIN.
        begun: Whether its SYN, or an acknowledgement of its bytes, was there: before that, bytes
            that come need not be its next ones.
        timed: The bytes whose acknowledgement is awaited; None if none are measured.
        handshake: RTT of its SYN, ns.
        round_trips: All RTTs that were measured.
        ways: The packets that changed what is known of the way to the other side and back, and the
            least RTT, ns.
        repeats: The packets with bytes that were there before, and their times.
        windows: When it announced a receive window, and whether that was zero.
    """

    endpoint: str
    next: int | None = None
    waiting: dict[int, Chunk] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    packets: int = 0
    bytes: int = 0
    retransmissions: int = 0
    retransmitted: int = 0
    closed: bool = False
    begun: bool = False
    timed: Timed | None = None
    handshake: int | None = None
    round_trips: list[RoundTrip] = field(default_factory=list)
    ways: list[tuple[int, int, int]] = field(default_factory=list)
    repeats: list[tuple[int, int]] = field(default_factory=list)
    windows: list[tuple[int, bool]] = field(default_factory=list)

    @property
    def smoothed(self) -> float | None:
        """The smoothed RTT, ns. Source: RFC 6298, 2."""
        if not self.round_trips:
            return None
        smoothed = float(self.round_trips[0].time_ns)
        for each in self.round_trips[1:]:
            smoothed = 7 / 8 * smoothed + each.time_ns / 8
        return smoothed

    def zero_window(self, last_ns: int) -> int:
        """Return how long a window of zero was announced, up to the end, ns."""
        marks = pairwise([*self.windows, (last_ns, False)])
        return sum(end - begin for (begin, is_zero), (end, _) in marks if is_zero)

    def time(self, end: int, time_ns: int, packet: int, is_syn: bool = False) -> None:
        """Measure the RTT of bytes, unless others are measured."""
        self.begun |= is_syn
        if self.timed is None and self.begun:
            self.timed = Timed(end % (1 << 32), time_ns, packet, is_syn)

    def acknowledge(self, segment: Segment, *, in_order: bool) -> None:
        """Take an acknowledgement of its bytes."""
        ack = segment.tcp.ack
        timed, self.begun = self.timed, True
        if timed is None or (ack - timed.end) % (1 << 32) >= 1 << 31:
            return
        self.timed = None
        if in_order and not (timed.is_syn and segment.tcp.data):
            rtt_ns = segment.time_ns - timed.time_ns
            self.round_trips.append(RoundTrip(timed.packet, segment.packet, rtt_ns))
            if timed.is_syn:
                self.handshake = rtt_ns
            if not segment.tcp.data:
                self.find_way(segment, rtt_ns, is_syn=timed.is_syn)

    def find_way(self, segment: Segment, rtt_ns: int, *, is_syn: bool) -> None:
        """Take the RTT of an acknowledgement without data for that of the way, if it may be."""
        _, least, since = self.ways[-1] if self.ways else (0, rtt_ns, segment.time_ns)
        is_delayed = rtt_ns >= 40_000_000 + (least if self.ways else 0)
        is_newer = rtt_ns <= least or segment.time_ns - since > 10_000_000_000
        if is_newer and (is_syn or not is_delayed):
            self.ways.append((segment.packet, rtt_ns, segment.time_ns))

    def add(self, seq: int, chunk: Chunk) -> None:
        """Add the payload of a packet, and what waited for it."""
        assert self.next is not None
        early = (seq - self.next + (1 << 31)) % (1 << 32) - (1 << 31)
        is_keep_alive = early == -1 and len(chunk.data) == 1
        if early < 0 and not is_keep_alive:
            self.timed = None
        repeated = min(max(-early, 0), len(chunk.data))
        if repeated:
            self.retransmissions += 1
            self.retransmitted += repeated
            if not is_keep_alive:
                self.repeats.append((chunk.packet, chunk.time_ns))
        if early > 0:
            self.waiting[seq] = chunk
            return
        if repeated < len(chunk.data):
            self.chunks.append(chunk._replace(data=chunk.data[repeated:]))
            self.bytes += len(chunk.data) - repeated
            self.next = (self.next + len(chunk.data) - repeated) % (1 << 32)
            if early == 0 and not self.waiting:
                self.time(self.next, chunk.time_ns, chunk.packet)
            if self.next in self.waiting:
                self.add(self.next, self.waiting.pop(self.next))


@dataclass
class Connection:
    """
    A TCP connection.

    Attributes:
        sides: First the side that opened it, or the first sender of a connection without SYN.
        opening: Sequence number of its SYN; None if that is not in the capture.
        reset: Whether a RST was sent.
    """

    sides: tuple[Side, Side]
    first_ns: int
    last_ns: int = 0
    opening: int | None = None
    reset: bool = False

    @property
    def ended(self) -> str | None:
        """How it ended: `rst`, `fin` or None."""
        if self.reset:
            return "rst"
        return "fin" if all(side.closed for side in self.sides) else None

    def add(self, segment: Segment) -> None:
        """Add a packet."""
        tcp = segment.tcp
        number = [each.endpoint for each in self.sides].index(segment.source)
        side, other = self.sides[number], self.sides[1 - number]
        side.packets += 1
        self.last_ns = segment.time_ns
        self.reset |= bool(tcp.flags & TH_RST)
        side.closed |= bool(tcp.flags & TH_FIN)
        if not tcp.flags & (TH_SYN | TH_FIN | TH_RST):
            side.windows.append((segment.time_ns, tcp.win == 0))
        if tcp.flags & TH_SYN:
            is_repeated = side.next is not None
            side.next, side.timed = (tcp.seq + 1) % (1 << 32), None
            if not is_repeated:
                side.time(side.next, segment.time_ns, segment.packet, is_syn=True)
        elif side.next is None:
            side.next = tcp.seq
        if tcp.flags & TH_ACK and not tcp.flags & TH_RST:
            begins = tcp.seq + bool(tcp.flags & TH_SYN)
            other.acknowledge(segment, in_order=begins % (1 << 32) == side.next)
        if tcp.data:
            side.add(tcp.seq, Chunk(segment.packet, segment.time_ns, bytes(tcp.data)))
        if tcp.flags & TH_FIN and side.next == (tcp.seq + len(tcp.data)) % (1 << 32):
            side.next = (side.next + 1) % (1 << 32)


def connections_of(path: Path) -> list[Connection]:
    """Return the connections of a capture, in the order of their first packets."""
    found: list[Connection] = []
    current: dict[frozenset[str], Connection] = {}
    for segment in segments(path):
        ends = frozenset((segment.source, segment.target))
        opens = segment.tcp.flags & (TH_SYN | TH_ACK) == TH_SYN
        connection = current.get(ends)
        if connection is None or (opens and connection.opening != segment.tcp.seq):
            sides = (Side(segment.source), Side(segment.target))
            connection = current[ends] = Connection(sides, segment.time_ns)
            connection.opening = segment.tcp.seq if opens else None
            found.append(connection)
        connection.add(segment)
    for each in found:
        assert not any(side.waiting for side in each.sides), "bytes are missing"
    return found


def segments(path: Path) -> Iterator[Segment]:
    """Yield the TCP segments; packets are numbered from 1."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for number, (time, packet) in enumerate(dpkt.pcap.UniversalReader(io.BytesIO(data)), 1):
        ip = dpkt.ethernet.Ethernet(packet).data
        if isinstance(getattr(ip, "data", None), dpkt.tcp.TCP):
            tcp = ip.data
            source, target = endpoint(ip.src, tcp.sport), endpoint(ip.dst, tcp.dport)
            yield Segment(number, nanoseconds(time), source, target, tcp)


def endpoint(address: bytes, port: int) -> str:
    """Return an endpoint as text."""
    text = dpkt.utils.inet_to_str(address)
    return f"[{text}]:{port}" if len(address) == 16 else f"{text}:{port}"


def nanoseconds(time: Any) -> int:
    """Return dpkt's time: a float has microseconds, a Decimal has nanoseconds."""
    return round(time * 1_000_000) * 1000 if isinstance(time, float) else int(time * 1_000_000_000)
