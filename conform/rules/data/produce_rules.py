"""Rules B07, B14 to B20 and B22: batches and topic names that a message may contain."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from conform.evidence.batch_observation import BatchObservation
from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.duplicate_items import distinct_key_fields
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    BatchShape,
    HeaderFault,
    Screen,
    none_judged,
    none_of_batch,
    one_of_batch,
    one_of_message,
)
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from conform.rules.data.record_batches import report_field, sound_batch, sound_header
from dissector.protocol.facts import Facts, collect
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import RecordBatch, UnreadBatch
from dissector.protocol.records.compression import CODEC_IDS

_ZSTD_PRODUCE, _ZSTD_FETCH = 7, 10
_LAST_OF_MAGIC_0, _LAST_OF_MAGIC_1 = 1, 3
_FIRST_OF_MAGIC_2 = 3
_END_MARKER_TYPES = (0, 1)
"""Control records that end a transaction: ABORT and COMMIT."""
_MIN_MARKER_BYTES = 6
_NO_PRODUCER = (-1, -1, -1)
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _has_zstd(shape: BatchShape) -> int:
    return int(shape.codec == CODEC_IDS["zstd"])


def _is_transactional(shape: BatchShape) -> int:
    return int(shape.is_transactional)


@rule(
    "B07",
    "Produced batch does not begin at offset 0",
    Severity.ERROR,
    source="UnifiedLog.java (analyzeAndValidateRecords): 'The baseOffset of the record batch in "
    "the append to ... should be 0'",
    asks="The base offset of a batch of magic 2 in a Produce request is 0: the broker assigns the "
    "offsets.",
    example="base_offset 12 in a Produce request",
    on="batch",
    plain_batch=one_of_batch,
    header_fault=HeaderFault.BASE_OFFSET,
    apis=("Produce",),
)
def check_base_offset(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the base offset of a produced batch."""
    batch = sound_header(observation, reporter)
    if batch is None:
        return
    reporter.count_judged()
    if batch.base_offset:
        report_field(
            observation, reporter, "base_offset", f"the base offset is {batch.base_offset}"
        )


@rule(
    "B14",
    "zstd in a version or format that does not support it",
    Severity.ERROR,
    source="ProduceRequest.java (validateRecords): UNSUPPORTED_COMPRESSION_TYPE; KIP-110. Brokers "
    "of 3.9 reject such a Fetch too, those of 4.3 answer v4 to v9 with zstd: a warning",
    asks="zstd is used only from Produce v7 and Fetch v10 on, and only in magic 2.",
    example="a batch with codec 4 in Produce v6",
    on="batch",
    plain_batch=_has_zstd,
    apis=("Produce", "Fetch"),
)
def check_zstd_supported(observation: BatchObservation, reporter: Reporter) -> None:
    """Check zstd against the version of the message and the magic of the batch."""
    batch = observation.batch
    if isinstance(batch, UnreadBatch) or batch.codec != "zstd" or not batch.crc_ok:
        return
    reporter.count_judged()
    is_produced = observation.message.kind == "request"
    first_version = _ZSTD_PRODUCE if is_produced else _ZSTD_FETCH
    if (observation.version or 0) < first_version or batch.magic < 2:
        found = f"zstd in {observation.exchange.api} v{observation.version}, magic {batch.magic}"
        severity = None if is_produced else Severity.WARNING
        report_field(observation, reporter, "attributes", found, severity)


def _has_one_batch_each(partitions: ScreenedPartitions) -> Bools:
    """Let Produce requests pass in which all records are a plain batch."""
    request, rows = partitions.request, partitions.rows
    is_one = np.append(partitions.batches.count == 1, False)[partitions.fields_of(request)]
    has_one_each = request.all_of(len(partitions), is_one | (request.records < 0))
    is_old = rows.is_of(PRODUCE) & ~rows.is_of(PRODUCE, _FIRST_OF_MAGIC_2)
    return is_old | (rows.is_of(PRODUCE) & rows.is_plain & has_one_each)


def _judged_fields(partitions: ScreenedPartitions) -> Ints:
    """Count the fields with records, from the first version with batches of magic 2 on."""
    request = partitions.request
    counts = request.count(len(partitions), request.records >= 0)
    return np.where(partitions.rows.is_of(PRODUCE, _FIRST_OF_MAGIC_2), counts, 0)


