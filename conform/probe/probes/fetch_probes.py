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


async def _topic_with_records(probed: ProbeContext) -> Topic:
    """Return a topic with two batches of three records, at offsets 0 to 5."""
    topic = await probed.fixtures.topic("fetched")
    if topic.name not in probed.fixtures.filled_topics:
        for number in range(_BATCHES):
            made = [f"{number}-{n}".encode() for n in range(_PER_BATCH)]
            said = require_response(await produce(probed.target, topic, encode_batch(*made)))
            if said.field(f"{PRODUCE_PARTITION}.error_code", -1) != 0:
                raise NotJudged("nothing can be produced")
        probed.fixtures.filled_topics.add(topic.name)
    return topic


@probe(
    "P27",
    "A fetch from within a batch brings the whole batch",
    source="LocalLog.read: batches are never cut at their front",
    asks="The batch that holds the offset, from its first record on.",
    example="a fetch from offset 1 begins with the batch at offset 3",
    writes=True,
)
async def whole_batch(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch from each offset."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch", since=4):
        for offset in range(_END):
            said = await fetch(probed.target, topic, offset, version)
            if not say.check_error(said, _ERROR, "NONE"):
                continue
            got = [number for number, _ in fetched_values(said)]
            say.check(offset in got, f"{said} from offset {offset}: brings {got}", said)


@probe(
    "P28",
    "A batch that is larger than all limits is given all the same",
    source="KIP-74; ReplicaManager.readFromLog, minOneMessage",
    asks="The first batch, whatever max_bytes and partition_max_bytes say, from Fetch v3 on.",
    example="a fetch of 1 byte is answered with no records, for ever",
    writes=True,
)
async def at_least_one_batch(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch with limits of one byte."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch", since=3):
        said = await fetch(probed.target, topic, 0, version, max_bytes=1, partition_max_bytes=1)
        if say.check_error(said, _ERROR, "NONE"):
            got = len(fetched_values(said))
            say.check(got > 0, f"{said} of 1 byte: brings {got} records", said)


@probe(
    "P29",
    "An offset that is out of range is told so",
    source="UnifiedLog.read; KafkaApis.handleFetchRequest",
    asks="OFFSET_OUT_OF_RANGE (1) before the start and behind the end; at the end, no records.",
    example="a fetch from offset 1000 of 6 is answered with no records and no error",
    writes=True,
)
async def out_of_range(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch from an offset behind the end, and from the end."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch"):
        said = await fetch(probed.target, topic, 1000, version)
        say.check_error(said, _ERROR, "OFFSET_OUT_OF_RANGE")
        said = await fetch(probed.target, topic, _END, version, max_wait_ms=0)
        if say.check_error(said, _ERROR, "NONE"):
            got = fetched_values(said)
            say.check(not got, f"{said} from the end: brings {got}", said)
            mark = said.field(f"{FETCH_PARTITION}.high_watermark")
            what = f"{said}: high watermark {mark}, not {_END}"
            say.check(mark == _END, what, said, f"{FETCH_PARTITION}.high_watermark")


@probe(
    "P30",
    "A fetch waits until there is enough, but not longer than it may",
    source="DelayedFetch; FetchRequest.json (max_wait_ms, min_bytes)",
    asks="At the end of a partition, nothing for max_wait_ms; the record as soon as there is one.",
    example="a fetch at the end is answered at once, so that consumers spin",
    writes=True,
)
async def waits(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch at the end; produce while a fetch waits."""
    topic = await probed.fixtures.topic("waits")
    loop = asyncio.get_running_loop()
    version = probed.target.newest_version("Fetch")
    begun = loop.time()
    said = await fetch(probed.target, topic, 0, max_wait_ms=_WAIT_MS)
    if not say.check_error(said, _ERROR, "NONE"):
        return
    waited_ms = (loop.time() - begun) * 1000
    what = f"{said}: answered after {waited_ms:.0f} ms, where it may wait {_WAIT_MS}"
    # A broker's clock may be coarse; only an immediate response is wrong.
    say.check(waited_ms > _WAIT_MS / 2, what, said)
    line = await probed.target.open_connection(topic.leader_id)
    try:
        patience_ms = int(probed.target.timeout_s * 800)
        asked = line.send_request("Fetch", version, fetch_fields(topic, 0, max_wait_ms=patience_ms))
        await line.drain()
        await produce(probed.target, topic, encode_batch(b"news"))
        await line.receive_response(asked)
        if say.check_error(asked, _ERROR, "NONE"):
            got = [value for _, value in fetched_values(asked)]
            say.check(got == [b"news"], f"{asked}, waiting: brings {got}, not the record", asked)
    finally:
        line.close()


@probe(
    "P31",
    "Fetch sessions are kept by their rules",
    source="KIP-227; FetchManager.newContext, FetchSession",
    asks="A session id, or 0, for epoch 0; incremental answers leave out what did not change; "
    "INVALID_FETCH_SESSION_EPOCH (71) for a wrong epoch; FETCH_SESSION_ID_NOT_FOUND (70) for an "
    "unknown session.",
    example="epoch 9 is answered where 1 was next",
    writes=True,
)
async def sessions(probed: ProbeContext, say: ProbeReporter) -> None:
    """Begin a session, continue it, violate its rules, end it."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch", since=7):
        await _check_session(probed, say, topic, version)


