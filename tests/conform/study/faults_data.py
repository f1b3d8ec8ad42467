"""Faults of records, Produce, Fetch, offsets, producers and transactions."""

from __future__ import annotations

from uuid import UUID

from tests.conform.study.changes import (
    DATA,
    GROUPS,
    IDEMPOTENT,
    TRANSACTIONS,
    add_item,
    broker_faults,
    client_faults,
    drop,
    duplicate,
    each_without_error,
    has_no_error,
    put,
    rebatch,
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
    *client_faults(
        "batches",
        "Produce",
        DATA,
        {
            "wrong CRC in Produce": put(_P, _flip),
            "cut off": put(_P, lambda d: d[:-3]),
            "bytes behind it": put(_P, lambda d: d + b"\1\2\3"),
            "base offset 5 in Produce": rebatch(_P, _edit(base_offset=5)),
            "count too high": rebatch(_P, _edit(records_count=lambda n: n + 1)),
            "last offset delta too low": rebatch(_P, _edit(last_offset_delta=lambda n: n + 3)),
            "control bit set": rebatch(_P, _edit(attributes=lambda n: n | 0x20)),
            "codec 6": rebatch(_P, _edit(attributes=6)),
            "codec gzip on plain records": rebatch(_P, _edit(attributes=1)),
            "transactional without id": rebatch(_P, _edit(attributes=lambda n: n | 0x10)),
            "producer id without sequence": rebatch(_P, _edit(producer_id=7)),
            "epoch without producer id": rebatch(_P, _edit(producer_epoch=3)),
            "maximal timestamp 0": rebatch(_P, _edit(max_timestamp=0)),
            "magic 7": put(_P, lambda d: d[:16] + b"\7" + d[17:]),
            "length too large": put(_P, lambda d: d[:8] + (len(d) + 9).to_bytes(4, "big") + d[12:]),
        },
    ),
    *broker_faults(
        "batches",
        "Fetch",
        DATA,
        {
            "wrong CRC in Fetch": put(_F, _flip),
            "last offset delta too low in Fetch": rebatch(_F, _edit(last_offset_delta=-1)),
            "a batch twice": rebatch(_F, _repeated),
            "a count of records that are not there": rebatch(
                _F, _edit(records_count=lambda n: n + 1)
            ),
        },
    ),
    *client_faults(
        "batches",
        "Produce",
        DATA,
        {"two batches": rebatch(_P, _repeated), "no records at all": put(_P, b"")},
        range(3, 99),
    ),
    *broker_faults(
        "batches",
        "Fetch",
        _SETS,
        {
            "batches in wrong order": rebatch(_F, _swap, 2),
            "leader epoch goes down": rebatch(_F, _edit(partition_leader_epoch=9), 2),
        },
    ),
    *broker_faults(
        "batches",
        "Fetch",
        ("demo", *_SETS),
        {"base offset moved": rebatch(_F, _edit(base_offset=lambda n: n + 1))},
    ),
]

