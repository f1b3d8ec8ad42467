"""
Large captures of short connections, for benchmarks: some at a time, abandoned after 40 ms.

    python -m tools.record.generations --packets 1000000 /tmp/short.pcap
    python -m tools.record.generations --lost /tmp/lost.pcap
    python -m tools.record.generations --http /tmp/http.pcap

Eight clients at a time send requests of all APIs, taken from `captures/`; none ends with a FIN.
With `--http` there is one of them beside 35 clients of a web server. Some generations of clients
are made packet by packet, and then copied with new addresses and times until there are enough
packets. The result depends only on captures and options.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tools.record.large import SEED, SEQUENCE_AT, SOURCE_AT, SPREAD, Packet
from tools.record.steady import (
    BEGIN_NS,
    FILE_HEADER,
    LOST_SHARE,
    Client,
    Exchange,
    Traffic,
    originals,
    records,
)

LIFE_NS = 40_000_000
SIDE_BY_SIDE = 8
WEB_CLIENTS = 35
"""Clients of the web server beside one of Kafka; they send 95 % of the packets."""

DIFFERENT = 100
"""Generations made packet by packet."""

MAX_PAGE_BYTES = 8192

CORPUS = "kafka4-*"
"""The captures with the exchanges."""

_RECORD_HEADER_BYTES = 16
_BROKERS = b"\x0a\0\0"
"""Beginning of the addresses of brokers, which no client has."""


class EveryApi(Traffic):
    """Exchanges of which half are Produce and Fetch, large ones mostly; others have equal parts."""

    def __init__(self, sources: Sequence[Traffic]) -> None:
        super().__init__(busy=[exchange for source in sources for exchange in source.busy])
        by_api: dict[bytes, list[Exchange]] = {}
        for exchange in (exchange for source in sources for exchange in source.other):
            by_api.setdefault(exchange[0][:2], []).append(exchange)
        self.others = [by_api[key] for key in sorted(by_api)]

    def pick(self, order: random.Random) -> Exchange:
        """Return the next exchange of a client."""
        if order.random() < 1 / 2:
            return super().pick(order)
        return order.choice(order.choice(self.others))


class WebClient(Client):
    """A client of a web server."""

    def packets(self) -> Iterator[Packet]:
        """Yield packets without end."""
        yield from self._handshake()
        while True:
            path = f"/api/orders/{self.order.randrange(1 << 32)}"
            request = (
                f"GET {path} HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n\r\n"
            )
            yield from self._write(0, request.encode())
            page = self.order.randbytes(self.order.randrange(200, MAX_PAGE_BYTES) // 2).hex()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\n\r\n"
            yield from self._write(1, (head + page).encode())
            self.now_ns += self.order.randrange(200_000, 2_000_000)


class Generation(NamedTuple):
    """
    Connections that begin together, as packets of a capture file in the order of time.

    Attributes:
        data: The packets, with their headers.
        starts: Where each begins; where the last one ends.
        times_ns: Their times since the beginning.
        clients_at: Where the address of the client begins in each.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    clients_at: NDArray[np.int64]

    @classmethod
    def of(cls, clients: Sequence[Client]) -> Generation:
        """Return the first 40 ms of some clients."""
        packets = list(merge(*map(_life, clients)))
        data = np.frombuffer(b"".join(records(packets)), np.uint8)
        starts = np.cumsum([0, *(_RECORD_HEADER_BYTES + len(packet) for _, packet in packets)])
        is_answer = [packet[SOURCE_AT : SOURCE_AT + 3] == _BROKERS for _, packet in packets]
        address = _RECORD_HEADER_BYTES + SOURCE_AT + 4 * np.array(is_answer, np.int64)
        times_ns = np.array([time_ns for time_ns, _ in packets], np.int64)
        return cls(data, starts, times_ns, starts[:-1] + address)

    def copy(self, number: int, kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return some of the packets, at the time and with the addresses of a generation."""
        data = self.data.copy()
        times_ns = self.times_ns + (BEGIN_NS + number * LIFE_NS)
        stamps = np.stack(np.divmod(times_ns, 10**9), 1).astype("<u4")
        data[self.starts[:-1, None] + np.arange(8)] = stamps.view(np.uint8)
        address = np.array([1 + (number >> 16), number >> 8 & 0xFF, number & 0xFF], np.uint8)
        data[self.clients_at[:, None] + np.arange(1, 4)] = address
        numbers_at = self.starts[:-1, None] + (_RECORD_HEADER_BYTES + SEQUENCE_AT + np.arange(8))
        numbers = data[numbers_at].view(">u4") + np.uint32(number * SPREAD & 0xFFFFFFFF)
        data[numbers_at] = numbers.astype(">u4").view(np.uint8)
        return data[np.repeat(kept, np.diff(self.starts))]


def _life(client: Client) -> Iterator[Packet]:
    for packet in client.packets():
        if packet[0] >= LIFE_NS:
            return
        yield packet


def generations(count: int, *, http: bool) -> list[Generation]:
    """Return different generations."""
    order = random.Random(SEED)
    traffic = EveryApi(originals(CORPUS))

    def client(kind: type[Client], number: int, port: int) -> Client:
        own = random.Random(order.randrange(1 << 32))
        start = [order.randrange(1 << 32), order.randrange(1 << 32)]
        # Not the numbers that `Client` takes for connections which began before the capture.
        return kind(10 * number + 1, traffic, own, order.randrange(1_000_000), start, port=port)

    def clients() -> Iterator[Client]:
        for number in range(1 if http else SIDE_BY_SIDE):
            yield client(Client, number, 9092)
        for number in range(WEB_CLIENTS * http):
            yield client(WebClient, SIDE_BY_SIDE + number, 8080)

    return [Generation.of(list(clients())) for _ in range(count)]


def write(path: Path, packets: int, *, lost: bool = False, http: bool = False) -> None:
    """
    Write a number of packets.

    Args:
        path: The capture.
        packets: Before the loss.
        lost: Whether one packet in a hundred is missing.
        http: Whether 95 % of the packets are HTTP.
    """
    order: Any = np.random.default_rng(SEED)
    left = packets
    different = generations(DIFFERENT // (3 if http else 1), http=http)
    with path.open("wb") as file:
        file.write(FILE_HEADER)
        for number, generation in enumerate(cycle(different)):
            count = len(generation.times_ns)
            kept = np.arange(count) < left
            if lost:
                kept &= order.random(count) >= LOST_SHARE
            generation.copy(number, kept).tofile(file)
            left -= count
            if left <= 0:
                break
    print(f"{path}: {path.stat().st_size / 1e6:,.0f} MB", file=sys.stderr)


def main() -> None:
    """Parse the options and write the capture."""
    parser = argparse.ArgumentParser(prog="python -m tools.record.generations", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packets", type=int, default=250_000)
    parser.add_argument("--lost", action="store_true", help="one packet in a hundred is missing")
    parser.add_argument("--http", action="store_true", help="95 %% of the packets are HTTP")
    options = parser.parse_args()
    write(options.out, options.packets, lost=options.lost, http=options.http)


if __name__ == "__main__":
    main()
