"""B, third part: what batches may stand where, and what producers may write."""

from __future__ import annotations

import re
from typing import Any

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import BatchObservation, Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.data.record_batches import report_field, sound_batch
from dissector.protocol.facts import Facts, collect
from dissector.protocol.records import RecordBatch, UnreadBatch

_ZSTD_PRODUCE, _ZSTD_FETCH = 7, 10
_LAST_OF_MAGIC_0, _LAST_OF_MAGIC_1 = 1, 3
_FIRST_OF_MAGIC_2 = 3
_END_MARKER_TYPES = (0, 1)
"""Control records that end a transaction: ABORT and COMMIT."""
_MIN_MARKER_BYTES = 6
_NO_PRODUCER = (-1, -1, -1)
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@rule(
    "B07",
    "A batch that is produced begins at offset 0",
    Severity.ERROR,
    source="UnifiedLog.java (analyzeAndValidateRecords): 'The baseOffset of the record batch in "
    "the append to ... should be 0'",
    asks="The base offset of a batch of magic 2 in a Produce request is 0: the broker gives "
    "offsets.",
    example="base_offset 12 in a Produce request",
    on="batch",
    apis=("Produce",),
)
def begins_at_zero(turn: BatchObservation, say: Reporter) -> None:
    """Look at the base offset."""
    batch = sound_batch(turn, say)
    if batch is None:
        return
    say.count_judged()
    if batch.base_offset:
        report_field(turn, say, "base_offset", f"the base offset is {batch.base_offset}")


@rule(
    "B14",
    "zstd only with versions that know it",
    Severity.ERROR,
    source="ProduceRequest.java (validateRecords): UNSUPPORTED_COMPRESSION_TYPE; KIP-110. Brokers "
    "of 3.9 refuse such a Fetch too, those of 4.3 answer v4 to v9 with zstd: a warning",
    asks="zstd stands in Produce from v7 and in Fetch from v10 on, and in magic 2 alone.",
    example="a batch with codec 4 in Produce v6",
    on="batch",
    apis=("Produce", "Fetch"),
)
def zstd_supported(turn: BatchObservation, say: Reporter) -> None:
    """Hold zstd against the version of the message."""
    batch = turn.batch
    if isinstance(batch, UnreadBatch) or batch.codec != "zstd" or not batch.crc_ok:
        return
    say.count_judged()
    produced = turn.message.kind == "request"
    first = _ZSTD_PRODUCE if produced else _ZSTD_FETCH
    if (turn.version or 0) < first or batch.magic < 2:
        found = f"zstd in {turn.exchange.api} v{turn.version}, magic {batch.magic}"
        severity = None if produced else Severity.WARNING
        report_field(turn, say, "attributes", found, severity)


@rule(
    "B15",
    "Produce from v3 on carries one batch of magic 2 for each partition",
    Severity.ERROR,
    source="ProduceRequest.java (validateRecords): INVALID_RECORD, UNSUPPORTED_FOR_MESSAGE_FORMAT",
    asks="From v3 on the records of each partition are exactly one batch, of magic 2.",
    example="two batches for one partition",
    apis=("Produce",),
)
def one_batch(turn: Observation, say: Reporter) -> None:
    """Count the batches of each partition."""
    if (turn.version or 0) < _FIRST_OF_MAGIC_2:
        return
    if why := turn.unreadable_reason(response=False):
        say.count_unjudged(why)
        return
    for message, field in turn.record_fields:
        if any(isinstance(batch, UnreadBatch) for batch in field.batches):
            say.count_unjudged("a batch is damaged")
            continue
        say.count_judged()
        magics = [batch.magic or 0 for batch in field.batches]
        if magics != [2]:
            found = f"{len(magics)} batches, of magic {sorted(set(magics))}"
            say.report_violation(Side.CLIENT, found, message=message, path=field.path)


@rule(
    "B16",
    "Fetch before v4 gives batches of the older magics",
    Severity.ERROR,
    source="KafkaApis.scala (maybeConvertFetchedData); FetchRequest.json: magic 1 from v2, magic "
    "2 from v4 on",
    asks="What an older version of Fetch returns is converted: magic 0 in v0 and v1, 0 or 1 in v2 "
    "and v3.",
    example="a batch of magic 2 in Fetch v3",
    on="batch",
    apis=("Fetch",),
)
def old_magic_for_old_fetch(turn: BatchObservation, say: Reporter) -> None:
    """Hold the magic against the version."""
    version = turn.version or 0
    if version > _LAST_OF_MAGIC_1 or isinstance(turn.batch, UnreadBatch):
        return
    say.count_judged()
    most = 0 if version <= _LAST_OF_MAGIC_0 else 1
    if turn.batch.magic > most:
        report_field(turn, say, "magic", f"magic {turn.batch.magic} in Fetch v{version}")


@rule(
    "B17",
    "Clients do not write control batches",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Clients are not allowed to write control records'",
    asks="The control bit of a batch that is produced is not set.",
    example="a COMMIT marker in a Produce request",
    on="batch",
    apis=("Produce",),
)
def no_control_batches(turn: BatchObservation, say: Reporter) -> None:
    """Look at the control bit."""
    batch = turn.batch
    if not isinstance(batch, RecordBatch) or not batch.crc_ok:
        return
    say.count_judged()
    if batch.control:
        report_field(turn, say, "attributes", "a control batch is produced")