FETCH = [
    *broker_faults(
        "fetch", "Fetch", DATA, {"partition left out": drop("responses.0.partitions.0")}, range(7)
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        ("demo",),
        {
            "topic left out of a full answer": drop(
                "responses.0", lambda b: len(b.responses) == 1 and b.responses[0].partitions
            )
        },
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        DATA,
        {
            "partition twice": duplicate(_FP),
            "partition nobody asked for": add_item(_FP, "partition_index", 77),
            "high watermark -5": put(f"{_FP}.high_watermark", -5),
            "high watermark -1": put(f"{_FP}.high_watermark", -1),
            "last stable offset above high watermark": put(f"{_FP}.last_stable_offset", 10**6),
            "log start above high watermark": put(f"{_FP}.log_start_offset", 10**6),
            "log start -7": put(f"{_FP}.log_start_offset", -7),
            "records beside an error": put(
                f"{_FP}.error_code", 6, lambda b: b.responses[0].partitions[0].records
            ),
            "records beside a preferred replica": put(
                f"{_FP}.preferred_read_replica", 2, lambda b: b.responses[0].partitions[0].records
            ),
            "offset not covered": rebatch(_F, _edit(base_offset=-9)),
            "no records below the high watermark, twice": duplicate("responses.0"),
            "negative throttle time": put("throttle_time_ms", -20),
        },
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        DATA,
        {
            "another topic": add_item("responses.0", "topic", "x"),
            "error about ids in an old version": put(f"{_FP}.error_code", 100),
        },
        range(13),
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        DATA,
        {"another topic id": add_item("responses.0", "topic_id", _OTHER)},
        range(13, 99),
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        _AGES,
        {
            "high watermark goes back": put(
                f"{_FP}.high_watermark",
                0,
                lambda b: (
                    b.responses[0].partitions[0].high_watermark > 0
                    and not b.responses[0].partitions[0].records
                ),
            ),
            "records above the high watermark": put(
                f"{_FP}.high_watermark", 0, lambda b: b.responses[0].partitions[0].records
            ),
        },
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        _SETS,
        {
            "another session id": where(
                lambda b: b.session_epoch > 0, put("session_id", 4711, has_no_error)
            )
        },
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        ("kafka4-java-clients", "kafka4-sweep-data"),
        {
            "aborted transactions for level 0": where(
                lambda b: b.isolation_level == 0,
                put(f"{_FP}.aborted_transactions", [{"producer_id": 1, "first_offset": 0}]),
            )
        },
        range(4, 99),
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        _READERS,
        {
            "aborted transactions left out": put(
                f"{_FP}.aborted_transactions",
                [],
                lambda b: b.responses[0].partitions[0].aborted_transactions,
            )
        },
    ),
    *client_faults(
        "fetch",
        "Fetch",
        DATA,
        {
            "offset -1": put("topics.0.partitions.0.fetch_offset", -1),
            "partition twice asked": duplicate("topics.0.partitions.0"),
            "negative max wait": put("max_wait_ms", -1),
            "negative partition": put("topics.0.partitions.0.partition", -3),
        },
    ),
    *client_faults(
        "fetch",
        "Fetch",
        _SETS,
        {
            "wrong session epoch": put(
                "session_epoch", lambda n: n + 5, lambda b: b.session_epoch > 0
            )
        },
    ),
    *client_faults(
        "fetch",
        "Fetch",
        ("demo", "kafka4-kafkajs"),
        {"replica id 1 on a client's connection": put("replica_id", 1)},
        range(15),
    ),
    *client_faults(
        "fetch",
        "Fetch",
        DATA,
        {"zero topic id": put("topics.0.topic_id", UUID(int=0))},
        range(13, 99),
    ),
]

PRODUCE = [
    *broker_faults(
        "produce",
        "Produce",
        DATA,
        {
            "partition left out": drop(_PP),
            "topic left out": drop("responses.0"),
            "partition nobody asked for": add_item(_PP, "index", 50),
            "partition twice": duplicate(_PP),
            "error 0 with base offset -1": put(f"{_PP}.base_offset", -1, each_without_error(_PP)),
            "base offset below -1": put(f"{_PP}.base_offset", -8),
            "base offset beside an error": put(f"{_PP}.error_code", 6),
            "unknown error code": put(f"{_PP}.error_code", 999),
            "log start below -1": put(f"{_PP}.log_start_offset", -4),
            "append time below -1": put(f"{_PP}.log_append_time_ms", -4),
        },
    ),
    *broker_faults(
        "produce",
        "Produce",
        _AGES,
        {
            "an offset given twice": put(
                f"{_PP}.base_offset",
                0,
                lambda b: b.responses[0].partition_responses[0].base_offset > 0,
            )
        },
    ),
    *broker_faults(
        "produce", "Produce", DATA, {"another topic": put("responses.0.name", "x")}, range(13)
    ),
    *client_faults(
        "produce",
        "Produce",
        DATA,
        {
            "acks 2": put("acks", 2),
            "negative partition": put("topic_data.0.partition_data.0.index", -1),
            "a partition asked twice": duplicate("topic_data.0.partition_data.0"),
            "timeout -9": put("timeout_ms", -9),
        },
    ),
    *client_faults(
        "produce",
        "Produce",
        DATA,
        {"topic name with a slash": put("topic_data.0.name", "a/b")},
        range(13),
    ),
    *client_faults(
        "produce",
        "Produce",
        DATA,
        {"zero topic id": put("topic_data.0.topic_id", UUID(int=0))},
        range(13, 99),
    ),
]