async def _check_session(
    probed: ProbeContext, say: ProbeReporter, topic: Topic, version: int
) -> None:
    def asked(session: int, epoch: int) -> dict[str, Any]:
        fields = fetch_fields(topic, _END, max_wait_ms=0, session_id=session, session_epoch=epoch)
        return fields if epoch == 0 else {**fields, "topics": []}

    ask, node = probed.target.request, topic.leader_id
    first = await ask("Fetch", asked(0, 0), version, node)
    if not say.check_error(first, "error_code", "NONE"):
        return
    session = first.field("session_id")
    if session == 0:
        say.unjudged("the broker keeps no session, which it need not")
        return
    again = await ask("Fetch", asked(session, 1), version, node)
    if say.check_error(again, "error_code", "NONE"):
        told = len(again.field("responses"))
        what = f"{again} in the session: {told} topics, where nothing changed"
        say.check(told == 0, what, again, "responses")
    wrong = await ask("Fetch", asked(session, 9), version, node)
    say.check_error(wrong, "error_code", "INVALID_FETCH_SESSION_EPOCH")
    unknown = await ask("Fetch", asked(session ^ 0x5A5A5A, 1), version, node)
    say.check_error(unknown, "error_code", "FETCH_SESSION_ID_NOT_FOUND")
    # A request with the final epoch (-1) ends the session, and is a full fetch itself.
    await ask("Fetch", fetch_fields(topic, _END, session_id=session, max_wait_ms=0), version, node)


@probe(
    "P32",
    "Leader epochs are checked",
    source="KIP-320; Partition.checkCurrentLeaderEpoch",
    asks="UNKNOWN_LEADER_EPOCH (75) for an epoch that is still to come.",
    example="Fetch with current_leader_epoch 1000 brings records",
    writes=True,
)
async def leader_epochs(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch and list offsets with a leader epoch of the future."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch", since=9):
        said = await fetch(probed.target, topic, 0, version, current_leader_epoch=1000)
        say.check_error(said, _ERROR, "UNKNOWN_LEADER_EPOCH")
    partition = {"partition_index": 0, "current_leader_epoch": 1000, "timestamp": -1}
    fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
    for version in probed.target.versions("ListOffsets", since=4):
        said = await probed.target.request("ListOffsets", fields, version, topic.leader_id)
        say.check_error(said, "topics[0].partitions[0].error_code", "UNKNOWN_LEADER_EPOCH")


@probe(
    "P33",
    "Offsets are listed by time, at the end and at the start",
    source="KIP-79, KIP-734; ListOffsetsRequest.java",
    asks="The end for -1, the start for -2, the offset of the newest record for -3 (v7+), -1 where "
    "nothing is as new as the time.",
    example="ListOffsets of -1 is answered with the offset of the last record",
    writes=True,
)
async def list_offsets(probed: ProbeContext, say: ProbeReporter) -> None:
    """List the offsets of the special timestamps, and of a time in the future."""
    topic = await _topic_with_records(probed)
    wanted = {-1: (1, _END), -2: (1, 0), -3: (7, _END - _PER_BATCH), 2**62: (1, -1)}
    for when, (since, offset) in wanted.items():
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": when}
        fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
        for version in probed.target.versions("ListOffsets", since=since):
            said = await probed.target.request("ListOffsets", fields, version, topic.leader_id)
            if not say.check_error(said, "topics[0].partitions[0].error_code", "NONE"):
                continue
            path = "topics[0].partitions[0].offset"
            found = said.field(path)
            # All records of the last batch may have the newest timestamp.
            fine = offset <= found < _END if when == -3 else found == offset
            say.check(fine, f"{said} for {when}: offset {found}, not {offset}", said, path)


@probe(
    "P34",
    "What is fetched can be read",
    source="RecordBatch; KIP-98",
    asks="Batches with a fitting CRC, whose offsets go on from one to the next.",
    example="a fetched batch has a wrong CRC",
    writes=True,
)
async def readable_batches(probed: ProbeContext, say: ProbeReporter) -> None:
    """Fetch all records, at each version."""
    topic = await _topic_with_records(probed)
    for version in probed.target.versions("Fetch"):
        found, problems, said = await fetch_all(probed.target, topic, version)
        if not say.check_error(said, _ERROR, "NONE"):
            continue
        say.check(
            not problems, f"{said}: {'; '.join(problems)}", said, f"{FETCH_PARTITION}.records"
        )
        offsets = [offset for offset, _ in found]
        what = f"{said}: offsets {offsets}, not 0 to {_END - 1}"
        say.check(offsets == list(range(_END)), what, said, f"{FETCH_PARTITION}.records")
