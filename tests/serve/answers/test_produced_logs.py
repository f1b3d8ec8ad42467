"""Consumers fetch records produced by clients, as from a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dissector.protocol.records import Record, new_batch, parse_records
from serve.public import Cassette
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient

NAME = "kafka4-aiokafka-transactions"
TOPIC, PRODUCER = f"{NAME}.orders", f"{NAME}.tx"
READ_COMMITTED = 1


@pytest.fixture
def client() -> Iterator[RawClient]:
    capture = SHIPPED / f"{NAME}.pcap"
    with (
        Cassette(capture, strict=False, follows_producers=True) as served,
        RawClient(served.bootstrap, "aiokafka-tx") as raw,
    ):
        yield raw
    assert not served.misses


def _begin(client: RawClient) -> dict[str, int]:
    begun = client.ask("InitProducerId", 0, transactional_id=PRODUCER)
    while begun.error_code:
        begun = client.ask("InitProducerId", 0, transactional_id=PRODUCER)
    return {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}


def _produce(client: RawClient, producer: dict[str, int], sequence: int, *values: bytes) -> int:
    """Send a batch of one record for each value, all in one request."""
    data = b"".join(
        new_batch(
            [Record(0, 0, 0, b"k", value, (), 0, 5)],
            base_sequence=sequence + number,
            transactional=True,
            **producer,
        ).to_bytes()
        for number, value in enumerate(values)
    )
    topics = [{"name": TOPIC, "partition_data": [{"index": 0, "records": data}]}]
    fields = {"transactional_id": PRODUCER, "acks": -1, "timeout_ms": 100}
    answer = client.ask("Produce", 7, topic_data=topics, **fields)
    offset: int = answer.responses[0].partition_responses[0].base_offset
    return offset


def _end(client: RawClient, producer: dict[str, int], *, committed: bool) -> None:
    values = {"transactional_id": PRODUCER, "committed": committed, **producer}
    assert client.ask("EndTxn", 0, **values).error_code == 0


def _fetch(client: RawClient, isolation: int) -> Any:
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    wanted |= {"current_leader_epoch": -1, "log_start_offset": -1}
    topics = [{"topic": TOPIC, "partitions": [wanted]}]
    values = {"max_bytes": 1 << 20, "max_wait_ms": 10, "isolation_level": isolation}
    return client.ask("Fetch", 11, topics=topics, **values).responses[0].partitions[0]


def _records(part: Any) -> list[tuple[int, bytes | str | None]]:
    return [
        (record.offset, record.control_type or record.value)
        for batch in parse_records(part.records or b"")
        for record in batch.records
    ]


def _stable_end(client: RawClient) -> int:
    part = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": TOPIC, "partitions": [part]}]
    values = {"replica_id": -1, "isolation_level": READ_COMMITTED}
    offset: int = (
        client.ask("ListOffsets", 4, topics=topics, **values).topics[0].partitions[0].offset
    )
    return offset


def test_an_open_transaction_is_not_stable(client: RawClient) -> None:
    producer = _begin(client)
    assert _produce(client, producer, 0, b"mine") == 0
    assert _records(_fetch(client, READ_COMMITTED)) == []
    assert _stable_end(client) == 0
    found = _fetch(client, 0)
    assert _records(found) == [(0, b"mine")]
    assert (found.high_watermark, found.last_stable_offset) == (1, 0)
    _end(client, producer, committed=True)
    found = _fetch(client, READ_COMMITTED)
    assert _records(found) == [(0, b"mine"), (1, "COMMIT")]
    (marker,) = parse_records(found.records)[-1].records
    assert (marker.key, marker.value) == (b"\0\0\0\1", bytes(6))
    assert _stable_end(client) == 2


def test_each_batch_of_a_request_follows_the_one_before(client: RawClient) -> None:
    producer = _begin(client)
    assert _produce(client, producer, 0, b"a", b"b", b"c") == 0
    assert _produce(client, producer, 3, b"d") == 3
    assert _records(_fetch(client, 0)) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_an_aborted_transaction_is_listed(client: RawClient) -> None:
    producer = _begin(client)
    _produce(client, producer, 0, b"never")
    _end(client, producer, committed=False)
    _produce(client, producer, 1, b"mine")
    _end(client, producer, committed=True)
    found = _fetch(client, READ_COMMITTED)
    expected = [(0, b"never"), (1, "ABORT"), (2, b"mine"), (3, "COMMIT")]
    assert _records(found) == expected
    (aborted,) = found.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (producer["producer_id"], 0)


def test_a_new_producer_aborts_the_open_transaction_of_the_older(client: RawClient) -> None:
    older = _begin(client)
    _produce(client, older, 0, b"never")
    _begin(client)
    assert _records(_fetch(client, READ_COMMITTED)) == [(0, b"never"), (1, "ABORT")]
