"""Probes of Fetch and ListOffsets."""

from __future__ import annotations

import asyncio
from typing import Any

from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged, require_response
from conform.probe.record_fixtures import (
    FETCH_PARTITION,
    PRODUCE_PARTITION,
    encode_batch,
    fetch,
    fetch_all,
    fetch_fields,
    fetched_values,
    produce,
)

_ERROR = f"{FETCH_PARTITION}.error_code"
_PER_BATCH, _BATCHES = 3, 2
_END = _PER_BATCH * _BATCHES
_WAIT_MS = 300


async def _topic_with_records(context: ProbeContext) -> Topic:
    """Return a topic with two batches of three records, at offsets 0 to 5."""
    topic = await context.fixtures.topic("fetched")
    if topic.name not in context.fixtures.filled_topics:
        for number in range(_BATCHES):
            values = [f"{number}-{n}".encode() for n in range(_PER_BATCH)]
            exchange = require_response(await produce(context.target, topic, encode_batch(*values)))
            if exchange.field(f"{PRODUCE_PARTITION}.error_code", -1) != 0:
                raise NotJudged("produce failed")
        context.fixtures.filled_topics.add(topic.name)
    return topic


@probe(
    "P27",
    "Fetch within a batch does not return the whole batch",
    source="LocalLog.read: batches are never cut at the front",
    asks="The batch that contains the offset, from its first record on.",
    example="a fetch from offset 1 begins with the batch at offset 3",
    writes=True,
)
async def probe_whole_batch(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch from each offset."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch", since=4):
        for offset in range(_END):
            exchange = await fetch(context.target, topic, offset, version)
            if not reporter.check_error(exchange, _ERROR, "NONE"):
                continue
            offsets = [number for number, _ in fetched_values(exchange)]
            reporter.check(
                offset in offsets, f"{exchange} from offset {offset}: returns {offsets}", exchange
            )


@probe(
    "P28",
    "Batch larger than all limits not returned",
    source="KIP-74; ReplicaManager.readFromLog, minOneMessage",
    asks="The first batch, whatever max_bytes and partition_max_bytes are, from Fetch v3 on.",
    example="a fetch of 1 byte returns no records, forever",
    writes=True,
)
async def probe_at_least_one_batch(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch with limits of one byte."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch", since=3):
        exchange = await fetch(
            context.target, topic, 0, version, max_bytes=1, partition_max_bytes=1
        )
        if reporter.check_error(exchange, _ERROR, "NONE"):
            count = len(fetched_values(exchange))
            reporter.check(count > 0, f"{exchange} of 1 byte: returns {count} records", exchange)


@probe(
    "P29",
    "Offset out of range not answered with OFFSET_OUT_OF_RANGE",
    source="UnifiedLog.read; KafkaApis.handleFetchRequest",
    asks="OFFSET_OUT_OF_RANGE (1) before the start and after the end; no records at the end.",
    example="a fetch from offset 1000 of 6 returns no records and no error",
    writes=True,
)
async def probe_out_of_range(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch from an offset after the end, and from the end."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch"):
        exchange = await fetch(context.target, topic, 1000, version)
        reporter.check_error(exchange, _ERROR, "OFFSET_OUT_OF_RANGE")
        exchange = await fetch(context.target, topic, _END, version, max_wait_ms=0)
        if reporter.check_error(exchange, _ERROR, "NONE"):
            records = fetched_values(exchange)
            reporter.check(not records, f"{exchange} from the end: returns {records}", exchange)
            high_watermark = exchange.field(f"{FETCH_PARTITION}.high_watermark")
            description = f"{exchange}: high watermark {high_watermark}, not {_END}"
            reporter.check(
                high_watermark == _END, description, exchange, f"{FETCH_PARTITION}.high_watermark"
            )


