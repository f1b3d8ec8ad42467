"""A capture of writes that nothing in it reads again, with each kind of request they consist of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS, api
from dissector.protocol.records import Record, new_batch
from tests.default_frames import request, response
from tests.replay.support.outcomes import filled
from tests.replay.support.replay_captures import saved
from tests.tcp_captures import Wire, WireConnection

LOG, IN_TRANSACTION, GROUP, IN_TRANSACTION_GROUP, TRANSACTIONAL_ID = (
    "orders",
    "paid",
    "g",
    "t-g",
    "t",
)
PARTITIONS = 2
"""Of the log; the second one has a batch."""

BATCHES, RECORDS = 6, 5
END = BATCHES * RECORDS
COMMITTED, COMMITTED_IN_TRANSACTION = 7, 3
_WRITER, _TRANSACTIONAL = 5, 4
_VERSIONS = {
    "Produce": 7,
    "Fetch": 11,
    "ListOffsets": 5,
    "Metadata": 8,
    "InitProducerId": 1,
    "AddPartitionsToTxn": 1,
    "AddOffsetsToTxn": 1,
    "TxnOffsetCommit": 2,
    "EndTxn": 1,
    "OffsetCommit": 6,
    "OffsetForLeaderEpoch": 2,
    "FindCoordinator": 2,
    "CreateTopics": 4,
    "DeleteTopics": 4,
    "DeleteGroups": 1,
}


class _Client:
    """A connection of the capture."""

    def __init__(self, wire: Wire) -> None:
        self._connection: WireConnection = wire.connect(50000 + wire.connections).syn()
        self._number = 0

    def ask(self, name: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        found, version = api(KEYS[name]), _VERSIONS[name]
        assert found is not None
        self._number += 1
        at = found.key, version, self._number
        wanted = filled(found.request.fields, version, body)
        given = filled(found.response.fields, version, answer)
        self._connection.client(request(*at, **wanted))
        self._connection.broker(response(*at, **given))


def unread(folder: Path) -> str:
    """Write two logs, one in a transaction; read one of them, commit offsets of it twice."""
    wire = Wire()
    _write(_Client(wire))
    _write_in_transaction(_Client(wire))
    _read(_Client(wire))
    _commit(_Client(wire))
    return saved(folder, wire)


def removed(folder: Path) -> str:
    """Write a topic that is created, read by a group without members, and deleted with it."""
    wire = Wire()
    client = _Client(wire)
    name, at = "dropped", {"num_partitions": 1, "replication_factor": 1}
    client.ask(
        "CreateTopics",
        {"topics": [{"name": name, **at}], "timeout_ms": 5000},
        {"topics": [{"name": name, "error_message": None}]},
    )
    _commit(client, name)
    client.ask("DeleteGroups", {"groups_names": [GROUP]}, {"results": [{"group_id": GROUP}]})
    client.ask(
        "DeleteTopics",
        {"topic_names": [name], "timeout_ms": 5000},
        {"responses": [{"name": name}]},
    )
    return saved(folder, wire)


def reborn(folder: Path) -> str:
    """Write a topic that is deleted and created again, and written and read in its second life."""
    wire = Wire()
    client = _Client(wire)
    _init(client, None, _WRITER)
    for is_last in (False, True):
        client.ask(
            "CreateTopics",
            {
                "topics": [{"name": LOG, "num_partitions": 1, "replication_factor": 1}],
                "timeout_ms": 5000,
            },
            {"topics": [{"name": LOG, "error_message": None}]},
        )
        for number in range(BATCHES):
            _produce(client, LOG, number, _WRITER)
        if not is_last:
            client.ask(
                "DeleteTopics",
                {"topic_names": [LOG], "timeout_ms": 5000},
                {"responses": [{"name": LOG}]},
            )
    _fetch(client, 0, b"".join(_batch(LOG, n, _WRITER, n * RECORDS) for n in range(BATCHES)))
    return saved(folder, wire)


def _batch(topic: str, number: int, producer_id: int, offset: int = 0) -> bytes:
    records = [
        Record(0, 0, at, b"%d" % at, b"%s %d %d" % (topic.encode(), number, at), (), at, 0)
        for at in range(RECORDS)
    ]
    return new_batch(
        records,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=number * RECORDS,
        partition_leader_epoch=0,
        transactional=producer_id == _TRANSACTIONAL,
    ).to_bytes()


def _init(client: _Client, transactional_id: str | None, producer_id: int) -> None:
    client.ask(
        "InitProducerId",
        {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000},
        {"producer_id": producer_id, "producer_epoch": 0},
    )


def _produce(
    client: _Client, topic: str, number: int, producer_id: int, partition: int = 0
) -> None:
    records = _batch(f"{topic}-{partition}" if partition else topic, number, producer_id)
    transactional_id = TRANSACTIONAL_ID if producer_id == _TRANSACTIONAL else None
    stored = {"index": partition, "base_offset": number * RECORDS, "log_append_time_ms": -1}
    stored["log_start_offset"] = 0
    client.ask(
        "Produce",
        {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout_ms": 5000,
            "topic_data": [
                {"name": topic, "partition_data": [{"index": partition, "records": records}]}
            ],
        },
        {"responses": [{"name": topic, "partition_responses": [stored]}]},
    )


def _write(client: _Client) -> None:
    _init(client, None, _WRITER)
    for number in range(BATCHES):
        _produce(client, LOG, number, _WRITER)
    _produce(client, LOG, 0, _WRITER, partition=1)


def _write_in_transaction(client: _Client) -> None:
    producer = {"producer_id": _TRANSACTIONAL, "producer_epoch": 0}
    title = {"transactional_id": TRANSACTIONAL_ID, **producer}
    added = {f"v3_and_below_{name}": value for name, value in title.items()}
    _init(client, TRANSACTIONAL_ID, _TRANSACTIONAL)
    client.ask(
        "AddPartitionsToTxn",
        {**added, "v3_and_below_topics": [{"name": IN_TRANSACTION, "partitions": [0]}]},
        {
            "results_by_topic_v3_and_below": [
                {"name": IN_TRANSACTION, "results_by_partition": [{"partition_index": 0}]}
            ]
        },
    )
    _produce(client, IN_TRANSACTION, 0, _TRANSACTIONAL)
    group = {"group_id": IN_TRANSACTION_GROUP}
    client.ask("AddOffsetsToTxn", {**title, **group}, {})
    sent = {
        "partition_index": 0,
        "committed_offset": COMMITTED_IN_TRANSACTION,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    client.ask(
        "TxnOffsetCommit",
        {**title, **group, "topics": [{"name": LOG, "partitions": [sent]}]},
        {"topics": [{"name": LOG, "partitions": [{"partition_index": 0}]}]},
    )
    client.ask("EndTxn", {**title, "committed": True}, {})


def _read(client: _Client) -> None:
    nodes = {"leader_id": 1, "leader_epoch": 0, "replica_nodes": [1], "isr_nodes": [1]}
    partitions = [{"partition_index": at, **nodes} for at in range(PARTITIONS)]
    client.ask(
        "Metadata",
        {"topics": [{"name": LOG}], "allow_auto_topic_creation": False},
        {
            "brokers": [{"node_id": 1, "host": "broker", "port": 9092}],
            "controller_id": 1,
            "topics": [{"name": LOG, "partitions": partitions}],
        },
    )
    for when, offset in ((-2, 0), (-1, END)):
        asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": when}
        found = {"partition_index": 0, "timestamp": -1, "offset": offset, "leader_epoch": 0}
        client.ask(
            "ListOffsets",
            {"replica_id": -1, "topics": [{"name": LOG, "partitions": [asked]}]},
            {"topics": [{"name": LOG, "partitions": [found]}]},
        )
    asked = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    ended = {"partition": 0, "leader_epoch": 0, "end_offset": END}
    client.ask(
        "OffsetForLeaderEpoch",
        {"topics": [{"topic": LOG, "partitions": [asked]}]},
        {"topics": [{"topic": LOG, "partitions": [ended]}]},
    )
    for start in (0, END):
        batches = [_batch(LOG, n, _WRITER, n * RECORDS) for n in range(BATCHES) if not start]
        _fetch(client, start, b"".join(batches), b"" if start else _batch(f"{LOG}-1", 0, _WRITER))


def _fetch(client: _Client, start: int, records: bytes, beside: bytes = b"") -> None:
    """Fetch the first partition, and with records in it the second one."""
    asked = {
        "current_leader_epoch": -1,
        "fetch_offset": start,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    found = {"log_start_offset": 0, "aborted_transactions": [], "preferred_read_replica": -1}
    ends = {"high_watermark": END, "last_stable_offset": END}
    found_beside = {"high_watermark": RECORDS, "last_stable_offset": RECORDS, "records": beside}
    both: list[dict[str, Any]] = [ends | {"records": records}]
    both += [found_beside] if beside else []
    client.ask(
        "Fetch",
        {
            "replica_id": -1,
            "max_wait_ms": 10,
            "max_bytes": 1 << 20,
            "isolation_level": 1,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": LOG,
                    "partitions": [{"partition": at, **asked} for at in range(len(both))],
                }
            ],
        },
        {
            "responses": [
                {
                    "topic": LOG,
                    "partitions": [
                        {"partition_index": at, **found, **each} for at, each in enumerate(both)
                    ],
                }
            ]
        },
    )


def _commit(client: _Client, topic: str = LOG) -> None:
    client.ask(
        "FindCoordinator",
        {"key": GROUP, "key_type": 0},
        {"node_id": 1, "host": "broker", "port": 9092},
    )
    sent = {
        "partition_index": 0,
        "committed_offset": COMMITTED,
        "committed_leader_epoch": -1,
        "committed_metadata": "m",
    }
    client.ask(
        "OffsetCommit",
        {
            "group_id": GROUP,
            "generation_id_or_member_epoch": -1,
            "topics": [{"name": topic, "partitions": [sent]}],
        },
        {"topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]},
    )
