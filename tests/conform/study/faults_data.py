"""Faults of records, Produce, Fetch, offsets, producers and transactions."""

from __future__ import annotations

from uuid import UUID

from tests.conform.study.changes import (
    DATA,
    GROUPS,
    IDEMPOTENT,
    TRANSACTIONS,
    add_item,
    drop,
    duplicate,
    each_without_error,
    has_no_error,
    put,
    rebatch,
    request_fault,
    response_fault,
    where,
)

_P = "topic_data.0.partition_data.0.records"
_F = "responses.0.partitions.0.records"
_FP = "responses.0.partitions.0"
_PP = "responses.0.partition_responses.0"
_TP = "topics.0.partitions.0"
_OTHER = UUID(int=99)
_AGES = (*DATA, "kafka4-java-clients", "kafka4-leader-change", "kafka4-three-nodes")
_SETS = ("demo", "kafka4-three-nodes", "kafka4-librdkafka-transactions", "kafka4-reassignment")
_READERS = (*TRANSACTIONS, "demo", "kafka4-java-clients")
_TILL = ("kafka4-librdkafka-transactions", "kafka4-kafkajs", "demo")


def _set(batches, **fields):
    for name, value in fields.items():
        setattr(batches[0], name, value(getattr(batches[0], name)) if callable(value) else value)


def _edit(**fields):
    return lambda batches: _set(batches, **fields)


def _swap(batches):
    batches[0], batches[1] = batches[1], batches[0]


def _repeated(batches):
    batches.append(batches[0])


def _flip(data):
    if not data or len(data) < 70 or data[16] != 2:
        raise ValueError
    return data[:65] + bytes([data[65] ^ 0x55]) + data[66:]


BATCHES = [
    request_fault("batches", "wrong CRC in Produce", "Produce", put(_P, _flip), DATA),
    response_fault("batches", "wrong CRC in Fetch", "Fetch", put(_F, _flip), DATA),
    request_fault("batches", "cut off", "Produce", put(_P, lambda d: d[:-3]), DATA),
    request_fault("batches", "bytes behind it", "Produce", put(_P, lambda d: d + b"\1\2\3"), DATA),
    request_fault(
        "batches", "base offset 5 in Produce", "Produce", rebatch(_P, _edit(base_offset=5)), DATA
    ),
    request_fault(
        "batches",
        "count too high",
        "Produce",
        rebatch(_P, _edit(records_count=lambda n: n + 1)),
        DATA,
    ),
    request_fault(
        "batches",
        "last offset delta too low",
        "Produce",
        rebatch(_P, _edit(last_offset_delta=lambda n: n + 3)),
        DATA,
    ),
    response_fault(
        "batches",
        "last offset delta too low in Fetch",
        "Fetch",
        rebatch(_F, _edit(last_offset_delta=-1)),
        DATA,
    ),
    request_fault(
        "batches",
        "control bit set",
        "Produce",
        rebatch(_P, _edit(attributes=lambda n: n | 0x20)),
        DATA,
    ),
    request_fault("batches", "codec 6", "Produce", rebatch(_P, _edit(attributes=6)), DATA),
    request_fault(
        "batches", "codec gzip on plain records", "Produce", rebatch(_P, _edit(attributes=1)), DATA
    ),
    request_fault(
        "batches",
        "transactional without id",
        "Produce",
        rebatch(_P, _edit(attributes=lambda n: n | 0x10)),
        DATA,
    ),
    request_fault(
        "batches",
        "producer id without sequence",
        "Produce",
        rebatch(_P, _edit(producer_id=7)),
        DATA,
    ),
    request_fault(
        "batches",
        "epoch without producer id",
        "Produce",
        rebatch(_P, _edit(producer_epoch=3)),
        DATA,
    ),
    request_fault("batches", "two batches", "Produce", rebatch(_P, _repeated), DATA, range(3, 99)),
    request_fault("batches", "no records at all", "Produce", put(_P, b""), DATA, range(3, 99)),
    request_fault(
        "batches", "maximal timestamp 0", "Produce", rebatch(_P, _edit(max_timestamp=0)), DATA
    ),
    request_fault(
        "batches", "magic 7", "Produce", put(_P, lambda d: d[:16] + b"\7" + d[17:]), DATA
    ),
    request_fault(
        "batches",
        "length too large",
        "Produce",
        put(_P, lambda d: d[:8] + (len(d) + 9).to_bytes(4, "big") + d[12:]),
        DATA,
    ),
    response_fault("batches", "batches in wrong order", "Fetch", rebatch(_F, _swap, 2), _SETS),
    response_fault("batches", "a batch twice", "Fetch", rebatch(_F, _repeated), DATA),
    response_fault(
        "batches",
        "leader epoch goes down",
        "Fetch",
        rebatch(_F, _edit(partition_leader_epoch=9), 2),
        _SETS,
    ),
    response_fault(
        "batches",
        "a count of records that are not there",
        "Fetch",
        rebatch(_F, _edit(records_count=lambda n: n + 1)),
        DATA,
    ),
    response_fault(
        "batches",
        "base offset moved",
        "Fetch",
        rebatch(_F, _edit(base_offset=lambda n: n + 1)),
        ("demo", *_SETS),
    ),
]

