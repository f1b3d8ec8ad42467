"""Replay against a bare loop that writes the same bytes, its schedule, and itself."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from pathlib import Path

from benchmarks.broker import TOPIC, answering
from benchmarks.timing import KAFKASHARK, Row, call_us, process
from cluster.fields.batch_rewriter import match_records
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.protocol.apis import KEYS, api
from dissector.protocol.headers import response_header_version
from dissector.protocol.records import (
    LegacyRecord,
    Record,
    iter_records,
    new_batch,
    parse_records,
)
from replay import Pace, Plan, Report, replay
from replay.compare.record_diff import compare_records
from replay.mapping.offset_map import PartitionOffsets
from replay.public import AS_FAST_AS_POSSIBLE
from tests.replay.support.scripted_broker import filled
from tools.record.large import Packet
from tools.record.steady import Client, Exchange, Traffic, save

REQUESTS = 20_000
CONNECTIONS = 10
MANY = 1000
RUNS = 3
BATCHES, BATCH_RECORDS = 20, 500
VERSION = 12
"""Last version of Produce with topic names."""

WRITES, WRITE_RECORDS, WRITTEN = 80, 5_000, 20
"""
Produced and fetched data: one batch of about 1 MB in each request and response, to this number of
    partitions: the embedded broker keeps 5 MB of each.
