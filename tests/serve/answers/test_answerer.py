"""Responses to clients with other requests than the captured ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import NO_ID
from dissector.protocol.records import Record, new_batch, parse_records
from serve.public import Cassette
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient
from tests.waiting import wait_until

NAME = "kafka4-librdkafka-group"
TOPIC, GROUP = f"{NAME}.orders", f"{NAME}.group"
OUT_OF_RANGE = error_code("OFFSET_OUT_OF_RANGE")
UNKNOWN_TOPIC = error_code("UNKNOWN_TOPIC_OR_PARTITION")
REBALANCES = error_code("REBALANCE_IN_PROGRESS")
UNSTABLE = error_code("UNSTABLE_OFFSET_COMMIT")
FENCED = (error_code("INVALID_PRODUCER_EPOCH"), error_code("PRODUCER_FENCED"))


@pytest.fixture
def served() -> Iterator[Cassette]:
    with Cassette(SHIPPED / f"{NAME}.pcap", strict=True) as cassette:
        yield cassette


def _fetch(client: RawClient, partition: int, offset: int, **options: Any) -> Any:
    wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    wanted |= {"current_leader_epoch": -1, "log_start_offset": -1, "last_fetched_epoch": -1}
    topics = [{"topic": TOPIC, "partitions": [wanted]}]
    options = {"max_bytes": 1 << 20, "max_wait_ms": 100} | options
    return client.ask("Fetch", 12, topics=topics, **options).responses[0].partitions[0]


def _offsets(part: Any) -> list[int]:
    return [record.offset for batch in parse_records(part.records) for record in batch.records]


def _produce(client: RawClient, partition: int, count: int = 1, **producer: Any) -> Any:
    records = [Record(0, 0, each, b"k", b"v", (), each, 5) for each in range(count)]
    data = new_batch(records, **producer).to_bytes()
    topics = [{"name": TOPIC, "partition_data": [{"index": partition, "records": data}]}]
    answer = client.ask("Produce", 9, acks=-1, timeout_ms=100, topic_data=topics)
    return answer.responses[0].partition_responses[0]


def test_records_are_fetched_from_any_position(served: Cassette) -> None:
    with RawClient(served.bootstrap) as client:
        assert _offsets(_fetch(client, 1, 0))[-1] == 9
        assert 4 in _offsets(_fetch(client, 1, 4))
        assert _fetch(client, 1, 10).records == b""
        assert _fetch(client, 1, 11).error_code == OUT_OF_RANGE
    assert [each.what for each in served.misses] == [f"offset 11 of {TOPIC}-1"]


def test_a_fetch_waits_for_a_producer(served: Cassette) -> None:
    with RawClient(served.bootstrap) as consumer, RawClient(served.bootstrap, "other") as producer:
        _produce(producer, 1, 10)
        wanted = {"partition": 1, "fetch_offset": 10, "partition_max_bytes": 1 << 20}
        wanted |= {"current_leader_epoch": -1, "log_start_offset": -1, "last_fetched_epoch": -1}
        topics = [{"topic": TOPIC, "partitions": [wanted]}]
        consumer.send_request("Fetch", 12, topics=topics, max_bytes=1 << 20, max_wait_ms=30_000)
        assert _produce(producer, 1).base_offset == 10
        answer = consumer.receive_response("Fetch", 12)
    assert _offsets(answer.responses[0].partitions[0]) == [10]


def test_a_retried_batch_keeps_its_offset(served: Cassette) -> None:
    producer = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    with RawClient(served.bootstrap) as client:
        first, again = (_produce(client, 1, 2, **producer).base_offset for _ in range(2))
        assert first == again
        producer["base_sequence"] = 2
        assert _produce(client, 1, 1, **producer).base_offset == first + 2


def test_topics_outside_the_capture_are_unknown(served: Cassette) -> None:
    with RawClient(served.bootstrap) as client:
        wanted = [{"name": "new", "topic_id": NO_ID}]
        (topic,) = client.ask("Metadata", 9, topics=wanted).topics
        assert topic.error_code == UNKNOWN_TOPIC
        assert _fetch(client, 9, 0).error_code == UNKNOWN_TOPIC
        assert _produce(client, 9).error_code == UNKNOWN_TOPIC
        part = {"partition_index": 9, "current_leader_epoch": -1, "timestamp": -1}
        topics = [{"name": TOPIC, "partitions": [part]}]
        (listed,) = client.ask("ListOffsets", 5, replica_id=-1, topics=topics).topics
        assert (listed.partitions[0].error_code, listed.partitions[0].offset) == (UNKNOWN_TOPIC, -1)
    assert [each.api for each in served.misses] == ["Metadata", "Fetch", "Produce", "ListOffsets"]
    assert served.misses[-1].what == f"partition 9 of topic {TOPIC}"


def test_a_topic_id_unknown_then_is_unknown_again() -> None:
    unknown = UUID(int=9)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    part |= {"current_leader_epoch": -1, "log_start_offset": -1, "last_fetched_epoch": -1}
    topics = [{"topic_id": unknown, "partitions": [part]}]
    with (
        Cassette(SHIPPED / "kafka4-sweep-data.pcap", strict=True) as served,
        RawClient(served.bootstrap) as client,
    ):
        (topic,) = client.ask("Fetch", 18, topics=topics, max_bytes=1 << 20).responses
    assert topic.topic_id == unknown
    assert topic.partitions[0].error_code == error_code("UNKNOWN_TOPIC_ID")
    assert not served.misses


def test_ends_of_partitions_advance(served: Cassette) -> None:
    with RawClient(served.bootstrap) as client:
        _produce(client, 0, 3)
        for time, expected in ((-2, 0), (-1, 3)):
            part = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": time}
            topics = [{"name": TOPIC, "partitions": [part]}]
            (found,) = client.ask("ListOffsets", 5, replica_id=-1, topics=topics).topics
            assert found.partitions[0].offset == expected


def test_commits_are_kept(served: Cassette) -> None:
    part = {"partition_index": 1, "committed_offset": 7, "committed_leader_epoch": -1}
    part["committed_metadata"] = "by hand"
    with RawClient(served.bootstrap) as client:
        topics = [{"name": TOPIC, "partitions": [part]}]
        client.ask("OffsetCommit", 8, group_id=GROUP, topics=topics)
        wanted = [{"name": TOPIC, "partition_indexes": [1]}]
        (topic,) = client.ask("OffsetFetch", 7, group_id=GROUP, topics=wanted).topics
        assert (topic.partitions[0].committed_offset, topic.partitions[0].metadata) == (
            7,
            "by hand",
        )
    assert not served.misses


def _join(client: RawClient, member: str) -> Any:
    options = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}
    return client.ask(
        "JoinGroup", 5, group_id=GROUP, member_id=member, protocol_type="consumer", **options
    )


def test_members_rejoin_when_another_one_joins(served: Cassette) -> None:
    def beat(client: RawClient, joined: Any) -> int:
        values = {"generation_id": joined.generation_id, "member_id": joined.member_id}
        code: int = client.ask("Heartbeat", 3, group_id=GROUP, **values).error_code
        return code

    with (
        RawClient(served.bootstrap, "rdkafka-first") as first,
        RawClient(served.bootstrap, "rdkafka-second") as second,
    ):
        joined = _join(first, _join(first, "").member_id)
        assert [beat(first, joined) for _ in range(20)] == [0] * 20
        member = _join(second, "").member_id
        second.send_request(
            *("JoinGroup", 5),
            group_id=GROUP,
            member_id=member,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
        )
        wait_until(lambda: beat(first, joined) == REBALANCES)
        again = _join(first, joined.member_id)
        other = second.receive_response("JoinGroup", 5)
        assert again.generation_id == other.generation_id > joined.generation_id
        assert {each.member_id for each in again.members} == {joined.member_id, member}
    assert not served.misses


def test_another_group_is_a_miss(served: Cassette) -> None:
    with RawClient(served.bootstrap) as client:
        assert client.ask("Heartbeat", 3, group_id="other").error_code == -1
    (miss,) = served.misses
    assert (miss.what, miss.field, miss.captured, miss.sent) == ("group other", "", None, None)


def test_an_older_producer_is_fenced_by_a_newer_one() -> None:
    name = "kafka4-librdkafka-fenced"
    with (
        Cassette(SHIPPED / f"{name}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "older") as older,
        RawClient(served.bootstrap, "newer") as newer,
    ):

        def begin(client: RawClient) -> Any:
            return client.ask("InitProducerId", 3, transactional_id=f"{name}.tx")

        def add(client: RawClient, begun: Any) -> int:
            values = {
                "v3_and_below_transactional_id": f"{name}.tx",
                "v3_and_below_producer_id": begun.producer_id,
                "v3_and_below_producer_epoch": begun.producer_epoch,
                "v3_and_below_topics": [{"name": f"{name}.orders", "partitions": [1]}],
            }
            (topic,) = client.ask("AddPartitionsToTxn", 3, **values).results_by_topic_v3_and_below
            code: int = topic.results_by_partition[0].partition_error_code
            return code

        first = begin(older)
        assert add(older, first) == 0
        wait_until(lambda: not begin(newer).error_code)
        assert add(older, first) in FENCED
    assert not served.misses


def test_offsets_in_an_open_transaction_are_unstable() -> None:
    name = "kafka4-aiokafka-transactions"
    topic, group = f"{name}.orders", f"{name}.group"
    with (
        Cassette(SHIPPED / f"{name}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "aiokafka-tx") as client,
    ):
        begun = client.ask("InitProducerId", 0, transactional_id=f"{name}.tx")
        producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        producer["transactional_id"] = f"{name}.tx"
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        topics = [{"name": topic, "partitions": [part]}]
        client.ask("TxnOffsetCommit", 0, group_id=group, topics=topics, **producer)

        def committed() -> tuple[int, int]:
            wanted = [{"name": topic, "partition_indexes": [0]}]
            found = client.ask("OffsetFetch", 7, group_id=group, topics=wanted, require_stable=True)
            (answer,) = found.topics[0].partitions
            return answer.error_code, answer.committed_offset

        assert committed()[0] == UNSTABLE
        client.ask("EndTxn", 0, committed=True, **producer)
        assert committed() == (0, 5)