@rule(
    "B15",
    "Produce v3 or later without exactly one batch of magic 2 for each partition",
    Severity.ERROR,
    source="ProduceRequest.java (validateRecords): INVALID_RECORD, UNSUPPORTED_FOR_MESSAGE_FORMAT",
    asks="From v3 on, the records of each partition are exactly one batch, of magic 2.",
    example="two batches for one partition",
    apis=("Produce",),
    screen=Screen(none_judged, partitions=_has_one_batch_each, count=_judged_fields),
)
def check_one_batch(observation: Observation, reporter: Reporter) -> None:
    """Check the number and the magic of the batches of each partition."""
    if (observation.version or 0) < _FIRST_OF_MAGIC_2:
        return
    if reason := observation.unreadable_reason(response=False):
        reporter.count_unjudged(reason)
        return
    if reason := observation.missing_records_reason:
        reporter.count_unjudged(reason)
        return
    for message, field in observation.record_fields:
        if any(isinstance(batch, UnreadBatch) for batch in field.batches):
            reporter.count_unjudged("a batch is damaged")
            continue
        reporter.count_judged()
        magics = [batch.magic or 0 for batch in field.batches]
        if magics != [2]:
            found = f"{len(magics)} batches, of magic {sorted(set(magics))}"
            reporter.report_violation(Side.CLIENT, found, message=message, path=field.path)


