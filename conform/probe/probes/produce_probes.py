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
    "Produce with acks = 0 is not answered, and stored all the same",
    source="KafkaApis.handleProduceRequest",
    asks="No answer; the next request on the connection is answered; the record can be fetched.",
    example="Produce with acks = 0 is answered",
    writes=True,
)
async def acks_zero(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce with acks = 0, then send another request on the connection."""
    topic = await probed.fixtures.topic("acks")
    first = await produce(probed.target, topic, encode_batch(b"acknowledged"))
    if not say.check_error(first, _ERROR, "NONE"):
        return
    line = await probed.target.open_connection(topic.leader_id)
    try:
        line.send_request(
            "Produce",
            probed.target.newest_version("Produce"),
            produce_fields(topic, encode_batch(b"not"), 0),
        )
        said = await line.request(
            "ApiVersions", probed.target.newest_version("ApiVersions"), CLIENT_SOFTWARE
        )
    finally:
        line.close()
    if not say.check_readable(said) or said.response is None:
        return
    found = said.response.correlation_id
    what = f"behind it, {said} sent as {said.correlation_id} came back as {found}"
    if say.check(found == said.correlation_id, what, said):
        fetched = await fetch(probed.target, topic, first.field(_OFFSET) + 1)
        stored = [value for _, value in fetched_values(fetched)]
        say.check(stored == [b"not"], f"{fetched}: {stored}, not the record", fetched)


@probe(
    "P19",
    "An error of Produce with acks = 0 closes the connection",
    source="KafkaApis.handleProduceRequest: closing connection due to error",
    asks="The connection is closed: nothing else can show it to the client. A broker that makes "
    "the topic has no error to report (P10 judges that).",
    example="a record for an unknown topic is dropped in silence",
    writes=True,
)
async def acks_zero_error(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce with acks = 0 to a topic that does not exist."""
    topic = await probed.fixtures.topic("acks")
    lost = Topic(probed.fixtures.topic_name("nowhere"), topic.topic_id, topic.leader_id)
    version = probed.target.newest_version("Produce", until=12)
    line = await probed.target.open_connection(topic.leader_id)
    try:
        said = line.send_request("Produce", version, produce_fields(lost, encode_batch(b"lost"), 0))
        heard = await line.receive_response(replace(said), probed.target.close_timeout_s)
    finally:
        line.close()
    closed = heard.response is None and not heard.is_timeout
    if not closed and await _topic_exists(probed.target, lost.name):
        raise NotJudged("the broker makes an unknown topic on Produce: there is no error (P10)")
    patience = f"the connection is still open after {probed.target.close_timeout_s:g} s"
    what = "it is answered" if heard.response is not None else patience
    say.check(closed, f"{said} with acks = 0 to an unknown topic: {what}", said)


async def _topic_exists(target: Target, name: str) -> bool:
    """Return whether a topic exists that was never created explicitly."""
    fields = {
        "topics": [{"name": name, "topic_id": NO_ID}],
        "allow_auto_topic_creation": False,
    }
    said = await target.request("Metadata", fields, target.newest_version("Metadata", since=4))
    return bool(said.field("topics[0].error_code", -1) == 0)


@probe(
    "P20",
    "Other acks than -1, 0 and 1 are refused",
    source="ReplicaManager.isValidRequiredAcks",
    asks="INVALID_REQUIRED_ACKS (21), and nothing is stored.",
    example="acks = 2 is answered with an offset",
    writes=True,
)
async def wrong_acks(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce with acks = 2 and acks = -2."""
    topic = await probed.fixtures.topic("acks")
    for acks in (2, -2):
        said = await produce(probed.target, topic, encode_batch(b"acks"), acks=acks)
        say.check_error(said, _ERROR, "INVALID_REQUIRED_ACKS")


async def _init_producer(target: Target) -> dict[str, Any]:
    """Return a producer id and its epoch."""
    fields = {
        "transactional_id": None,
        "transaction_timeout_ms": 10_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    said = await target.request("InitProducerId", fields)
    if require_response(said).field("error_code", -1) != 0:
        raise NotJudged("the broker gives no producer id")
    return {
        "producer_id": said.field("producer_id"),
        "producer_epoch": said.field("producer_epoch"),
    }


@probe(
    "P21",
    "A batch of an idempotent producer that is sent again is stored once",
    source="KIP-98; ProducerStateEntry.findDuplicateBatch",
    asks="The offset of the first time, or DUPLICATE_SEQUENCE_NUMBER.",
    example="the retry is stored at an offset of its own",
    writes=True,
)
async def retry(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send five batches, then each of them again."""
    topic = await probed.fixtures.topic("idempotent")
    producer = await _init_producer(probed.target)
    sent = [encode_batch(f"{n}".encode(), base_sequence=n, **producer) for n in range(5)]
    offsets = []
    for data in sent:
        said = await produce(probed.target, topic, data)
        if not say.check_error(said, _ERROR, "NONE"):
            return
        offsets.append(said.field(_OFFSET))
    for data, offset in zip(sent, offsets, strict=True):
        again = await produce(probed.target, topic, data)
        if say.check_error(again, _ERROR, "NONE", "DUPLICATE_SEQUENCE_NUMBER") and not again.field(
            _ERROR
        ):
            found = again.field(_OFFSET)
            what = f"{again}: the batch at {offset} is at {found} when it is sent again"
            say.check(found == offset, what, again, _OFFSET)
    found, _, said = await fetch_all(probed.target, topic)
    stored = [value for _, value in found]
    say.check(stored == [b"0", b"1", b"2", b"3", b"4"], f"{said}: there are {stored}", said)


@probe(
    "P22",
    "A gap in the sequence of an idempotent producer is refused",
    source="ProducerAppendInfo.checkSequence",
    asks="OUT_OF_ORDER_SEQUENCE_NUMBER (45), or UNKNOWN_PRODUCER_ID where none came before; an "
    "epoch that is over is INVALID_PRODUCER_EPOCH (47).",
    example="sequence 7 is stored behind sequence 0",
    writes=True,
)
async def sequence_gap(probed: ProbeContext, say: ProbeReporter) -> None:
    """Skip sequences, go back an epoch."""
    topic = await probed.fixtures.topic("idempotent")
    producer = await _init_producer(probed.target)
    first = encode_batch(b"first", base_sequence=0, **producer)
    if not say.check_error(await produce(probed.target, topic, first), _ERROR, "NONE"):
        return
    later = encode_batch(b"later", base_sequence=7, **producer)
    said = await produce(probed.target, topic, later)
    say.check_error(said, _ERROR, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    newer = {**producer, "producer_epoch": producer["producer_epoch"] + 1}
    said = await produce(probed.target, topic, encode_batch(b"newer", base_sequence=0, **newer))
    if say.check_error(said, _ERROR, "NONE"):
        old = encode_batch(b"old", base_sequence=1, **producer)
        said = await produce(probed.target, topic, old)
        say.check_error(said, _ERROR, "INVALID_PRODUCER_EPOCH")


@probe(
    "P23",
    "Versions that can't carry zstd don't",
    source="KIP-110; ProduceRequest.validateRecords, KafkaApis.handleFetchRequest",
    asks="UNSUPPORTED_COMPRESSION_TYPE (76) from Produce below v7, and from Fetch below v10 where "
    "the topic's compression.type is zstd.",
    example="Fetch v4 brings batches that its clients can't read",
    writes=True,
)
async def zstd(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce and fetch zstd in old versions."""
    topic = await probed.fixtures.topic("zstd", {"compression.type": "zstd"})
    data = encode_batch(b"z" * 100, codec="zstd")
    older = probed.target.versions("Produce", 3, _ZSTD_PRODUCED - 1)
    for version in older:
        said = await produce(probed.target, topic, data, version)
        say.check_error(said, _ERROR, "UNSUPPORTED_COMPRESSION_TYPE")
    newer = probed.target.newest_version("Produce", since=_ZSTD_PRODUCED)
    if not say.check_error(await produce(probed.target, topic, data, newer), _ERROR, "NONE"):
        return
    for version in probed.target.versions("Fetch", until=_ZSTD_FETCHED - 1):
        said = await fetch(probed.target, topic, 0, version)
        # Kafka rejected this until 3.9; 4.x returns batches that such a client can't read.
        wanted = "UNSUPPORTED_COMPRESSION_TYPE"
        say.check_error(said, f"{FETCH_PARTITION}.error_code", wanted, severity=Severity.NOTE)


@probe(
    "B21",
    "A record without a key is not taken into a compacted topic",
    source="LogValidator.validateKey; KIP-467",
    asks="INVALID_RECORD (87), from Produce v8 on with the index of the record.",
    example="it is stored, and never cleaned",
    writes=True,
)
async def keyless(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce a record without a key."""
    topic = await probed.fixtures.topic("compacted", {"cleanup.policy": "compact"})
    with_key = await produce(probed.target, topic, encode_batch(b"kept", key=b"k"))
    if not say.check_error(with_key, _ERROR, "NONE"):
        return
    for version in probed.target.versions("Produce", since=3):
        said = await produce(probed.target, topic, encode_batch(b"lost", key=None), version)
        if say.check_error(said, _ERROR, "INVALID_RECORD") and version >= 8:
            named = [each.batch_index for each in said.field(f"{PRODUCE_PARTITION}.record_errors")]
            what = f"{said}: names records {named}, not the first"
            say.check(named == [0], what, said, f"{PRODUCE_PARTITION}.record_errors")


@probe(
    "P24",
    "Batches that are damaged are not stored",
    source="LogValidator, DefaultRecordBatch.ensureValid, ProduceRequest.validateRecords",
    asks="An error, and no offset: CORRUPT_MESSAGE where the CRC does not fit, INVALID_RECORD "
    "where batches are several, of an old format, or control batches.",
    example="a batch with a wrong CRC is answered with an offset",
    writes=True,
)
async def invalid_batches(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce invalid batches."""
    topic = await probed.fixtures.topic("damaged")
    said = await produce(probed.target, topic, encode_batch(b"sound"))
    if not say.check_error(said, _ERROR, "NONE"):
        return
    before = said.field(_OFFSET)
    for what, data, errors in _invalid_batches():
        said = await produce(probed.target, topic, data)
        if said.response is None:
            # A broker that closes the connection has not accepted the batch either.
            say.check(not said.is_timeout, f"{said} with {what}: {said.failure}", said)
        else:
            say.check_error(said, _ERROR, *errors)
    stored, _, said = await fetch_all(probed.target, topic)
    if say.check_error(said, f"{FETCH_PARTITION}.error_code", "NONE"):
        fine = [offset for offset, _ in stored] == [before]
        say.check(fine, f"{said}: offsets and values {stored} are there", said)


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
    "A batch above max.message.bytes is refused",
    source="UnifiedLog.analyzeAndValidateRecords; TopicConfig max.message.bytes",
    asks="MESSAGE_TOO_LARGE (10).",
    example="a topic that allows 2,000 bytes takes 5,000",
    writes=True,
)
async def too_large(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce a batch above the limit of its topic."""
    topic = await probed.fixtures.topic("small", {"max.message.bytes": "2000"})
    said = await produce(probed.target, topic, encode_batch(b"x" * 5000))
    say.check_error(said, _ERROR, "MESSAGE_TOO_LARGE")


@probe(
    "P26",
    "Offsets grow by the number of records, and records come back as they were sent",
    source="LogValidator.assignOffsets; ProduceResponse.json",
    asks="Base_offset is the end before; fetched keys, values, offsets and codecs are those sent.",
    example="the second batch of three records begins at offset 1",
    writes=True,
)
async def round_trip(probed: ProbeContext, say: ProbeReporter) -> None:
    """Produce at each version, with the codecs in turn, and fetch all at each version."""
    topic = await probed.fixtures.topic("codecs", {"compression.type": "producer"})
    expected: list[tuple[int, bytes | None]] = []
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for number, version in enumerate(probed.target.versions("Produce", since=3)):
        known = codecs if version >= _ZSTD_PRODUCED else codecs[:4]
        sent = [f"{version}-{n}".encode() for n in range(3)]
        data = encode_batch(*sent, codec=known[number % len(known)])
        said = await produce(probed.target, topic, data, version)
        if not say.check_error(said, _ERROR, "NONE"):
            return
        found, wanted = said.field(_OFFSET), len(expected)
        say.check(found == wanted, f"{said}: offset {found}, not {wanted}", said, _OFFSET)
        expected += [(wanted + n, value) for n, value in enumerate(sent)]
    for version in probed.target.versions("Fetch", since=_ZSTD_FETCHED):
        stored, _, said = await fetch_all(probed.target, topic, version)
        if say.check_error(said, f"{FETCH_PARTITION}.error_code", "NONE"):
            say.check(stored == expected, f"{said}: {stored}, not {expected}", said)