OFFSETS = [
    *broker_faults(
        "offsets",
        "OffsetCommit",
        GROUPS,
        {
            "OffsetCommit leaves out a partition": drop(_TP),
            "OffsetCommit leaves out a topic": drop("topics.0"),
            "OffsetCommit invents a partition": add_item(_TP, "partition_index", 9),
        },
    ),
    *broker_faults(
        "offsets",
        "OffsetFetch",
        GROUPS,
        {
            "OffsetFetch leaves out a partition": drop(_TP),
            "OffsetFetch offset -2": put(f"{_TP}.committed_offset", -2),
            "OffsetFetch a partition twice": duplicate(_TP),
        },
        range(8),
    ),
    *broker_faults(
        "offsets",
        "OffsetFetch",
        GROUPS,
        {"OffsetFetch leaves out a group": drop("groups.0")},
        range(8, 99),
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets leaves out a partition": drop(_TP),
            "ListOffsets invents a partition": add_item(_TP, "partition_index", 12),
            "ListOffsets a partition twice": duplicate(_TP),
        },
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets offset beside an error": put(
                f"{_TP}.error_code", 6, lambda b: b.topics[0].partitions[0].offset >= 0
            ),
            "ListOffsets offset -9": put(f"{_TP}.offset", -9),
            "ListOffsets a timestamp beside the end": where(
                lambda b: b.topics[0].partitions[0].timestamp in (-1, -2),
                put(f"{_TP}.timestamp", 5, each_without_error(_TP)),
            ),
        },
        range(1, 99),
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets latest without offset": put(
                f"{_TP}.offset",
                -1,
                lambda b: (
                    b.topics[0].partitions[0].timestamp == -1
                    and b.topics[0].partitions[0].offset >= 0
                ),
            )
        },
        range(1, 7),
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        (
            "kafka4-sweep-clients-1",
            "kafka4-java-admin",
            *DATA,
            "kafka4-librdkafka-admin",
            "kafka4-kafka-python-as-2.4",
        ),
        {
            "ListOffsets an older record than asked": where(
                lambda b: b.topics[0].partitions[0].timestamp > 0, put(f"{_TP}.timestamp", 0)
            )
        },
        range(1, 99),
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        _AGES,
        {
            "ListOffsets the latest goes back": put(
                f"{_TP}.offset", 0, lambda b: b.topics[0].partitions[0].offset > 0
            )
        },
        range(1, 99),
    ),
    *client_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets timestamp -9": put(f"{_TP}.timestamp", -9),
            "ListOffsets asks for one twice": duplicate(_TP),
        },
    ),
    *client_faults(
        "offsets",
        "OffsetCommit",
        GROUPS,
        {
            "OffsetCommit of offset -5": put(f"{_TP}.committed_offset", -5),
            "OffsetCommit of a partition twice": duplicate(_TP),
        },
    ),
    *broker_faults(
        "offsets",
        "DeleteRecords",
        DATA,
        {
            "DeleteRecords leaves out a partition": drop(_TP),
            "DeleteRecords low watermark -3": put(f"{_TP}.low_watermark", -3),
            "DeleteRecords without low watermark": put(
                f"{_TP}.low_watermark", -1, each_without_error(_TP)
            ),
        },
    ),
    *broker_faults(
        "offsets",
        "OffsetForLeaderEpoch",
        ("kafka4-leader-change", *DATA),
        {"OffsetForLeaderEpoch leaves out a partition": drop(_TP)},
    ),
]