"""

MOCK_VERSION, FETCH_VERSION = 10, 11
"""Versions of Produce and Fetch that the embedded broker supports."""

TAILS, TAILED, TAIL_PAUSE_NS = 20, 250, 1_000_000
"""Consumers at the end of a log, and the batches that each fetches, one by one."""

MAX_FETCH_BYTES = 1 << 20
TAIL_RATE = 5_000
PLAN_RATE = 30_000
"""A capture of 109 MB with 149,248 requests is planned within 5 s."""

IN_FLIGHT = 5
PAUSE_NS = 100_000_000
MAX_LAG_MS = 5.0


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


def written(partition: int, offset: int, records: bytes, version: int = VERSION) -> Exchange:
    """Return the frames of a Produce request and its response, of the embedded broker or ours."""
    found = api(KEYS["Produce"])
    assert found is not None
    partitions = [{"index": partition, "records": records}]
    produce = {
        "acks": 1,
        "timeout_ms": 1000,
        "topic_data": [{"name": TOPIC, "partition_data": partitions}],
    }
    answer = {"index": partition, "base_offset": offset, "log_append_time_ms": -1}
    answers = [answer | ({"log_start_offset": 0} if version == MOCK_VERSION else {})]
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


def fetched(partition: int, offset: int, batch: bytes, max_bytes: int = 0) -> Exchange:
    """Return the frames of a Fetch request, by default for one batch, and of a response with it."""
    max_bytes = max_bytes or len(batch)
    found = api(KEYS["Fetch"])
    assert found is not None
    wanted = {
        "partition": partition,
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
        "topics": [{"topic": TOPIC, "partitions": [wanted]}],
    }
    end = WRITES // WRITTEN * WRITE_RECORDS
    given = {
        "partition_index": partition,
        "log_start_offset": 0,
        "high_watermark": end,
        "last_stable_offset": end,
        "aborted_transactions": [],
        "preferred_read_replica": -1,
        "records": offset.to_bytes(8, "big") + batch[8:],
    }
    said = {"responses": [{"topic": TOPIC, "partitions": [given]}]}
    number = offset.to_bytes(4, "big")
    begin = found.key.to_bytes(2, "big") + FETCH_VERSION.to_bytes(2, "big") + number
    request = filled(found.request.fields, FETCH_VERSION, fetch)
    response = filled(found.response.fields, FETCH_VERSION, said)
    return (
        begin + b"\0\x05bench" + found.request.codec(FETCH_VERSION).build(request),
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


async def bare(port: int, requests: int, connections: int) -> float:
    """Connect and write the frames of a capture, as many in flight; return the duration."""
    each = requests // connections
    ready = [
        [
            [len(frame).to_bytes(4, "big") + frame for frame, _ in burst]
            for burst in client.bursts(each)
        ]
        for client in clients(connections)
    ]

    async def play(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bursts: list[list[bytes]]
    ) -> None:
        for burst in bursts:
            for frame in burst:
                writer.write(frame)
            for _ in burst:
                size = int.from_bytes(await reader.readexactly(4), "big")
                await reader.readexactly(size)

    begun = time.perf_counter()
    open_ = [await asyncio.open_connection("127.0.0.1", port) for _ in ready]
    async with asyncio.TaskGroup() as tasks:
        for (reader, writer), bursts in zip(open_, ready, strict=True):
            tasks.create_task(play(reader, writer, bursts))
    seconds = time.perf_counter() - begun
    for _, writer in open_:
        writer.close()
    return seconds


def rows(folder: Path) -> Iterator[Row]:
    """Time replays of small Produce requests to a broker that answers immediately."""
    yield _rate(folder, REQUESTS, CONNECTIONS)
    yield _rate(folder, MANY * 2 * IN_FLIGHT, MANY)
    yield _consumed(folder)
    yield from _tailed(folder)
    yield from _fetched()
    yield _lag(folder)
    yield _memory(folder)


def _rate(folder: Path, requests: int, connections: int) -> Row:
    file = capture(folder / "produce.pcap", requests, connections)
    with answering(connections) as port, Plan.of(file) as plan:
        asyncio.run(bare(port, requests // 10, connections))
        # Alternating, because the speed of a shared machine varies.
        peers, owns = zip(
            *(
                (asyncio.run(bare(port, requests, connections)), _replayed(plan, port).elapsed_ns)
                for _ in range(RUNS)
            ),
            strict=True,
        )
    seconds, own = min(peers), min(owns) / 1e9
    return Row(
        f"replay as fast as answered, {connections:,} connections",
        "bare asyncio streams",
        seconds / own,
        f"{requests / own:,.0f}/s against {requests / seconds:,.0f}/s",
        0.5 if connections == CONNECTIONS else None,
    )


def _consumed(folder: Path) -> Row:
    """Time the replay of a producer and its consumer at the embedded broker."""
    records = [Record(offset_delta=at, value=b"%180d" % at) for at in range(WRITE_RECORDS)]
    batch = new_batch(records).to_bytes()
    places = [(at % WRITTEN, at // WRITTEN * WRITE_RECORDS) for at in range(WRITES)]
    wrote = [written(*each, batch, MOCK_VERSION) for each in places]
    connections = [wrote, [fetched(*each, batch) for each in places]]
    file = folder / "consume.pcap"
    save(file, _one_after_another(connections))
    peers, owns = [], []
    with Plan.of(file) as plan:
        for _ in range(RUNS):
            with EmbeddedBroker(1, {TOPIC: WRITTEN}) as embedded:
                peers.append(asyncio.run(_bare_in_turn(_port(embedded), connections)))
            with EmbeddedBroker(1, {TOPIC: WRITTEN}) as embedded:
                owns.append(_replayed(plan, _port(embedded)).elapsed_ns / 1e9)
    seconds, own, count = min(peers), min(owns), WRITES * WRITE_RECORDS
    return Row(
        "replay of a producer and its consumer, 1 MB an answer",
        "bare asyncio streams",
        seconds / own,
        f"{count / own:,.0f} records/s against {count / seconds:,.0f}/s",
    )


def _tailed(folder: Path) -> Iterator[Row]:
    """Time plan and replay of consumers that fetch each batch as soon as it is written."""
    batch = new_batch([Record(value=b"v" * 100)]).to_bytes()
    wrote = [written(0, at, batch, MOCK_VERSION) for at in range(TAILED)]
    read = [fetched(0, at, batch, MAX_FETCH_BYTES) for at in range(TAILED)]
    file, order = folder / "tail.pcap", random.Random(7)
    save(
        file,
        merge(
            *(
                SequentialClient(at, Traffic(), order, at * 1000, [0, 0]).packets(
                    read if at else wrote, TAIL_PAUSE_NS
                )
                for at in range(TAILS + 1)
            )
        ),
    )
    begun = time.process_time()
    with Plan.of(file) as plan:
        planned = (TAILS + 1) * TAILED / (time.process_time() - begun)
        with EmbeddedBroker(1, {TOPIC: 1}) as embedded:
            begun = time.process_time()
            _replayed(plan, _port(embedded))
            rate = (TAILS + 1) * TAILED / (time.process_time() - begun)
    yield Row(
        f"plan of {TAILS} consumers at the end of a log, processor time",
        f"{PLAN_RATE:,}/s",
        planned / PLAN_RATE,
        f"{planned:,.0f} requests/s",
        1.0,
    )
    yield Row(
        f"replay of {TAILS} consumers at the end of a log, processor time with the broker's",
        f"{TAIL_RATE:,}/s",
        rate / TAIL_RATE,
        f"{rate:,.0f}/s",
        1.0,
    )


def _one_after_another(connections: Sequence[Sequence[Exchange]]) -> Iterator[Packet]:
    """Yield the packets of consecutive connections."""
    now_ns, order = 0, random.Random(7)
    for number, exchanges in enumerate(connections):
        client = SequentialClient(number, Traffic(), order, now_ns, [0, 0])
        yield from client.packets(exchanges)
        now_ns = client.now_ns + PAUSE_NS


async def _bare_in_turn(port: int, connections: Sequence[Sequence[Exchange]]) -> float:
    """Write the frames of connections, one after another; return the duration."""
    begun = time.perf_counter()
    for exchanges in connections:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request, _ in exchanges:
            writer.write(len(request).to_bytes(4, "big") + request)
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
        writer.close()
    return time.perf_counter() - begun


def _port(embedded: EmbeddedBroker) -> int:
    return int(embedded.addresses[0].rpartition(":")[2])


def _fetched() -> Iterator[Row]:
    """Time the comparison of fetched records: batches as captured, and recompressed."""
    records = [Record(offset_delta=at, value=b"%180d" % at) for at in range(BATCH_RECORDS)]
    captured, other = (
        b"".join(
            new_batch(records, codec=codec, base_offset=at * BATCH_RECORDS).to_bytes()
            for at in range(BATCHES)
        )
        for codec in ("lz4", "gzip")
    )
    count = BATCHES * BATCH_RECORDS
    decoded = call_us(lambda: sum(1 for _ in iter_records(parse_records(captured)))) / 1e6
    for what, live, target in (("as captured", captured, 10.0), ("compressed anew", other, 10.0)):
        own = call_us(partial(_compare_records, captured, live)) / 1e6
        figures = f"{count / own:,.0f} records/s against {count / decoded:,.0f}"
        yield Row(
            f"replay: compare fetched records, {what}",
            "bare decode",
            decoded / own,
            figures,
            target,
        )


def _compare_records(captured: bytes, live: bytes) -> None:
    log = PartitionOffsets()
    for start, other, length in match_records(captured, live):
        log.learn_fetched(start, other, length)
    found = compare_records("records", TOPIC, captured, live, log)
    assert not found.differences
    assert found.same_extent


def _lag(folder: Path) -> Row:
    file = capture(folder / "paced.pcap", 2_500, CONNECTIONS, PAUSE_NS)
    with answering(CONNECTIONS) as port, Plan.of(file) as plan:
        row = _replayed(plan, port, Pace(1)).summary()
    return Row(
        "replay as captured: how late requests start",
        f"{MAX_LAG_MS:g} ms",
        MAX_LAG_MS / row["lag_p99_ms"],
        f"p99 {row['lag_p99_ms']:.2f} ms at {row['requests_per_s']:,.0f}/s",
        1.0,
    )


def _replayed(plan: Plan, port: int, pace: Pace = AS_FAST_AS_POSSIBLE) -> Report:
    report = replay(plan, f"127.0.0.1:{port}", pace=pace)
    assert report.passed, report
    assert report.sent == len(plan), report
    return report


def _memory(folder: Path) -> Row:
    less, more = (
        _peak(capture(folder / "produce.pcap", requests, CONNECTIONS))
        for requests in (REQUESTS // 2, 2 * REQUESTS)
    )
    return Row(
        "replay: peak memory, a capture four times as large",
        "the smaller one",
        less / more,
        f"{more / 1e6:,.0f} MB against {less / 1e6:,.0f} MB",
        1 / 1.2,
    )


def _peak(file: Path) -> int:
    with answering(CONNECTIONS) as port:
        to = ("--to", f"127.0.0.1:{port}", "--speed", "max")
        return process((*KAFKASHARK, "replay", str(file), *to), runs=1).peak_bytes