FETCH = [
    response_fault(
        "fetch", "partition left out", "Fetch", drop("responses.0.partitions.0"), DATA, range(7)
    ),
    response_fault(
        "fetch",
        "topic left out of a full answer",
        "Fetch",
        drop("responses.0", lambda b: len(b.responses) == 1 and b.responses[0].partitions),
        ("demo",),
    ),
    response_fault("fetch", "partition twice", "Fetch", duplicate(_FP), DATA),
    response_fault(
        "fetch", "partition nobody asked for", "Fetch", add_item(_FP, "partition_index", 77), DATA
    ),
    response_fault(
        "fetch", "another topic", "Fetch", add_item("responses.0", "topic", "x"), DATA, range(13)
    ),
    response_fault(
        "fetch",
        "another topic id",
        "Fetch",
        add_item("responses.0", "topic_id", _OTHER),
        DATA,
        range(13, 99),
    ),
    response_fault(
        "fetch",
        "high watermark goes back",
        "Fetch",
        put(
            f"{_FP}.high_watermark",
            0,
            lambda b: (
                b.responses[0].partitions[0].high_watermark > 0
                and not b.responses[0].partitions[0].records
            ),
        ),
        _AGES,
    ),
    response_fault("fetch", "high watermark -5", "Fetch", put(f"{_FP}.high_watermark", -5), DATA),
    response_fault("fetch", "high watermark -1", "Fetch", put(f"{_FP}.high_watermark", -1), DATA),
    response_fault(
        "fetch",
        "records above the high watermark",
        "Fetch",
        put(f"{_FP}.high_watermark", 0, lambda b: b.responses[0].partitions[0].records),
        _AGES,
    ),
    response_fault(
        "fetch",
        "last stable offset above high watermark",
        "Fetch",
        put(f"{_FP}.last_stable_offset", 10**6),
        DATA,
    ),
    response_fault(
        "fetch",
        "log start above high watermark",
        "Fetch",
        put(f"{_FP}.log_start_offset", 10**6),
        DATA,
    ),
    response_fault("fetch", "log start -7", "Fetch", put(f"{_FP}.log_start_offset", -7), DATA),
    response_fault(
        "fetch",
        "records beside an error",
        "Fetch",
        put(f"{_FP}.error_code", 6, lambda b: b.responses[0].partitions[0].records),
        DATA,
    ),
    response_fault(
        "fetch",
        "records beside a preferred replica",
        "Fetch",
        put(f"{_FP}.preferred_read_replica", 2, lambda b: b.responses[0].partitions[0].records),
        DATA,
    ),
    response_fault(
        "fetch",
        "error about ids in an old version",
        "Fetch",
        put(f"{_FP}.error_code", 100),
        DATA,
        range(13),
    ),
    response_fault(
        "fetch", "offset not covered", "Fetch", rebatch(_F, _edit(base_offset=-9)), DATA
    ),
    response_fault(
        "fetch",
        "another session id",
        "Fetch",
        where(lambda b: b.session_epoch > 0, put("session_id", 4711, has_no_error)),
        _SETS,
    ),
    response_fault(
        "fetch",
        "no records below the high watermark, twice",
        "Fetch",
        duplicate("responses.0"),
        DATA,
    ),
    response_fault("fetch", "negative throttle time", "Fetch", put("throttle_time_ms", -20), DATA),
    response_fault(
        "fetch",
        "aborted transactions for level 0",
        "Fetch",
        where(
            lambda b: b.isolation_level == 0,
            put(f"{_FP}.aborted_transactions", [{"producer_id": 1, "first_offset": 0}]),
        ),
        ("kafka4-java-clients", "kafka4-sweep-data"),
        range(4, 99),
    ),
    response_fault(
        "fetch",
        "aborted transactions left out",
        "Fetch",
        put(
            f"{_FP}.aborted_transactions",
            [],
            lambda b: b.responses[0].partitions[0].aborted_transactions,
        ),
        _READERS,
    ),
    request_fault(
        "fetch", "offset -1", "Fetch", put("topics.0.partitions.0.fetch_offset", -1), DATA
    ),
    request_fault(
        "fetch", "partition twice asked", "Fetch", duplicate("topics.0.partitions.0"), DATA
    ),
    request_fault(
        "fetch",
        "wrong session epoch",
        "Fetch",
        put("session_epoch", lambda n: n + 5, lambda b: b.session_epoch > 0),
        _SETS,
    ),
    request_fault(
        "fetch",
        "replica id 1 on a client's connection",
        "Fetch",
        put("replica_id", 1),
        ("demo", "kafka4-kafkajs"),
        range(15),
    ),
    request_fault("fetch", "negative max wait", "Fetch", put("max_wait_ms", -1), DATA),
    request_fault(
        "fetch", "negative partition", "Fetch", put("topics.0.partitions.0.partition", -3), DATA
    ),
    request_fault(
        "fetch",
        "zero topic id",
        "Fetch",
        put("topics.0.topic_id", UUID(int=0)),
        DATA,
        range(13, 99),
    ),
]