@rule(
    "B18",
    "A producer id comes with epoch and sequence",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Invalid sequence number'; what Kafka ignores, "
    "where there is no producer id, is a warning",
    asks="Where the producer id of a batch is not -1, its epoch and base sequence are 0 or more; "
    "where it is -1, they are -1.",
    example="producer_id 7 with base_sequence -1",
    on="batch",
    apis=("Produce",),
)
def producer_fields_consistent(turn: BatchObservation, say: Reporter) -> None:
    """Look at producer id, epoch and sequence together."""
    batch = sound_batch(turn, say)
    if batch is None or batch.control:
        return
    say.count_judged()
    triple = batch.producer_id, batch.producer_epoch, batch.base_sequence
    found = "producer id {}, epoch {}, base sequence {}".format(*triple)
    if batch.producer_id >= 0:
        if min(triple) < 0:
            report_field(turn, say, "producer_epoch" if triple[1] < 0 else "base_sequence", found)
    elif triple != _NO_PRODUCER:
        report_field(turn, say, "producer_id", found, Severity.WARNING)


@rule(
    "B19",
    "What belongs to a transaction says whose",
    Severity.ERROR,
    source="DefaultRecordBatch.java (writeHeader); KafkaApis.scala (handleProduceRequest): a "
    "transactional batch without transactional id is refused; one without producer id Kafka 3.9 "
    "refuses and 4.3 takes, so it is a warning",
    asks="A transactional batch has a producer id, and the Produce request that carries it a "
    "transactional id.",
    example="a transactional batch in a request whose transactional_id is null",
    on="batch",
    apis=("Produce", "Fetch"),
)
def transactional_batch_identified(turn: BatchObservation, say: Reporter) -> None:
    """Ask whose transaction a batch belongs to."""
    batch = sound_batch(turn, say)
    if batch is None or not batch.transactional:
        return
    say.count_judged()
    if batch.producer_id < 0:
        found = "a transactional batch has no producer id"
        report_field(turn, say, "producer_id", found, Severity.WARNING)
    elif (
        turn.message.kind == "request"
        and turn.request_body
        and turn.request_body.transactional_id is None
    ):
        found = "a transactional batch in a request without transactional id"
        say.report_violation(Side.CLIENT, found, message=turn.message, path="transactional_id")


@rule(
    "B20",
    "Control records have a key and a value that can be read",
    Severity.ERROR,
    source="ControlRecordType.java (parseTypeId); EndTransactionMarker.java (deserializeValue)",
    asks="The key of a control record is a version of 0 or more and a type; the value of ABORT "
    "and COMMIT has 6 bytes at least: a version and the coordinator's epoch.",
    example="a COMMIT marker with an empty value",
    on="batch",
    apis=("Fetch", "ShareFetch"),
)
def control_records_readable(turn: BatchObservation, say: Reporter) -> None:
    """Look at keys and values of control records."""
    batch = turn.batch
    if not isinstance(batch, RecordBatch) or not batch.control or not batch.crc_ok:
        return
    say.count_judged()
    for index, record in enumerate(batch.records):
        if found := _control_record_fault(record.key or b"", record.value or b""):
            path = f"{turn.path}.records[{index}]"
            span = turn.span(61)
            say.report_violation(Side.BROKER, found, message=turn.message, path=path, span=span)


def _control_record_fault(key: bytes, value: bytes) -> str:
    """Return what is wrong with a control record."""
    if len(key) < 4:
        return f"the key of a control record has {len(key)} bytes"
    version = int.from_bytes(key[:2], "big", signed=True)
    number = int.from_bytes(key[2:4], "big", signed=True)
    if version < 0:
        return f"the key of a control record has version {version}"
    if number in _END_MARKER_TYPES and len(value) < _MIN_MARKER_BYTES:
        return f"the value of a marker has {len(value)} bytes"
    return ""


class _TopicNames(BoundedDict[str, bool]):
    """Names of topics, and whether they are allowed."""

    def allows(self, name: str) -> bool:
        found = self.get(name)
        if found is None:
            found = self[name] = bool(_TOPIC_NAME.fullmatch(name)) and name not in (".", "..")
        return found


@rule(
    "B22",
    "Names of topics are of the letters that are allowed",
    Severity.WARNING,
    source="Topic.java (validate): InvalidTopicException; brokers answer INVALID_TOPIC_EXCEPTION",
    asks="The name of a topic has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and "
    "is neither '.' nor '..'.",
    example="a topic named 'a/b'",
    apis=("Produce", "CreateTopics", "Metadata"),
)
def valid_topic_names(turn: Observation, say: Reporter) -> None:
    """Look at the names that are asked for, and at those of topics that a broker has."""
    names = turn.capture_state.state(_TopicNames)
    asked = turn.request
    if asked is not None and asked.body is not None and asked.schema is not None:
        facts = Facts()
        collect(asked.schema, asked.api_version or 0, asked.body, facts)
        told: list[Any] = [topic for topic in facts.topics if isinstance(topic, str)]
        for name in told:
            say.count_judged()
            if not names.allows(name):
                say.report_violation(Side.CLIENT, f"a topic is named {name[:60]!r}", message=asked)
    if turn.exchange.api == "Metadata" and turn.response_body is not None:
        for index, topic in enumerate(turn.response_body.topics or ()):
            if topic.error_code or topic.name is None:
                continue
            say.count_judged()
            if not names.allows(topic.name):
                found = f"the broker has a topic named {topic.name[:60]!r}"
                path = f"topics[{index}].name"
                say.report_violation(Side.BROKER, found, path=path, severity=Severity.ERROR)
