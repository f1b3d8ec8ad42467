"""Answers that no captured one gives: composed from the capture and from what clients did."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dissector.protocol.records import iter_records, parse_records
from serve.answers.served_state import ServedState
from serve.public import Cassette
from serve.recording.served_recording import Recording
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient
from tests.waiting import wait_until

NAME = "kafka4-librdkafka-group"
TOPIC, GROUP = f"{NAME}.orders", f"{NAME}.group"
FENCED = "kafka4-librdkafka-fenced"


@pytest.fixture
def client() -> Iterator[RawClient]:
    with (
        Cassette(SHIPPED / f"{NAME}.pcap", strict=True) as served,
        RawClient(served.bootstrap) as client,
    ):
        yield client


@pytest.fixture
def producer() -> Iterator[RawClient]:
    """A client with the client id of the older, transactional producer of its capture."""
    with (
        Cassette(SHIPPED / f"{FENCED}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "older") as client,
    ):
        yield client


def test_records_are_deleted_up_to_the_requested_offset(client: RawClient) -> None:
    parts = [{"partition_index": 0, "offset": 3}, {"partition_index": 1, "offset": -1}]
    topics = [{"name": TOPIC, "partitions": parts}]
    (topic,) = client.ask("DeleteRecords", 1, topics=topics).topics
    found = [
        (each.partition_index, each.low_watermark, each.error_code) for each in topic.partitions
    ]
    assert (topic.name, found) == (TOPIC, [(0, 3, 0), (1, 0, 0)])


def test_all_epochs_end_at_the_end_of_the_log(client: RawClient) -> None:
    part = {"partition": 1, "current_leader_epoch": -1, "leader_epoch": 5}
    topics = [{"topic": TOPIC, "partitions": [part]}]
    (topic,) = client.ask("OffsetForLeaderEpoch", 3, replica_id=-1, topics=topics).topics
    (found,) = topic.partitions
    expected = (TOPIC, 1, 0, 5, 10)
    assert (
        topic.topic,
        found.partition,
        found.error_code,
        found.leader_epoch,
        found.end_offset,
    ) == expected


def committed(client: RawClient, version: int, topics: Any = None) -> dict[int, int]:
    """Return the committed offsets of all partitions, or of some."""
    answer = client.ask("OffsetFetch", version, group_id=GROUP, topics=topics)
    assert answer.error_code == 0
    return {
        part.partition_index: part.committed_offset
        for topic in answer.topics
        for part in topic.partitions
    }


def commit(client: RawClient, partition: int, offset: int) -> None:
    part = {"partition_index": partition, "committed_offset": offset}
    part |= {"committed_leader_epoch": -1, "committed_metadata": ""}
    topics = [{"name": TOPIC, "partitions": [part]}]
    (topic,) = client.ask("OffsetCommit", 8, group_id=GROUP, topics=topics).topics
    assert topic.partitions[0].error_code == 0


def test_all_offsets_of_a_group_are_those_captured_and_those_of_clients(client: RawClient) -> None:
    captured = committed(client, 7)
    commit(client, 7, 70)
    assert committed(client, 7) == {**captured, 7: 70}
    commit(client, 1, 9)
    assert committed(client, 7) == {**captured, 1: 9, 7: 70}
    assert committed(client, 7, [{"name": TOPIC, "partition_indexes": [8]}]) == {8: -1}


def test_a_group_is_fetched_with_its_name(client: RawClient) -> None:
    asked = [{"group_id": GROUP, "topics": None}]
    (group,) = client.ask("OffsetFetch", 8, groups=asked).groups
    assert (group.group_id, group.error_code) == (GROUP, 0)


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_old_versions_of_fetch_have_message_sets(
    client: RawClient, version: int, magic: int
) -> None:
    def rows(version: int, offset: int) -> list[Any]:
        part = {"partition": 1, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        topics = [{"topic": TOPIC, "partitions": [part]}]
        limits = {"max_wait_ms": 1, "min_bytes": 1, "topics": topics}
        (topic,) = client.ask("Fetch", version, replica_id=-1, **limits).responses
        (found,) = topic.partitions
        assert found.error_code == 0
        return [row for row in iter_records(parse_records(found.records)) if row.offset >= offset]

    newest, found = rows(11, 2), rows(version, 2)
    assert {row.magic for row in found} == {magic}
    assert [(row.offset, row.key, row.value) for row in found] == [
        (row.offset, row.key, row.value) for row in newest
    ]
    assert [row.offset for row in found][:2] == [2, 3]


def test_an_unknown_transactional_id_is_played_as_a_captured_one(producer: RawClient) -> None:
    other = producer.ask("InitProducerId", 3, transactional_id="mine")
    assert (other.error_code, other.producer_id >= 0) == (0, True)
    values = {"transactional_id": "mine", "producer_id": other.producer_id}
    values |= {"producer_epoch": other.producer_epoch, "group_id": "any"}
    assert producer.ask("AddOffsetsToTxn", 3, **values).error_code == 0


def test_steps_of_an_unknown_transaction_are_misses() -> None:
    values = {"transactional_id": "mine", "producer_id": 1, "producer_epoch": 0}
    partitions = [{"name": f"{FENCED}.orders", "partitions": [0]}]
    added = [{**values, "verify_only": False, "topics": partitions}]
    with (
        Cassette(SHIPPED / f"{FENCED}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "another") as client,
    ):
        client.ask("AddPartitionsToTxn", 4, transactions=added)
        client.ask("AddOffsetsToTxn", 3, group_id="any", **values)
        client.ask("EndTxn", 3, committed=True, **values)
    assert [(miss.api, miss.what) for miss in served.misses] == [
        (api, "transactional id mine")
        for api in ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")
    ]


@pytest.mark.parametrize(("version", "raises"), [(4, False), (5, True)])
def test_the_end_of_a_transaction_raises_the_epoch_from_version_5_on(
    producer: RawClient, version: int, raises: bool
) -> None:
    begun = producer.ask("InitProducerId", 3, transactional_id=f"{FENCED}.tx")
    values = {"transactional_id": f"{FENCED}.tx", "producer_id": begun.producer_id}
    values |= {"producer_epoch": begun.producer_epoch, "committed": True}
    answer = producer.ask("EndTxn", version, **values)
    assert answer.error_code == 0
    found = (answer.get("producer_id", -1), answer.get("producer_epoch", -1))
    assert found == ((begun.producer_id, begun.producer_epoch + 1) if raises else (-1, -1))


def test_further_producers_have_ids_of_their_own(client: RawClient) -> None:
    first, second = (client.ask("InitProducerId", 3, transactional_id=None) for _ in range(2))
    assert (first.error_code, first.producer_epoch, second.producer_epoch) == (0, 0, 0)
    assert second.producer_id == first.producer_id + 1


def test_the_metadata_of_another_cluster_names_the_listeners() -> None:
    topic = f"{FENCED}.orders"
    with (
        Cassette(SHIPPED / f"{FENCED}.pcap", strict=True) as upstream,
        Cassette(SHIPPED / f"{NAME}.pcap", upstream=upstream.bootstrap) as served,
        RawClient(served.bootstrap) as client,
    ):
        wanted = [{"name": topic}]
        # It is created in the capture: the first answers lack it.
        wait_until(lambda: not client.ask("Metadata", 9, topics=wanted).topics[0].error_code)
        answer = client.ask("Metadata", 9, topics=wanted)
        brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
        (node,) = served.addresses
    assert brokers == served.addresses
    assert answer.controller_id == node
    (found,) = answer.topics
    assert (found.name, found.error_code) == (topic, 0)
    for part in found.partitions:
        nodes = (part.leader_id, part.replica_nodes, part.isr_nodes, part.offline_replicas)
        assert nodes == (node, [node], [node], [])


def test_wildcard_addresses_are_those_that_clients_reached() -> None:
    state = ServedState(cast("Recording", SimpleNamespace()))
    state.addresses = {1: ("0.0.0.0", 9092), 2: ("10.1.1.1", 9093)}
    assert state.addresses_at("127.0.0.5") == {1: ("127.0.0.5", 9092), 2: ("10.1.1.1", 9093)}
    assert state.addresses_at("") == state.addresses