PRODUCE = [
    response_fault("produce", "partition left out", "Produce", drop(_PP), DATA),
    response_fault("produce", "topic left out", "Produce", drop("responses.0"), DATA),
    response_fault(
        "produce", "partition nobody asked for", "Produce", add_item(_PP, "index", 50), DATA
    ),
    response_fault("produce", "partition twice", "Produce", duplicate(_PP), DATA),
    response_fault(
        "produce",
        "error 0 with base offset -1",
        "Produce",
        put(f"{_PP}.base_offset", -1, each_without_error(_PP)),
        DATA,
    ),
    response_fault(
        "produce", "base offset below -1", "Produce", put(f"{_PP}.base_offset", -8), DATA
    ),
    response_fault(
        "produce", "base offset beside an error", "Produce", put(f"{_PP}.error_code", 6), DATA
    ),
    response_fault(
        "produce",
        "an offset given twice",
        "Produce",
        put(
            f"{_PP}.base_offset", 0, lambda b: b.responses[0].partition_responses[0].base_offset > 0
        ),
        _AGES,
    ),
    response_fault("produce", "unknown error code", "Produce", put(f"{_PP}.error_code", 999), DATA),
    response_fault(
        "produce", "log start below -1", "Produce", put(f"{_PP}.log_start_offset", -4), DATA
    ),
    response_fault(
        "produce", "append time below -1", "Produce", put(f"{_PP}.log_append_time_ms", -4), DATA
    ),
    response_fault(
        "produce", "another topic", "Produce", put("responses.0.name", "x"), DATA, range(13)
    ),
    request_fault("produce", "acks 2", "Produce", put("acks", 2), DATA),
    request_fault(
        "produce",
        "negative partition",
        "Produce",
        put("topic_data.0.partition_data.0.index", -1),
        DATA,
    ),
    request_fault(
        "produce",
        "a partition asked twice",
        "Produce",
        duplicate("topic_data.0.partition_data.0"),
        DATA,
    ),
    request_fault(
        "produce",
        "topic name with a slash",
        "Produce",
        put("topic_data.0.name", "a/b"),
        DATA,
        range(13),
    ),
    request_fault(
        "produce",
        "zero topic id",
        "Produce",
        put("topic_data.0.topic_id", UUID(int=0)),
        DATA,
        range(13, 99),
    ),
    request_fault("produce", "timeout -9", "Produce", put("timeout_ms", -9), DATA),
]

