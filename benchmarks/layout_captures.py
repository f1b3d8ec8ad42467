"""
Captures in the layouts of real traffic, a file each: connections, messages, segments, protocols.

Each has up to 250,000 packets; the result depends on nothing but this code and `captures/`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path

from benchmarks.replay_clients import SequentialClient, fetched, written
from dissector.protocol.records import Record, new_batch
from tools.record import generations, steady
from tools.record.steady import MSS, Client, Exchange, Traffic, save

PACKETS = 250_000
GRO_BYTES = 60_000
"""A segment as a network card merges them."""

SHORT_EXCHANGES = 5
"""Exchanges of a short connection."""

MESSAGES, MESSAGE_BATCHES, BATCH_RECORDS = 200, 50, 100
"""Fetch responses of about 1 MB each uncompressed: tshark decodes no newer Produce request."""

CLIENTS, TOPIC_PARTITIONS = 300, 20
PARTITIONS = 100
"""Partitions of each request, where it has many."""

CODECS = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
"""Compression of the clients whose batches all differ, in turn."""

PRODUCE_SHARE = 0.4


def large_fetches(path: Path, segment_bytes: int = MSS, codec: str = "none") -> None:
    """Write one consumer's Fetch responses of 1 MB each."""
    client = SequentialClient(1, Traffic(), random.Random(7), 0, [0, 0], mss=segment_bytes)
    save(path, client.packets(_large_messages(codec)))


def _large_messages(codec: str) -> Iterator[Exchange]:
    source = random.Random(7)
    values = (source.randbytes(90).hex().encode() for _ in range(BATCH_RECORDS))
    records = [Record(offset_delta=at, value=value) for at, value in enumerate(values)]
    for message in range(MESSAGES):
        begin = message * MESSAGE_BATCHES * BATCH_RECORDS
        offsets = range(begin, begin + MESSAGE_BATCHES * BATCH_RECORDS, BATCH_RECORDS)
        batches = (new_batch(records, codec=codec, base_offset=offset) for offset in offsets)
        yield fetched(0, begin, b"".join(each.to_bytes() for each in batches))


class DifferentBatches(Traffic):
    """Produce and Fetch of one client, with batches that all differ and follow each other."""

    def __init__(self, number: int, partitions: int = 1) -> None:
        """Remember the number of the client; each request has as many partitions."""
        super().__init__()
        self.codec = CODECS[number % len(CODECS)]
        self.partition = number % TOPIC_PARTITIONS
        self.partitions = partitions
        self.offset = 0

    def pick(self, order: random.Random) -> Exchange:
        """Return the next exchange of the client."""
        first, *others = (self._batch(order) for _ in range(self.partitions))
        made = written if order.random() < PRODUCE_SHARE else fetched
        return made(self.partition, self.offset, first, others=others)

    def _batch(self, order: random.Random) -> bytes:
        records = [
            Record(
                offset_delta=at,
                key=b"k%08x" % order.getrandbits(32) if order.random() < 0.5 else None,
                value=order.randbytes(order.randrange(15, 120)).hex().encode(),
            )
            for at in range(order.choice((1, 2, 5, 10, 20)))
        ]
        self.offset += len(records)
        return new_batch(records, codec=self.codec, base_offset=self.offset).to_bytes()


def different_batches(path: Path, packets: int = PACKETS, partitions: int = 1) -> None:
    """Write Produce and Fetch of long connections with batches that all differ."""
    order = random.Random(1)
    streams = []
    for number in range(CLIENTS):
        traffic, own = DifferentBatches(number, partitions), random.Random(order.randrange(1 << 32))
        sequence = [order.randrange(1 << 32) for _ in (0, 1)]
        client = Client(number, traffic, own, order.randrange(1_000_000_000), sequence)
        streams.append(client.packets())
    save(path, islice(merge(*streams, key=itemgetter(0)), packets))


LAYOUTS: Mapping[str, Callable[[Path], None]] = {
    "long connections": partial(steady.write, packets=PACKETS),
    "short connections": partial(steady.write, packets=PACKETS, exchanges=SHORT_EXCHANGES),
    "large fetches": large_fetches,
    "large fetches, segments of 60 KB": partial(large_fetches, segment_bytes=GRO_BYTES),
    "100 partitions": partial(different_batches, packets=PACKETS // 5, partitions=PARTITIONS),
    "95 % HTTP": partial(generations.write, packets=PACKETS, http=True),
    "batches that all differ": different_batches,
}
"""Name of a layout -> what writes its capture."""