PRODUCERS = [
    *client_faults(
        "producers",
        "Produce",
        IDEMPOTENT,
        {
            "sequence with a gap": rebatch(
                _P,
                lambda b: (
                    _set(b, base_sequence=lambda n: n + 4) if b[0].base_sequence > 0 else False
                ),
            ),
            "sequence -1 with a producer id": rebatch(
                _P, lambda b: _set(b, base_sequence=-1) if b[0].producer_id >= 0 else False
            ),
        },
    ),
    *client_faults(
        "producers",
        "Produce",
        ("kafka4-java-clients",),
        {"acks 1 for an idempotent producer": put("acks", 1)},
    ),
    *broker_faults(
        "producers",
        "InitProducerId",
        IDEMPOTENT,
        {
            "error 0 with id -1": put("producer_id", -1, has_no_error),
            "id -5": put("producer_id", -5),
            "epoch -1 with an id": put("producer_epoch", -1, has_no_error),
            "an id beside an error": put("error_code", 51, has_no_error),
            "negative throttle time": put("throttle_time_ms", -1),
        },
    ),
]

_ADDED = "results_by_topic_v3_and_below.0.results_by_partition.0"

TXN = [
    *broker_faults(
        "transactions",
        "AddPartitionsToTxn",
        _TILL,
        {
            "AddPartitionsToTxn leaves out a partition": drop(_ADDED),
            "AddPartitionsToTxn invents a partition": add_item(_ADDED, "partition_index", 44),
        },
        range(4),
    ),
    *broker_faults(
        "transactions",
        "AddPartitionsToTxn",
        ("kafka4-sweep-transactions", "kafka4-three-nodes"),
        {
            "AddPartitionsToTxn of brokers leaves out a transaction": drop(
                "results_by_transaction.0"
            )
        },
        range(4, 99),
    ),
    *broker_faults(
        "transactions",
        "TxnOffsetCommit",
        TRANSACTIONS,
        {
            "TxnOffsetCommit leaves out a partition": drop(_TP),
            "TxnOffsetCommit invents a partition": add_item(_TP, "partition_index", 31),
        },
    ),
    *client_faults(
        "transactions",
        "TxnOffsetCommit",
        TRANSACTIONS,
        {"TxnOffsetCommit of a negative offset": put(f"{_TP}.committed_offset", -4)},
    ),
    *client_faults(
        "transactions",
        "TxnOffsetCommit",
        TRANSACTIONS,
        {"TxnOffsetCommit for a group that was not added": put("group_id", "stranger")},
        range(5),
    ),
    *client_faults(
        "transactions",
        "AddPartitionsToTxn",
        _TILL,
        {"AddPartitionsToTxn of another partition": put("v3_and_below_topics.0.partitions.0", 9)},
        range(4),
    ),
    *broker_faults(
        "transactions",
        "DescribeTransactions",
        ("kafka4-java-admin",),
        {
            "DescribeTransactions leaves one out": drop("transaction_states.0"),
            "DescribeTransactions without a state": put(
                "transaction_states.0.transaction_state",
                "",
                each_without_error("transaction_states.0"),
            ),
        },
    ),
    *broker_faults(
        "transactions",
        "ListTransactions",
        ("kafka4-sweep-transactions", "kafka4-java-admin"),
        {
            "ListTransactions of another state": put(
                "transaction_states.0.transaction_state", "Strange"
            )
        },
    ),
    *broker_faults(
        "transactions",
        "DescribeProducers",
        ("kafka4-sweep-transactions", "kafka4-java-admin"),
        {"DescribeProducers leaves out a partition": drop(_TP)},
    ),
    *broker_faults(
        "transactions",
        "WriteTxnMarkers",
        ("kafka4-sweep-transactions", "kafka4-three-nodes"),
        {"WriteTxnMarkers leaves out a marker": drop("markers.0")},
    ),
    *broker_faults(
        "transactions",
        "EndTxn",
        ("kafka4-sweep-transactions", "kafka4-java-clients"),
        {
            "EndTxn v5 gives an older epoch": put(
                "producer_epoch", lambda n: n - 1, lambda b: b.producer_id >= 0
            )
        },
        range(5, 99),
    ),
    *broker_faults(
        "transactions",
        "InitProducerId",
        ("kafka4-java-clients", "kafka4-librdkafka-fenced", *TRANSACTIONS),
        {
            "InitProducerId gives the epoch again": put(
                "producer_epoch", 0, lambda b: b.producer_epoch > 0 and not b.error_code
            )
        },
    ),
]

FAULTS = [*BATCHES, *FETCH, *PRODUCE, *OFFSETS, *PRODUCERS, *TXN]