OFFSETS = [
    response_fault(
        "offsets", "OffsetCommit leaves out a partition", "OffsetCommit", drop(_TP), GROUPS
    ),
    response_fault(
        "offsets", "OffsetCommit leaves out a topic", "OffsetCommit", drop("topics.0"), GROUPS
    ),
    response_fault(
        "offsets",
        "OffsetCommit invents a partition",
        "OffsetCommit",
        add_item(_TP, "partition_index", 9),
        GROUPS,
    ),
    response_fault(
        "offsets", "OffsetFetch leaves out a partition", "OffsetFetch", drop(_TP), GROUPS, range(8)
    ),
    response_fault(
        "offsets",
        "OffsetFetch leaves out a group",
        "OffsetFetch",
        drop("groups.0"),
        GROUPS,
        range(8, 99),
    ),
    response_fault(
        "offsets",
        "OffsetFetch offset -2",
        "OffsetFetch",
        put(f"{_TP}.committed_offset", -2),
        GROUPS,
        range(8),
    ),
    response_fault(
        "offsets", "OffsetFetch a partition twice", "OffsetFetch", duplicate(_TP), GROUPS, range(8)
    ),
    response_fault("offsets", "ListOffsets leaves out a partition", "ListOffsets", drop(_TP), DATA),
    response_fault(
        "offsets",
        "ListOffsets invents a partition",
        "ListOffsets",
        add_item(_TP, "partition_index", 12),
        DATA,
    ),
    response_fault("offsets", "ListOffsets a partition twice", "ListOffsets", duplicate(_TP), DATA),
    response_fault(
        "offsets",
        "ListOffsets offset beside an error",
        "ListOffsets",
        put(f"{_TP}.error_code", 6, lambda b: b.topics[0].partitions[0].offset >= 0),
        DATA,
        range(1, 99),
    ),
    response_fault(
        "offsets",
        "ListOffsets offset -9",
        "ListOffsets",
        put(f"{_TP}.offset", -9),
        DATA,
        range(1, 99),
    ),
    response_fault(
        "offsets",
        "ListOffsets latest without offset",
        "ListOffsets",
        put(
            f"{_TP}.offset",
            -1,
            lambda b: (
                b.topics[0].partitions[0].timestamp == -1 and b.topics[0].partitions[0].offset >= 0
            ),
        ),
        DATA,
        range(1, 7),
    ),
    response_fault(
        "offsets",
        "ListOffsets an older record than asked",
        "ListOffsets",
        where(lambda b: b.topics[0].partitions[0].timestamp > 0, put(f"{_TP}.timestamp", 0)),
        (
            "kafka4-sweep-clients-1",
            "kafka4-java-admin",
            *DATA,
            "kafka4-librdkafka-admin",
            "kafka4-kafka-python-as-2.4",
        ),
        range(1, 99),
    ),
    response_fault(
        "offsets",
        "ListOffsets a timestamp beside the end",
        "ListOffsets",
        where(
            lambda b: b.topics[0].partitions[0].timestamp in (-1, -2),
            put(f"{_TP}.timestamp", 5, each_without_error(_TP)),
        ),
        DATA,
        range(1, 99),
    ),
    response_fault(
        "offsets",
        "ListOffsets the latest goes back",
        "ListOffsets",
        put(f"{_TP}.offset", 0, lambda b: b.topics[0].partitions[0].offset > 0),
        _AGES,
        range(1, 99),
    ),
    request_fault(
        "offsets", "ListOffsets timestamp -9", "ListOffsets", put(f"{_TP}.timestamp", -9), DATA
    ),
    request_fault("offsets", "ListOffsets asks for one twice", "ListOffsets", duplicate(_TP), DATA),
    request_fault(
        "offsets",
        "OffsetCommit of offset -5",
        "OffsetCommit",
        put(f"{_TP}.committed_offset", -5),
        GROUPS,
    ),
    request_fault(
        "offsets", "OffsetCommit of a partition twice", "OffsetCommit", duplicate(_TP), GROUPS
    ),
    response_fault(
        "offsets", "DeleteRecords leaves out a partition", "DeleteRecords", drop(_TP), DATA
    ),
    response_fault(
        "offsets",
        "DeleteRecords low watermark -3",
        "DeleteRecords",
        put(f"{_TP}.low_watermark", -3),
        DATA,
    ),
    response_fault(
        "offsets",
        "DeleteRecords without low watermark",
        "DeleteRecords",
        put(f"{_TP}.low_watermark", -1, each_without_error(_TP)),
        DATA,
    ),
    response_fault(
        "offsets",
        "OffsetForLeaderEpoch leaves out a partition",
        "OffsetForLeaderEpoch",
        drop(_TP),
        ("kafka4-leader-change", *DATA),
    ),
]

