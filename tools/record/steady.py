"""
Large captures of long-lived connections, for benchmarks, made from small ones.

    python -m tools.record.steady --packets 1000000 /tmp/steady.pcap
    python -m tools.record.steady --damage lost /tmp/lost.pcap
    python -m tools.record.steady --keylog /tmp/tls.keylog /tmp/tls.pcap
    python -m tools.record.steady --of "kafka39-kafka-python-as-0.*" /tmp/message-sets.pcap
    python -m tools.record.steady --exchanges 5 /tmp/short.pcap

While `large` repeats short conversations, here some hundred clients stay connected and send one
exchange after the other, taken from `captures/`: mostly Produce and Fetch, up to five in flight, in
segments of 1448 bytes. Only addresses, sequence numbers and correlation ids are generated. The
result depends only on captures and options. With `--exchanges` the clients connect again and again.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path

from dissector import dissect
from tools.record.large import CAPTURES, ETHERNET, SEED, SNAPLEN, Packet
from tools.record.tls_writer import TlsWriter

MSS = 1448
PSH_ACK, ACK, SYN, FIN_ACK = 0x18, 0x10, 0x02, 0x11
FIRST_PORT, PORTS = 32768, 28232
"""The ports of clients. Source: Linux, net.ipv4.ip_local_port_range."""
BROKERS = 6
IN_FLIGHT = 5
MAX_EXCHANGE_BYTES = 64 << 10
BUSY = (0, 1)
"""Keys of Produce and Fetch, the bulk of traffic."""

BUSY_SHARE = 0.85
LOST_SHARE, REORDERED_SHARE = 0.01, 0.05
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, ETHERNET)
BEGIN_NS = 1_700_000_000_000_000_000

DAMAGES = ("lost", "doubled", "reordered")

Exchange = tuple[bytes, bytes | None]
"""Frames of a request and its response, without size prefix."""


@dataclass(slots=True)
class Traffic:
    """Exchanges of one corpus capture: frequent ones, and the rest."""

    busy: list[Exchange] = field(default_factory=list)
    other: list[Exchange] = field(default_factory=list)
    weights: list[int] | None = None

    def pick(self, order: random.Random) -> Exchange:
        """Return the next exchange of a client."""
        busy = self.busy and (not self.other or order.random() < BUSY_SHARE)
        if not busy:
            return order.choice(self.other)
        # Small exchanges, frequent in tests, are rarer in production.
        if self.weights is None:
            self.weights = list(accumulate(map(_bytes, self.busy)))
        return order.choices(self.busy, cum_weights=self.weights)[0]


def _bytes(exchange: Exchange) -> int:
    return len(exchange[0]) + len(exchange[1] or b"")


def originals(names: str) -> list[Traffic]:
    """Read the exchanges of matching corpus captures."""
    found = []
    for path in sorted(CAPTURES.glob(names)):
        if ".pcap" not in path.name:
            continue
        traffic = Traffic()
        for exchange in dissect(path):
            request, response = exchange.request, exchange.response
            whole = exchange.status in ("answered", "no_response") and not exchange.problems
            if not whole or request is None or request.api_key is None or request.api_key == 17:
                continue
            frames = request.frame, None if response is None else response.frame
            if _bytes(frames) <= MAX_EXCHANGE_BYTES:
                group = traffic.busy if request.api_key in BUSY else traffic.other
                group.append(frames)
        if traffic.busy:
            found.append(traffic)
    return found


@dataclass(slots=True)
class Client:
    """
    A connection with a clock, in segments of `mss` bytes; `tls` encrypts it.

    With `exchanges` it ends after that many, and another one begins from the next port.
    """

    number: int
    traffic: Traffic
    order: random.Random
    now_ns: int
    sequence: list[int]
    correlation_id: int = 0
    tls: TlsWriter | None = None
    port: int = 9092
    mss: int = MSS
    exchanges: int = 0
    _ended: int = 0
    _clock: random.Random = field(init=False)

    def __post_init__(self) -> None:
        # The traffic must not depend on the number of packets.
        self._clock = random.Random(self.order.randrange(1 << 32))

    def packets(self) -> Iterator[Packet]:
        """Yield packets without end; one client in ten was connected before the capture began."""
        if self.number % 10:
            yield from self._handshake()
        waiting: deque[bytes | None] = deque()
        sent = 0
        while True:
            if self.exchanges and sent >= self.exchanges:
                yield from self._connect_again()
                sent = 0
            for _ in range(self.order.randrange(1, IN_FLIGHT + 1)):
                request, response = self.traffic.pick(self.order)
                number = struct.pack(">i", self.correlation_id)
                self.correlation_id = self.correlation_id + 1 & 0x7FFFFFFF
                yield from self._send(0, request[:4] + number + request[8:])
                sent += 1
                waiting.append(None if response is None else number + response[4:])
            while waiting:
                answer = waiting.popleft()
                if answer is not None:
                    yield from self._send(1, answer)
                    yield self._packet(0, ACK, b"")
            self.now_ns += self.order.randrange(200_000, 2_000_000)

    def _connect_again(self) -> Iterator[Packet]:
        for side in (0, 1):
            yield self._packet(side, FIN_ACK, b"")
            self.sequence[side] += 1
        yield self._packet(0, ACK, b"")
        self._ended += 1
        self.sequence = [self._clock.randrange(1 << 32) for _ in (0, 1)]
        yield from self._handshake()

    def _handshake(self) -> Iterator[Packet]:
        yield self._packet(0, SYN, b"")
        self.sequence[0] += 1
        yield self._packet(1, SYN | ACK, b"")
        self.sequence[1] += 1
        yield self._packet(0, ACK, b"")
        for side, flight in () if self.tls is None else self.tls.handshake():
            yield self._packet(side, PSH_ACK, flight)

    def _send(self, side: int, frame: bytes) -> Iterator[Packet]:
        content = struct.pack(">i", len(frame)) + frame
        if self.tls is not None:
            content = self.tls.seal(side, content)
        yield from self._write(side, content)

    def _write(self, side: int, content: bytes) -> Iterator[Packet]:
        for at in range(0, len(content), self.mss):
            yield self._packet(side, PSH_ACK, content[at : at + self.mss])

    def _packet(self, side: int, flags: int, content: bytes) -> Packet:
        self.now_ns += self._clock.randrange(5_000, 60_000)
        port = 40000 + self.number
        if self._ended:
            port = FIRST_PORT + (port + self._ended) % PORTS
        client = (bytes((10, 1, self.number >> 8, self.number & 0xFF)), port)
        broker = (bytes((10, 0, 0, 1 + self.number % BROKERS)), self.port)
        (source, sport), (target, dport) = (client, broker) if side == 0 else (broker, client)
        mine, other = self.sequence[side], self.sequence[1 - side]
        tcp = struct.pack(
            ">HHIIBBHHH",
            sport,
            dport,
            mine & 0xFFFFFFFF,
            0 if flags == SYN else other & 0xFFFFFFFF,
            0x50,
            flags,
            0xFFFF,
            0,
            0,
        )
        self.sequence[side] += len(content)
        size = 40 + len(content)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 0, 0x4000, 64, 6, 0, source, target)
        return self.now_ns, b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x00" + ip + tcp + content


def traffic(
    connections: int, names: str = "*", *, encrypted: bool = False, exchanges: int = 0
) -> Iterator[Packet]:
    """
    Return the packets of all clients in time order.

    Args:
        connections: Number of clients.
        names: Whose exchanges they repeat: a pattern of names of captures.
        encrypted: Whether nobody can read the contents but with the key log.
        exchanges: After how many a client connects anew; 0: never.
    """
    order = random.Random(SEED)
    sources = originals(names)
    weights = [sum(map(_bytes, source.busy)) / len(source.busy) for source in sources]
    chosen = order.choices(sources, weights, k=connections)
    streams = []
    for number in range(connections):
        start = [order.randrange(1 << 32), order.randrange(1 << 32)]
        own = random.Random(order.randrange(1 << 32))
        client = Client(number, chosen[number], own, order.randrange(1_000_000_000), start)
        client.tls = TlsWriter(number) if encrypted else None
        client.exchanges = exchanges
        streams.append(client.packets())
    return merge(*streams, key=itemgetter(0))


def damaged(packets: Iterable[Packet], damage: str) -> Iterator[Packet]:
    """
    Yield packets with damage typical of bad captures.

    Args:
        packets: Packets in time order.
        damage: `lost`: one in a hundred is missing; `doubled`: all are duplicated; `reordered`: one
            in twenty is swapped with its successor.
    """
    order, held = random.Random(SEED), deque[Packet]()
    for packet in packets:
        if damage == "doubled":
            yield packet
        if damage == "lost" and order.random() < LOST_SHARE:
            continue
        if damage == "reordered" and not held and order.random() < REORDERED_SHARE:
            held.append(packet)
            continue
        yield packet
        yield from held
        held.clear()
    yield from held


def write(
    path: Path,
    packets: int,
    connections: int = 300,
    names: str = "*",
    damage: str = "",
    keylog: Path | None = None,
    exchanges: int = 0,
) -> None:
    """
    Write a number of packets from matching captures, optionally damaged.

    With `keylog` they are encrypted, and secrets are written to it.
    """
    endless = traffic(connections, names, encrypted=keylog is not None, exchanges=exchanges)
    made = islice(endless, packets)
    if keylog is not None:
        lines = (line for number in range(connections) for line in TlsWriter(number).lines)
        keylog.write_text("".join(f"{line}\n" for line in lines))
    save(path, damaged(made, damage) if damage else made)


def save(path: Path, packets: Iterable[Packet]) -> None:
    """Write packets as a classic pcap."""
    with path.open("wb") as file:
        file.write(FILE_HEADER)
        file.writelines(records(packets))
    print(f"{path}: {path.stat().st_size / 1e6:,.0f} MB", file=sys.stderr)


def records(packets: Iterable[Packet]) -> Iterator[bytes]:
    """Yield packets as in a classic pcap, with their headers."""
    for time_ns, data in packets:
        seconds, rest_ns = divmod(time_ns + BEGIN_NS, 1_000_000_000)
        yield struct.pack("<IIII", seconds, rest_ns, len(data), len(data)) + data


def main() -> None:
    """Parse the options and write the capture."""
    parser = argparse.ArgumentParser(prog="python -m tools.record.steady", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--of", default="*", help="names of captures: a pattern")
    parser.add_argument("--damage", choices=DAMAGES, default="", help="as bad captures have it")
    parser.add_argument("--keylog", type=Path, help="encrypt, and write the key log")
    parser.add_argument("--exchanges", type=int, default=0, help="of a connection, until its end")
    each = parser.parse_args()
    if each.exchanges and each.keylog:
        parser.error("a key log has the keys of one connection of each client")
    write(
        each.out,
        each.packets,
        each.connections,
        each.of,
        each.damage,
        each.keylog,
        each.exchanges,
    )


if __name__ == "__main__":
    main()
