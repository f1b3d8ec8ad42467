"""Probes of Produce, and of the records stored by it."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from conform.probe.probe_fixtures import NO_ID, Topic
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import CLIENT_SOFTWARE, NotJudged, Target, require_response
from conform.probe.record_fixtures import (
    FETCH_PARTITION,
    PRODUCE_PARTITION,
    encode_batch,
    encode_one_record,
    fetch,
    fetch_all,
    fetched_values,
    produce,
    produce_fields,
)
from conform.registry.rank import Severity
from dissector.protocol.records import layout
from dissector.protocol.records.batch import with_crc

_ERROR = f"{PRODUCE_PARTITION}.error_code"
_OFFSET = f"{PRODUCE_PARTITION}.base_offset"
_ZSTD_PRODUCED, _ZSTD_FETCHED = 7, 10
"""The first versions that may carry zstd (KIP-110)."""


@probe(
    "P18",
    "Produce with acks = 0 answered, or its record not stored",
    source="KafkaApis.handleProduceRequest",
    asks="No response; the next request on the connection is answered; the record can be fetched.",
    example="Produce with acks = 0 is answered",
    writes=True,
)
async def probe_acks_zero(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce with acks = 0, then send another request on the connection."""
    topic = await context.fixtures.topic("acks")
    first = await produce(context.target, topic, encode_batch(b"acknowledged"))
    if not reporter.check_error(first, _ERROR, "NONE"):
        return
    connection = await context.target.open_connection(topic.leader_id)
    try:
        connection.send_request(
            "Produce",
            context.target.newest_version("Produce"),
            produce_fields(topic, encode_batch(b"not"), 0),
        )
        exchange = await connection.request(
            "ApiVersions", context.target.newest_version("ApiVersions"), CLIENT_SOFTWARE
        )
    finally:
        connection.close()
    if not reporter.check_readable(exchange) or exchange.response is None:
        return
    returned_id = exchange.response.correlation_id
    message = f"after it, {exchange} sent as {exchange.correlation_id} came back as {returned_id}"
    if reporter.check(returned_id == exchange.correlation_id, message, exchange):
        fetched = await fetch(context.target, topic, first.field(_OFFSET) + 1)
        stored = [value for _, value in fetched_values(fetched)]
        reporter.check(stored == [b"not"], f"{fetched}: {stored}, not the record", fetched)