@rule(
    "B16",
    "Fetch below v4 returns a batch of a newer magic",
    Severity.ERROR,
    source="KafkaApis.scala (maybeConvertFetchedData); FetchRequest.json: magic 1 from v2, magic "
    "2 from v4 on",
    asks="Records returned by older versions of Fetch are down-converted: to magic 0 in v0 and "
    "v1, to 0 or 1 in v2 and v3.",
    example="a batch of magic 2 in Fetch v3",
    on="batch",
    plain_batch=one_of_message,
    apis=("Fetch",),
)
def check_old_magic_for_old_fetch(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the magic of a batch against the version of Fetch."""
    version = observation.version or 0
    if version > _LAST_OF_MAGIC_1 or isinstance(observation.batch, UnreadBatch):
        return
    reporter.count_judged()
    max_magic = 0 if version <= _LAST_OF_MAGIC_0 else 1
    if observation.batch.magic > max_magic:
        report_field(
            observation, reporter, "magic", f"magic {observation.batch.magic} in Fetch v{version}"
        )


@rule(
    "B17",
    "Control batch in a Produce request",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Clients are not allowed to write control records'",
    asks="The control bit of a produced batch is not set.",
    example="a COMMIT marker in a Produce request",
    on="batch",
    plain_batch=one_of_batch,
    apis=("Produce",),
)
def check_no_control_batches(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the control bit of a produced batch."""
    batch = observation.batch
    if not isinstance(batch, RecordBatch) or not batch.crc_ok:
        return
    reporter.count_judged()
    if batch.control:
        report_field(observation, reporter, "attributes", "a control batch is produced")


@rule(
    "B18",
    "Producer id without epoch and sequence, or the reverse",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Invalid sequence number'; without a producer id "
    "Kafka ignores the other fields, so a warning",
    asks="Where the producer id of a batch is not -1, its epoch and base sequence are 0 or more; "
    "where it is -1, they are -1.",
    example="producer_id 7 with base_sequence -1",
    on="batch",
    plain_batch=one_of_batch,
    header_fault=HeaderFault.PRODUCER,
    apis=("Produce",),
)
def check_producer_fields_consistent(observation: BatchObservation, reporter: Reporter) -> None:
    """Check producer id, epoch and base sequence against each other."""
    batch = sound_header(observation, reporter)
    if batch is None or batch.control:
        return
    reporter.count_judged()
    triple = batch.producer_id, batch.producer_epoch, batch.base_sequence
    found = "producer id {}, epoch {}, base sequence {}".format(*triple)
    if batch.producer_id >= 0:
        if min(triple) < 0:
            report_field(
                observation, reporter, "producer_epoch" if triple[1] < 0 else "base_sequence", found
            )
    elif triple != _NO_PRODUCER:
        report_field(observation, reporter, "producer_id", found, Severity.WARNING)


@rule(
    "B19",
    "Transactional batch without producer id or transactional id",
    Severity.ERROR,
    source="DefaultRecordBatch.java (writeHeader); KafkaApis.scala (handleProduceRequest): a "
    "transactional batch without transactional id is rejected; one without producer id is "
    "rejected by Kafka 3.9 and accepted by 4.3, so it is a warning",
    asks="A transactional batch has a producer id, and the Produce request that carries it has a "
    "transactional id.",
    example="a transactional batch in a request whose transactional_id is null",
    on="batch",
    plain_batch=_is_transactional,
    apis=("Produce", "Fetch"),
)
def check_transactional_batch_identified(observation: BatchObservation, reporter: Reporter) -> None:
    """Check that a transactional batch has a producer id and a transactional id."""
    batch = sound_batch(observation, reporter)
    if batch is None or not batch.transactional:
        return
    reporter.count_judged()
    if batch.producer_id < 0:
        found = "a transactional batch has no producer id"
        report_field(observation, reporter, "producer_id", found, Severity.WARNING)
    elif (
        observation.message.kind == "request"
        and observation.request_body
        and observation.request_body.transactional_id is None
    ):
        found = "a transactional batch in a request without transactional id"
        reporter.report_violation(
            Side.CLIENT, found, message=observation.message, path="transactional_id"
        )


@rule(
    "B20",
    "Unreadable key or value of a control record",
    Severity.ERROR,
    source="ControlRecordType.java (parseTypeId); EndTransactionMarker.java (deserializeValue)",
    asks="The key of a control record consists of a version of 0 or more and a type; the value of "
    "ABORT and COMMIT has at least 6 bytes: a version and the coordinator's epoch.",
    example="a COMMIT marker with an empty value",
    on="batch",
    plain_batch=none_of_batch,
    apis=("Fetch", "ShareFetch"),
)
def check_control_records_readable(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the keys and values of control records."""
    batch = observation.batch
    if not isinstance(batch, RecordBatch) or not batch.control or not batch.crc_ok:
        return
    reporter.count_judged()
    for index, record in enumerate(batch.records):
        if found := _control_record_fault(record.key or b"", record.value or b""):
            path = f"{observation.path}.records[{index}]"
            span = observation.span(61)
            reporter.report_violation(
                Side.BROKER, found, message=observation.message, path=path, span=span
            )


def _control_record_fault(key: bytes, value: bytes) -> str:
    """Return the defect of a control record; empty: empty without one."""
    if len(key) < 4:
        return f"the key of a control record has {len(key)} bytes"
    version = int.from_bytes(key[:2], "big", signed=True)
    record_type = int.from_bytes(key[2:4], "big", signed=True)
    if version < 0:
        return f"the key of a control record has version {version}"
    if record_type in _END_MARKER_TYPES and len(value) < _MIN_MARKER_BYTES:
        return f"the value of a marker has {len(value)} bytes"
    return ""


class _TopicNames(BoundedDict[str, bool]):
    """Topic names, and whether they are valid."""

    def allows(self, name: str) -> bool:
        found = self.get(name)
        if found is None:
            found = self[name] = bool(_TOPIC_NAME.fullmatch(name)) and name not in (".", "..")
        return found


def _is_produce(rows: ScreenedRows) -> Bools:
    return rows.is_of(PRODUCE)


def _named_topics(partitions: ScreenedPartitions) -> Ints:
    return partitions.topics


@rule(
    "B22",
    "Invalid topic name",
    Severity.WARNING,
    source="Topic.java (validate): InvalidTopicException; brokers answer INVALID_TOPIC_EXCEPTION",
    asks="A topic name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is "
    "neither '.' nor '..'.",
    example="a topic named 'a/b'",
    apis=("Produce", "CreateTopics", "Metadata"),
    screen=Screen(
        none_judged,
        rows=_is_produce,
        keys=distinct_key_fields,
        topic_names=True,
        count=_named_topics,
    ),
)
def check_valid_topic_names(observation: Observation, reporter: Reporter) -> None:
    """Check the topic names of a request, and of existing topics in Metadata."""
    names = observation.capture_state.state(_TopicNames)
    message = observation.request
    if message is not None and message.body is not None and message.schema is not None:
        facts = Facts()
        collect(message.schema, message.api_version or 0, message.body, facts)
        requested_names: list[Any] = [topic for topic in facts.topics if isinstance(topic, str)]
        for name in requested_names:
            reporter.count_judged()
            if not names.allows(name):
                reporter.report_violation(
                    Side.CLIENT, f"a topic is named {name[:60]!r}", message=message
                )
    if observation.exchange.api == "Metadata" and observation.response_body is not None:
        for index, topic in enumerate(observation.response_body.topics or ()):
            if topic.error_code or topic.name is None:
                continue
            reporter.count_judged()
            if not names.allows(topic.name):
                found = f"the broker has a topic named {topic.name[:60]!r}"
                path = f"topics[{index}].name"
                reporter.report_violation(Side.BROKER, found, path=path, severity=Severity.ERROR)