@probe(
    "P30",
    "Fetch does not wait for records, or waits after their arrival",
    source="DelayedFetch; FetchRequest.json (max_wait_ms, min_bytes)",
    asks="At the end of a partition, no records until max_wait_ms is over; a new record as soon "
    "as it is stored.",
    example="a fetch at the end is answered immediately, so that consumers spin",
    writes=True,
)
async def probe_waits(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch at the end; produce while a fetch waits."""
    topic = await context.fixtures.topic("waits")
    loop = asyncio.get_running_loop()
    version = context.target.newest_version("Fetch")
    start_s = loop.time()
    exchange = await fetch(context.target, topic, 0, max_wait_ms=_WAIT_MS)
    if not reporter.check_error(exchange, _ERROR, "NONE"):
        return
    waited_ms = (loop.time() - start_s) * 1000
    description = f"{exchange}: answered after {waited_ms:.0f} ms, though it may wait {_WAIT_MS}"
    # A broker's clock may be coarse; only an immediate response is wrong.
    reporter.check(waited_ms > _WAIT_MS / 2, description, exchange)
    connection = await context.target.open_connection(topic.leader_id)
    try:
        max_wait_ms = int(context.target.timeout_s * 800)
        waiting = connection.send_request(
            "Fetch", version, fetch_fields(topic, 0, max_wait_ms=max_wait_ms)
        )
        await connection.drain()
        await produce(context.target, topic, encode_batch(b"news"))
        await connection.receive_response(waiting)
        if reporter.check_error(waiting, _ERROR, "NONE"):
            values = [value for _, value in fetched_values(waiting)]
            reporter.check(
                values == [b"news"],
                f"{waiting}, waiting: returns {values}, not the record",
                waiting,
            )
    finally:
        connection.close()


@probe(
    "P31",
    "Fetch session not kept, or wrong session epoch accepted",
    source="KIP-227; FetchManager.newContext, FetchSession",
    asks="A session id, or 0, for epoch 0; incremental responses without unchanged partitions; "
    "INVALID_FETCH_SESSION_EPOCH (71) for a wrong epoch; FETCH_SESSION_ID_NOT_FOUND (70) for an "
    "unknown session.",
    example="epoch 9 is accepted where 1 was expected",
    writes=True,
)
async def probe_sessions(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Begin a session, continue it, send wrong epochs and ids, end it."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch", since=7):
        await _check_session(context, reporter, topic, version)


async def _check_session(
    context: ProbeContext, reporter: ProbeReporter, topic: Topic, version: int
) -> None:
    def session_fields(session: int, epoch: int) -> dict[str, Any]:
        fields = fetch_fields(topic, _END, max_wait_ms=0, session_id=session, session_epoch=epoch)
        return fields if epoch == 0 else {**fields, "topics": []}

    request, node = context.target.request, topic.leader_id
    first = await request("Fetch", session_fields(0, 0), version, node)
    if not reporter.check_error(first, "error_code", "NONE"):
        return
    session = first.field("session_id")
    if session == 0:
        reporter.count_unjudged("the broker opened no session, which is optional")
        return
    incremental = await request("Fetch", session_fields(session, 1), version, node)
    if reporter.check_error(incremental, "error_code", "NONE"):
        count = len(incremental.field("responses"))
        found = f"{incremental} in the session: {count} topics, though nothing changed"
        reporter.check(count == 0, found, incremental, "responses")
    wrong = await request("Fetch", session_fields(session, 9), version, node)
    reporter.check_error(wrong, "error_code", "INVALID_FETCH_SESSION_EPOCH")
    unknown = await request("Fetch", session_fields(session ^ 0x5A5A5A, 1), version, node)
    reporter.check_error(unknown, "error_code", "FETCH_SESSION_ID_NOT_FOUND")
    # A request with the final epoch (-1) ends the session, and is a full fetch itself.
    await request(
        "Fetch", fetch_fields(topic, _END, session_id=session, max_wait_ms=0), version, node
    )


@probe(
    "P32",
    "Future leader epoch accepted",
    source="KIP-320; Partition.checkCurrentLeaderEpoch",
    asks="UNKNOWN_LEADER_EPOCH (75) for a future epoch.",
    example="Fetch with current_leader_epoch 1000 returns records",
    writes=True,
)
async def probe_leader_epochs(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch and list offsets with a future leader epoch."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch", since=9):
        exchange = await fetch(context.target, topic, 0, version, current_leader_epoch=1000)
        reporter.check_error(exchange, _ERROR, "UNKNOWN_LEADER_EPOCH")
    partition = {"partition_index": 0, "current_leader_epoch": 1000, "timestamp": -1}
    fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
    for version in context.target.versions("ListOffsets", since=4):
        exchange = await context.target.request("ListOffsets", fields, version, topic.leader_id)
        reporter.check_error(exchange, "topics[0].partitions[0].error_code", "UNKNOWN_LEADER_EPOCH")


@probe(
    "P33",
    "ListOffsets returns a wrong offset",
    source="KIP-79, KIP-734; ListOffsetsRequest.java",
    asks="The end for -1, the start for -2, the offset of the newest record for -3 (v7+), -1 for "
    "a timestamp newer than all records.",
    example="ListOffsets of -1 returns the offset of the last record",
    writes=True,
)
async def probe_list_offsets(context: ProbeContext, reporter: ProbeReporter) -> None:
    """List the offsets of the special timestamps, and of a future timestamp."""
    topic = await _topic_with_records(context)
    expected = {-1: (1, _END), -2: (1, 0), -3: (7, _END - _PER_BATCH), 2**62: (1, -1)}
    for timestamp, (since, offset) in expected.items():
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
        for version in context.target.versions("ListOffsets", since=since):
            exchange = await context.target.request("ListOffsets", fields, version, topic.leader_id)
            if not reporter.check_error(exchange, "topics[0].partitions[0].error_code", "NONE"):
                continue
            path = "topics[0].partitions[0].offset"
            found = exchange.field(path)
            # All records of the last batch may have the newest timestamp.
            is_right = offset <= found < _END if timestamp == -3 else found == offset
            reporter.check(
                is_right,
                f"{exchange} for {timestamp}: offset {found}, not {offset}",
                exchange,
                path,
            )


@probe(
    "P34",
    "Fetched batches are damaged or have gaps",
    source="RecordBatch; KIP-98",
    asks="Batches with a valid CRC and consecutive offsets.",
    example="a fetched batch has a wrong CRC",
    writes=True,
)
async def probe_readable_batches(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch all records, at each version."""
    topic = await _topic_with_records(context)
    for version in context.target.versions("Fetch"):
        records, problems, exchange = await fetch_all(context.target, topic, version)
        if not reporter.check_error(exchange, _ERROR, "NONE"):
            continue
        reporter.check(
            not problems,
            f"{exchange}: {'; '.join(problems)}",
            exchange,
            f"{FETCH_PARTITION}.records",
        )
        offsets = [offset for offset, _ in records]
        description = f"{exchange}: offsets {offsets}, not 0 to {_END - 1}"
        reporter.check(
            offsets == list(range(_END)), description, exchange, f"{FETCH_PARTITION}.records"
        )
