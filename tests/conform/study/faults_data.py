"""Faults of records, Produce, Fetch, offsets, producers and transactions."""

from __future__ import annotations

from uuid import UUID

from tests.conform.study.changes import (
    DATA,
    GROUPS,
    IDEMPOTENT,
    add_item,
    broker_faults,
    client_faults,
    drop,
    duplicate,
    each_without_error,
    put,
    rebatch,
)

_P = "topic_data.0.partition_data.0.records"
_F = "responses.0.partitions.0.records"
_FP = "responses.0.partitions.0"
_PP = "responses.0.partition_responses.0"
_TP = "topics.0.partitions.0"
_OTHER = UUID(int=99)


_TILL = ("kafka4-librdkafka-transactions", "kafka4-kafkajs", "demo")


def _set(batches, **fields):
    for name, value in fields.items():
        setattr(batches[0], name, value(getattr(batches[0], name)) if callable(value) else value)


def _edit(**fields):
    return lambda batches: _set(batches, **fields)


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
            "codec gzip on plain records": rebatch(_P, _edit(attributes=1)),
        },
    ),
    *broker_faults(
        "batches",
        "Fetch",
        DATA,
        {
            "last offset delta too low in Fetch": rebatch(_F, _edit(last_offset_delta=-1)),
        },
    ),
]

FETCH = [
    *broker_faults(
        "fetch", "Fetch", DATA, {"partition left out": drop("responses.0.partitions.0")}, range(7)
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        DATA,
        {
            "log start -7": put(f"{_FP}.log_start_offset", -7),
        },
    ),
    *broker_faults(
        "fetch",
        "Fetch",
        DATA,
        {"another topic id": add_item("responses.0", "topic_id", _OTHER)},
        range(13, 99),
    ),
    *client_faults(
        "fetch",
        "Fetch",
        DATA,
        {
            "negative max wait": put("max_wait_ms", -1),
        },
    ),
]

PRODUCE = [
    *broker_faults(
        "produce",
        "Produce",
        DATA,
        {
            "partition twice": duplicate(_PP),
        },
    ),
    *broker_faults(
        "produce", "Produce", DATA, {"another topic": put("responses.0.name", "x")}, range(13)
    ),
]

OFFSETS = [
    *broker_faults(
        "offsets",
        "OffsetCommit",
        GROUPS,
        {
            "OffsetCommit leaves out a topic": drop("topics.0"),
        },
    ),
    *broker_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets a partition twice": duplicate(_TP),
        },
    ),
    *client_faults(
        "offsets",
        "ListOffsets",
        DATA,
        {
            "ListOffsets asks for one twice": duplicate(_TP),
        },
    ),
]

PRODUCERS = [
    *client_faults(
        "producers",
        "Produce",
        IDEMPOTENT,
        {
            "sequence -1 with a producer id": rebatch(
                _P, lambda b: _set(b, base_sequence=-1) if b[0].producer_id >= 0 else False
            ),
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
            "AddPartitionsToTxn invents a partition": add_item(_ADDED, "partition_index", 44),
        },
        range(4),
    ),
    *broker_faults(
        "transactions",
        "DescribeTransactions",
        ("kafka4-java-admin",),
        {
            "DescribeTransactions without a state": put(
                "transaction_states.0.transaction_state",
                "",
                each_without_error("transaction_states.0"),
            ),
        },
    ),
]

FAULTS = [*BATCHES, *FETCH, *PRODUCE, *OFFSETS, *PRODUCERS, *TXN]
