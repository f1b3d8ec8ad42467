"""The sweep's fourth part: producer ids and transactions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tools.record.sweep.client import SweepClient
from tools.record.sweep.data_sweep import create_topics, produce, records
from tools.record.sweep.group_sweep import FIND_COORDINATOR, find_coordinator

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, WRITE_MARKERS = 22, 24, 25, 26, 27
TXN_OFFSET_COMMIT, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 28, 61, 65, 66
KEYS = (
    INIT_PRODUCER_ID,
    ADD_PARTITIONS,
    ADD_OFFSETS,
    END_TXN,
    WRITE_MARKERS,
    TXN_OFFSET_COMMIT,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
)
_TOPIC = "sweep.transactions.written"
_OF_TRANSACTIONS = 1
_ADDED_BY_CLIENTS = 11
"""The last version of Produce before brokers add partitions themselves (KIP-890)."""


def transactions(client: SweepClient) -> None:
    """Send all versions of transaction requests, one transaction after the other."""
    topic_id = create_topics(client, _TOPIC)[_TOPIC]
    for number in client.rounds(*KEYS, FIND_COORDINATOR):
        transaction(client, number, topic_id)
    client.rest(KEYS)


def transaction(client: SweepClient, number: int, topic_id: UUID, topic: str = _TOPIC) -> None:
    """Run a transaction with committed offsets, with each API at the version of this round."""
    name, group = f"sweep.transaction.{number}", f"sweep.transactions.group.{number}"
    find_coordinator(client, max(number, 1), name, _OF_TRANSACTIONS)
    find_coordinator(client, number, group)
    wish = {"transactional_id": name, "transaction_timeout_ms": 30_000}
    begun = client.request_next(INIT_PRODUCER_ID, number, **wish, producer_id=-1, producer_epoch=-1)
    assert begun is not None, "no response to InitProducerId"
    who: dict[str, Any] = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    _fill(client, number, name, (topic, topic_id), who)
    client.request_next(ADD_OFFSETS, number, transactional_id=name, **who, group_id=group)
    committed = {"partition_index": 0, "committed_offset": number, "committed_metadata": None}
    partitions = [{**committed, "committed_leader_epoch": 0}]
    topics = [{"name": topic, "topic_id": topic_id, "partitions": partitions}]
    client.request_next(
        TXN_OFFSET_COMMIT, number, transactional_id=name, group_id=group, **who, topics=topics
    )
    here = [{"name": topic, "partition_indexes": [0]}]
    client.request_next(DESCRIBE_PRODUCERS, number, topics=here)
    client.request_next(DESCRIBE_TRANSACTIONS, number, transactional_ids=[name, "sweep.unknown"])
    client.request_next(
        LIST_TRANSACTIONS,
        number,
        state_filters=["Ongoing"],
        producer_id_filters=[begun.producer_id],
        transactional_id_pattern="sweep.*",
    )
    client.request_next(END_TXN, number, transactional_id=name, **who, committed=number % 2 == 0)
    marker = {**who, "transaction_result": False, "topics": here, "coordinator_epoch": 0}
    client.request_next(WRITE_MARKERS, number, markers=[marker])


def _fill(
    client: SweepClient, number: int, name: str, topic: tuple[str, UUID], who: dict[str, Any]
) -> None:
    """Add the partition to the transaction, and records to the partition."""
    topics = [{"name": topic[0], "partitions": [0]}]
    client.request_next(
        ADD_PARTITIONS,
        number,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who["producer_id"],
        v3_and_below_producer_epoch=who["producer_epoch"],
        v3_and_below_topics=topics,
        transactions=[{"transactional_id": name, **who, "topics": topics}],
    )
    data = records(base_sequence=0, transactional=True, **who)
    versions = client.versions(0)
    version = min(versions[-1], _ADDED_BY_CLIENTS) if number < 5 else versions[-1]
    produce(client, version, *topic, data, name)
