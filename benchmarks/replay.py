"""Replay against a bare loop that writes the same bytes, its schedule, and itself."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import merge
from pathlib import Path

from benchmarks.broker import TOPIC, answering
from benchmarks.replay_clients import (
    IN_FLIGHT,
    MOCK_VERSION,
    PAUSE_NS,
    WRITE_RECORDS,
    WRITES,
    WRITTEN,
    SequentialClient,
    capture,
    clients,
    fetched,
    written,
)
from benchmarks.timing import KAFKASHARK, Row, call_us, process
from cluster.fields.batch_rewriter import match_records
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.protocol.records import (
    Record,
    iter_records,
    new_batch,
    parse_records,
)
from replay import Pace, Plan, Report, replay
from replay.compare.record_diff import compare_records
from replay.mapping.offset_map import PartitionOffsets
from replay.public import AS_FAST_AS_POSSIBLE
from tools.record.large import Packet
from tools.record.steady import Exchange, Traffic, save

REQUESTS = 20_000
CONNECTIONS = 10
MANY = 1000
RUNS = 3
BATCHES, BATCH_RECORDS = 20, 500
TAILS, TAILED, TAIL_PAUSE_NS = 20, 250, 1_000_000
"""Consumers at the end of a log, and the batches that each fetches, one by one."""

MAX_FETCH_BYTES = 1 << 20
TAIL_RATE = 5_000
PLAN_RATE = 30_000
"""A capture of 109 MB with 149,248 requests is planned within 5 s."""

MAX_LAG_MS = 5.0


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
            begun, own_begun = time.process_time(), time.thread_time()
            _replayed(plan, _port(embedded))
            rate = (TAILS + 1) * TAILED / (time.process_time() - begun)
            # The broker runs in threads of its own.
            own = (TAILS + 1) * TAILED / (time.thread_time() - own_begun)
    yield Row(
        f"plan of {TAILS} consumers at the end of a log, processor time",
        f"{PLAN_RATE:,}/s",
        planned / PLAN_RATE,
        f"{planned:,.0f} requests/s",
        1.0,
    )
    yield Row(
        f"replay of {TAILS} consumers at the end of a log, own processor time",
        f"{TAIL_RATE:,}/s",
        own / TAIL_RATE,
        f"{own:,.0f}/s",
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
