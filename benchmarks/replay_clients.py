"""Clients in the captures that the benchmarks of replay make."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path

from benchmarks.broker import TOPIC
from dissector.protocol.apis import KEYS, api
from dissector.protocol.headers import response_header_version
from dissector.protocol.records import LegacyRecord, new_batch
from tests.replay.support.scripted_broker import filled
from tools.record.large import Packet
from tools.record.steady import Client, Exchange, Traffic, save

VERSION = 12
"""Last version of Produce with topic names."""

WRITES, WRITE_RECORDS, WRITTEN = 80, 5_000, 20
"""
Produced and fetched data: one batch of about 1 MB in each request and response, to this number of
    partitions: the embedded broker keeps 5 MB of each.
"""

MOCK_VERSION, FETCH_VERSION = 10, 11
"""Versions of Produce and Fetch that the embedded broker supports."""

IN_FLIGHT = 5
PAUSE_NS = 100_000_000


class Producer(Client):
    """A client that sends small batches to its partition, with a number of them in flight."""

    def bursts(self, requests: int) -> Iterator[list[Exchange]]:
        """Yield the exchanges in groups of `IN_FLIGHT` requests."""
        made = [exchange(self.number, offset) for offset in range(requests)]
        for start in range(0, requests, IN_FLIGHT):
            yield made[start : start + IN_FLIGHT]

    def produce(self, requests: int, pause_ns: int) -> Iterator[Packet]:
        """Yield the packets of a number of requests."""
        yield from self._handshake()
        for burst in self.bursts(requests):
            for request, _ in burst:
                yield from self._send(0, request)
            for _, response in burst:
                assert response is not None
                yield from self._send(1, response)
            self.now_ns += pause_ns


def exchange(partition: int, offset: int) -> Exchange:
    """Return the frames of one Produce request with one record, and of its response."""
    record = LegacyRecord(0, 0, 0, 0, 1, 0, 1_700_000_000_000, b"key-%d" % offset, b"v" * 100)
    return written(partition, offset, new_batch([record]).to_bytes())


def written(
    partition: int,
    offset: int,
    records: bytes,
    version: int = VERSION,
    others: Sequence[bytes] = (),
) -> Exchange:
    """
    Return the frames of a Produce request and its response, of the embedded broker or ours.

    The partitions that follow get the records `others`.
    """
    found = api(KEYS["Produce"])
    assert found is not None
    given = dict(enumerate((records, *others), partition))
    batches = [{"index": number, "records": each} for number, each in given.items()]
    produce = {
        "acks": 1,
        "timeout_ms": 1000,
        "topic_data": [{"name": TOPIC, "partition_data": batches}],
    }
    answer = {"base_offset": offset, "log_append_time_ms": -1}
    if version == MOCK_VERSION:
        answer["log_start_offset"] = 0
    answers = [{"index": number, **answer} for number in given]
    produced = {"responses": [{"name": TOPIC, "partition_responses": answers}]}
    number = offset.to_bytes(4, "big")
    begin = found.key.to_bytes(2, "big") + version.to_bytes(2, "big") + number
    request = filled(found.request.fields, version, produce)
    response = filled(found.response.fields, version, produced)
    head = number + b"\0" * response_header_version(found.key, version)
    return (
        begin + b"\0\x05bench\0" + found.request.codec(version).build(request),
        head + found.response.codec(version).build(response),
    )


class SequentialClient(Client):
    """A client with one request in flight at a time."""

    def packets(self, exchanges: Iterable[Exchange], pause_ns: int = 0) -> Iterator[Packet]:
        """Yield the packets of requests and responses."""
        yield from self._handshake()
        for request, response in exchanges:
            assert response is not None
            yield from self._send(0, request)
            yield from self._send(1, response)
            self.now_ns += pause_ns


def fetched(
    partition: int, offset: int, batch: bytes, max_bytes: int = 0, others: Sequence[bytes] = ()
) -> Exchange:
    """
    Return the frames of a Fetch request, by default for one batch, and of a response with it.

    The partitions that follow have the batches `others`.
    """
    max_bytes = max_bytes or len(batch)
    batches = dict(enumerate((batch, *others), partition))
    found = api(KEYS["Fetch"])
    assert found is not None
    wanted = {
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "log_start_offset": -1,
        "partition_max_bytes": max_bytes,
    }
    fetch = {
        "replica_id": -1,
        "max_wait_ms": 1000,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [{"partition": at, **wanted} for at in batches]}],
    }
    end = WRITES // WRITTEN * WRITE_RECORDS
    given = {
        "log_start_offset": 0,
        "high_watermark": end,
        "last_stable_offset": end,
        "aborted_transactions": [],
        "preferred_read_replica": -1,
    }
    begin = offset.to_bytes(8, "big")
    answers = [
        {"partition_index": at, **given, "records": begin + each[8:]}
        for at, each in batches.items()
    ]
    said = {"responses": [{"topic": TOPIC, "partitions": answers}]}
    number = offset.to_bytes(4, "big")
    head = found.key.to_bytes(2, "big") + FETCH_VERSION.to_bytes(2, "big") + number
    request = filled(found.request.fields, FETCH_VERSION, fetch)
    response = filled(found.response.fields, FETCH_VERSION, said)
    return (
        head + b"\0\x05bench" + found.request.codec(FETCH_VERSION).build(request),
        number + found.response.codec(FETCH_VERSION).build(response),
    )


def clients(connections: int) -> list[Producer]:
    """Return the clients of a capture."""
    order = random.Random(7)
    return [
        Producer(at, Traffic(), order, order.randrange(PAUSE_NS), [0, 0])
        for at in range(connections)
    ]


def capture(path: Path, requests: int, connections: int, pause_ns: int = 1_000_000) -> Path:
    """Write a capture of a number of requests."""
    each = requests // connections
    save(path, merge(*(client.produce(each, pause_ns) for client in clients(connections))))
    return path