PRODUCERS = [
    request_fault(
        "producers",
        "sequence with a gap",
        "Produce",
        rebatch(
            _P,
            lambda b: _set(b, base_sequence=lambda n: n + 4) if b[0].base_sequence > 0 else False,
        ),
        IDEMPOTENT,
    ),
    request_fault(
        "producers",
        "acks 1 for an idempotent producer",
        "Produce",
        put("acks", 1),
        ("kafka4-java-clients",),
    ),
    response_fault(
        "producers",
        "error 0 with id -1",
        "InitProducerId",
        put("producer_id", -1, has_no_error),
        IDEMPOTENT,
    ),
    response_fault("producers", "id -5", "InitProducerId", put("producer_id", -5), IDEMPOTENT),
    response_fault(
        "producers",
        "epoch -1 with an id",
        "InitProducerId",
        put("producer_epoch", -1, has_no_error),
        IDEMPOTENT,
    ),
    response_fault(
        "producers",
        "an id beside an error",
        "InitProducerId",
        put("error_code", 51, has_no_error),
        IDEMPOTENT,
    ),
    response_fault(
        "producers",
        "negative throttle time",
        "InitProducerId",
        put("throttle_time_ms", -1),
        IDEMPOTENT,
    ),
    request_fault(
        "producers",
        "sequence -1 with a producer id",
        "Produce",
        rebatch(_P, lambda b: _set(b, base_sequence=-1) if b[0].producer_id >= 0 else False),
        IDEMPOTENT,
    ),
]

_ADDED = "results_by_topic_v3_and_below.0.results_by_partition.0"

TXN = [
    response_fault(
        "transactions",
        "AddPartitionsToTxn leaves out a partition",
        "AddPartitionsToTxn",
        drop(_ADDED),
        _TILL,
        range(4),
    ),
    response_fault(
        "transactions",
        "AddPartitionsToTxn invents a partition",
        "AddPartitionsToTxn",
        add_item(_ADDED, "partition_index", 44),
        _TILL,
        range(4),
    ),
    response_fault(
        "transactions",
        "AddPartitionsToTxn of brokers leaves out a transaction",
        "AddPartitionsToTxn",
        drop("results_by_transaction.0"),
        ("kafka4-sweep-transactions", "kafka4-three-nodes"),
        range(4, 99),
    ),
    response_fault(
        "transactions",
        "TxnOffsetCommit leaves out a partition",
        "TxnOffsetCommit",
        drop(_TP),
        TRANSACTIONS,
    ),
    response_fault(
        "transactions",
        "TxnOffsetCommit invents a partition",
        "TxnOffsetCommit",
        add_item(_TP, "partition_index", 31),
        TRANSACTIONS,
    ),
    request_fault(
        "transactions",
        "TxnOffsetCommit of a negative offset",
        "TxnOffsetCommit",
        put(f"{_TP}.committed_offset", -4),
        TRANSACTIONS,
    ),
    request_fault(
        "transactions",
        "TxnOffsetCommit for a group that was not added",
        "TxnOffsetCommit",
        put("group_id", "stranger"),
        TRANSACTIONS,
        range(5),
    ),
    request_fault(
        "transactions",
        "AddPartitionsToTxn of another partition",
        "AddPartitionsToTxn",
        put("v3_and_below_topics.0.partitions.0", 9),
        _TILL,
        range(4),
    ),
    response_fault(
        "transactions",
        "DescribeTransactions leaves one out",
        "DescribeTransactions",
        drop("transaction_states.0"),
        ("kafka4-java-admin",),
    ),
    response_fault(
        "transactions",
        "DescribeTransactions without a state",
        "DescribeTransactions",
        put(
            "transaction_states.0.transaction_state", "", each_without_error("transaction_states.0")
        ),
        ("kafka4-java-admin",),
    ),
    response_fault(
        "transactions",
        "ListTransactions of another state",
        "ListTransactions",
        put("transaction_states.0.transaction_state", "Strange"),
        ("kafka4-sweep-transactions", "kafka4-java-admin"),
    ),
    response_fault(
        "transactions",
        "DescribeProducers leaves out a partition",
        "DescribeProducers",
        drop(_TP),
        ("kafka4-sweep-transactions", "kafka4-java-admin"),
    ),
    response_fault(
        "transactions",
        "WriteTxnMarkers leaves out a marker",
        "WriteTxnMarkers",
        drop("markers.0"),
        ("kafka4-sweep-transactions", "kafka4-three-nodes"),
    ),
    response_fault(
        "transactions",
        "EndTxn v5 gives an older epoch",
        "EndTxn",
        put("producer_epoch", lambda n: n - 1, lambda b: b.producer_id >= 0),
        ("kafka4-sweep-transactions", "kafka4-java-clients"),
        range(5, 99),
    ),
    response_fault(
        "transactions",
        "InitProducerId gives the epoch again",
        "InitProducerId",
        put("producer_epoch", 0, lambda b: b.producer_epoch > 0 and not b.error_code),
        ("kafka4-java-clients", "kafka4-librdkafka-fenced", *TRANSACTIONS),
    ),
]

FAULTS = [*BATCHES, *FETCH, *PRODUCE, *OFFSETS, *PRODUCERS, *TXN]