@probe(
    "P19",
    "Error of Produce with acks = 0 does not close the connection",
    source="KafkaApis.handleProduceRequest: closing connection due to error",
    asks="The connection is closed: the client has no other way to see the error. A broker that "
    "creates the topic has no error to report (P10 judges that).",
    example="a record for an unknown topic is silently dropped",
    writes=True,
)
async def probe_acks_zero_error(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce with acks = 0 to a topic that does not exist."""
    topic = await context.fixtures.topic("acks")
    unknown_topic = Topic(context.fixtures.topic_name("nowhere"), topic.topic_id, topic.leader_id)
    version = context.target.newest_version("Produce", until=12)
    connection = await context.target.open_connection(topic.leader_id)
    try:
        exchange = connection.send_request(
            "Produce", version, produce_fields(unknown_topic, encode_batch(b"lost"), 0)
        )
        received = await connection.receive_response(
            replace(exchange), context.target.close_timeout_s
        )
    finally:
        connection.close()
    is_closed = received.response is None and not received.is_timeout
    if not is_closed and await _topic_exists(context.target, unknown_topic.name):
        raise NotJudged("the broker creates an unknown topic on Produce: no error (P10)")
    still_open = f"the connection is still open after {context.target.close_timeout_s:g} s"
    found = "it is answered" if received.response is not None else still_open
    reporter.check(is_closed, f"{exchange} with acks = 0 to an unknown topic: {found}", exchange)


async def _topic_exists(target: Target, name: str) -> bool:
    """Return whether a topic exists that was never created explicitly."""
    fields = {
        "topics": [{"name": name, "topic_id": NO_ID}],
        "allow_auto_topic_creation": False,
    }
    exchange = await target.request("Metadata", fields, target.newest_version("Metadata", since=4))
    return bool(exchange.field("topics[0].error_code", -1) == 0)


@probe(
    "P20",
    "Invalid acks accepted",
    source="ReplicaManager.isValidRequiredAcks",
    asks="INVALID_REQUIRED_ACKS (21), and nothing is stored.",
    example="acks = 2 is answered with an offset",
    writes=True,
)
async def probe_wrong_acks(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce with acks = 2 and acks = -2."""
    topic = await context.fixtures.topic("acks")
    for acks in (2, -2):
        exchange = await produce(context.target, topic, encode_batch(b"acks"), acks=acks)
        reporter.check_error(exchange, _ERROR, "INVALID_REQUIRED_ACKS")


async def _init_producer(target: Target) -> dict[str, Any]:
    """Return a producer id and its epoch."""
    fields = {
        "transactional_id": None,
        "transaction_timeout_ms": 10_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    exchange = await target.request("InitProducerId", fields)
    if require_response(exchange).field("error_code", -1) != 0:
        raise NotJudged("the broker assigns no producer id")
    return {
        "producer_id": exchange.field("producer_id"),
        "producer_epoch": exchange.field("producer_epoch"),
    }


@probe(
    "P21",
    "Resent batch of an idempotent producer stored again",
    source="KIP-98; ProducerStateEntry.findDuplicateBatch",
    asks="The offset of the first attempt, or DUPLICATE_SEQUENCE_NUMBER.",
    example="the retry is stored at another offset",
    writes=True,
)
async def probe_retry(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send five batches, then each of them again."""
    topic = await context.fixtures.topic("idempotent")
    producer = await _init_producer(context.target)
    sent = [encode_batch(f"{n}".encode(), base_sequence=n, **producer) for n in range(5)]
    offsets = []
    for data in sent:
        exchange = await produce(context.target, topic, data)
        if not reporter.check_error(exchange, _ERROR, "NONE"):
            return
        offsets.append(exchange.field(_OFFSET))
    for data, offset in zip(sent, offsets, strict=True):
        resent = await produce(context.target, topic, data)
        if reporter.check_error(
            resent, _ERROR, "NONE", "DUPLICATE_SEQUENCE_NUMBER"
        ) and not resent.field(_ERROR):
            resent_offset = resent.field(_OFFSET)
            message = f"{resent}: the batch at {offset} is at {resent_offset} when it is sent again"
            reporter.check(resent_offset == offset, message, resent, _OFFSET)
    records, _, exchange = await fetch_all(context.target, topic)
    stored = [value for _, value in records]
    reporter.check(
        stored == [b"0", b"1", b"2", b"3", b"4"], f"{exchange}: returns {stored}", exchange
    )


@probe(
    "P22",
    "Gap in the sequence of an idempotent producer accepted",
    source="ProducerAppendInfo.checkSequence",
    asks="OUT_OF_ORDER_SEQUENCE_NUMBER (45), or UNKNOWN_PRODUCER_ID where there was no earlier "
    "batch; INVALID_PRODUCER_EPOCH (47) for an earlier epoch.",
    example="sequence 7 is stored after sequence 0",
    writes=True,
)
async def probe_sequence_gap(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Skip sequences, go back an epoch."""
    topic = await context.fixtures.topic("idempotent")
    producer = await _init_producer(context.target)
    first = encode_batch(b"first", base_sequence=0, **producer)
    if not reporter.check_error(await produce(context.target, topic, first), _ERROR, "NONE"):
        return
    later = encode_batch(b"later", base_sequence=7, **producer)
    exchange = await produce(context.target, topic, later)
    reporter.check_error(exchange, _ERROR, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    newer = {**producer, "producer_epoch": producer["producer_epoch"] + 1}
    exchange = await produce(
        context.target, topic, encode_batch(b"newer", base_sequence=0, **newer)
    )
    if reporter.check_error(exchange, _ERROR, "NONE"):
        old = encode_batch(b"old", base_sequence=1, **producer)
        exchange = await produce(context.target, topic, old)
        reporter.check_error(exchange, _ERROR, "INVALID_PRODUCER_EPOCH")


@probe(
    "P23",
    "zstd accepted or returned in a version that does not support it",
    source="KIP-110; ProduceRequest.validateRecords, KafkaApis.handleFetchRequest",
    asks="UNSUPPORTED_COMPRESSION_TYPE (76) from Produce below v7, and from Fetch below v10 where "
    "the topic's compression.type is zstd.",
    example="Fetch v4 returns batches that its clients can't read",
    writes=True,
)
async def probe_zstd(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce and fetch zstd in old versions."""
    topic = await context.fixtures.topic("zstd", {"compression.type": "zstd"})
    data = encode_batch(b"z" * 100, codec="zstd")
    older = context.target.versions("Produce", 3, _ZSTD_PRODUCED - 1)
    for version in older:
        exchange = await produce(context.target, topic, data, version)
        reporter.check_error(exchange, _ERROR, "UNSUPPORTED_COMPRESSION_TYPE")
    newer = context.target.newest_version("Produce", since=_ZSTD_PRODUCED)
    if not reporter.check_error(await produce(context.target, topic, data, newer), _ERROR, "NONE"):
        return
    for version in context.target.versions("Fetch", until=_ZSTD_FETCHED - 1):
        exchange = await fetch(context.target, topic, 0, version)
        # Kafka rejected this until 3.9; 4.x returns batches that such a client can't read.
        expected = "UNSUPPORTED_COMPRESSION_TYPE"
        reporter.check_error(
            exchange, f"{FETCH_PARTITION}.error_code", expected, severity=Severity.NOTE
        )


@probe(
    "B21",
    "Record without a key accepted into a compacted topic",
    source="LogValidator.validateKey; KIP-467",
    asks="INVALID_RECORD (87), from Produce v8 on with the index of the record.",
    example="the record is stored, and never cleaned",
    writes=True,
)
async def probe_keyless(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce a record without a key."""
    topic = await context.fixtures.topic("compacted", {"cleanup.policy": "compact"})
    with_key = await produce(context.target, topic, encode_batch(b"kept", key=b"k"))
    if not reporter.check_error(with_key, _ERROR, "NONE"):
        return
    for version in context.target.versions("Produce", since=3):
        exchange = await produce(context.target, topic, encode_batch(b"lost", key=None), version)
        if reporter.check_error(exchange, _ERROR, "INVALID_RECORD") and version >= 8:
            indexes = [
                each.batch_index for each in exchange.field(f"{PRODUCE_PARTITION}.record_errors")
            ]
            found = f"{exchange}: names records {indexes}, not the first"
            reporter.check(indexes == [0], found, exchange, f"{PRODUCE_PARTITION}.record_errors")


@probe(
    "P24",
    "Damaged batch stored",
    source="LogValidator, DefaultRecordBatch.ensureValid, ProduceRequest.validateRecords",
    asks="An error, and no offset: CORRUPT_MESSAGE where the CRC does not match, INVALID_RECORD "
    "for several batches, an old format, or a control batch.",
    example="a batch with a wrong CRC is answered with an offset",
    writes=True,
    may_kill=True,
)
async def probe_invalid_batches(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce invalid batches."""
    topic = await context.fixtures.topic("damaged")
    exchange = await produce(context.target, topic, encode_batch(b"sound"))
    if not reporter.check_error(exchange, _ERROR, "NONE"):
        return
    first_offset = exchange.field(_OFFSET)
    for defect, data, errors in _invalid_batches():
        exchange = await produce(context.target, topic, data)
        if exchange.response is None:
            # A broker that closes the connection has not accepted the batch either.
            reporter.check(
                not exchange.is_timeout, f"{exchange} with {defect}: {exchange.failure}", exchange
            )
        else:
            reporter.check_error(exchange, _ERROR, *errors)
    stored, _, exchange = await fetch_all(context.target, topic)
    if reporter.check_error(exchange, f"{FETCH_PARTITION}.error_code", "NONE"):
        is_right = [offset for offset, _ in stored] == [first_offset]
        reporter.check(is_right, f"{exchange}: returns offsets and values {stored}", exchange)


def _invalid_batches() -> list[tuple[str, bytes, tuple[str, ...]]]:
    """Return invalid batches: the defect, the records, and the expected errors."""
    sound = encode_batch(b"sound")
    flipped = sound[:-1] + bytes((sound[-1] ^ 1,))
    control = _with_header_field(sound, layout.BATCH_CRC_FROM, ">h", layout.CONTROL)
    miscounted = _with_header_field(sound, layout.BATCH.size - 4, ">i", 5)
    invalid = ("INVALID_RECORD", "CORRUPT_MESSAGE")
    return [
        ("a wrong CRC", flipped, ("CORRUPT_MESSAGE",)),
        ("two batches", sound + encode_batch(b"second"), ("INVALID_RECORD",)),
        ("a message set of magic 1", encode_one_record(b"old", magic=1), ("INVALID_RECORD",)),
        ("a control batch", control, ("INVALID_RECORD",)),
        ("a count of 5 for one record", miscounted, invalid),
        ("no records", b"", ("INVALID_RECORD", "CORRUPT_MESSAGE", "INVALID_REQUEST")),
    ]


def _with_header_field(data: bytes, at: int, form: str, value: int) -> bytes:
    """Return a batch with a header field changed and the CRC recomputed."""
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return with_crc(bytes(changed))


@probe(
    "P25",
    "Batch above max.message.bytes accepted",
    source="UnifiedLog.analyzeAndValidateRecords; TopicConfig max.message.bytes",
    asks="MESSAGE_TOO_LARGE (10).",
    example="a topic that allows 2,000 bytes accepts 5,000",
    writes=True,
)
async def probe_too_large(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce a batch above the limit of its topic."""
    topic = await context.fixtures.topic("small", {"max.message.bytes": "2000"})
    exchange = await produce(context.target, topic, encode_batch(b"x" * 5000))
    reporter.check_error(exchange, _ERROR, "MESSAGE_TOO_LARGE")


@probe(
    "P26",
    "Fetched offsets or values differ from those produced",
    source="LogValidator.assignOffsets; ProduceResponse.json",
    asks="base_offset is the previous log end; fetched offsets and values are those that were "
    "produced, with each codec.",
    example="the second batch of three records begins at offset 1",
    writes=True,
)
async def probe_round_trip(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Produce at each version, with each codec in turn; fetch all records at each version."""
    topic = await context.fixtures.topic("codecs", {"compression.type": "producer"})
    expected: list[tuple[int, bytes | None]] = []
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for number, version in enumerate(context.target.versions("Produce", since=3)):
        supported = codecs if version >= _ZSTD_PRODUCED else codecs[:4]
        sent = [f"{version}-{n}".encode() for n in range(3)]
        data = encode_batch(*sent, codec=supported[number % len(supported)])
        exchange = await produce(context.target, topic, data, version)
        if not reporter.check_error(exchange, _ERROR, "NONE"):
            return
        offset, expected_offset = exchange.field(_OFFSET), len(expected)
        reporter.check(
            offset == expected_offset,
            f"{exchange}: offset {offset}, not {expected_offset}",
            exchange,
            _OFFSET,
        )
        expected += [(expected_offset + n, value) for n, value in enumerate(sent)]
    for version in context.target.versions("Fetch", since=_ZSTD_FETCHED):
        stored, _, exchange = await fetch_all(context.target, topic, version)
        if reporter.check_error(exchange, f"{FETCH_PARTITION}.error_code", "NONE"):
            reporter.check(stored == expected, f"{exchange}: {stored}, not {expected}", exchange)
