from __future__ import annotations

import asyncio
import ctypes
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import Cluster
from cluster.client.endpoint import resolve
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.records import Record, new_batch
from replay import Plan, replay
from tests.replay.support.closing import assert_closed
from tests.waiting import PATIENCE_S

DEMO = Path(__file__).parents[3] / "captures/demo.pcap"

JOINS = {
    "group_id": "g",
    "session_timeout_ms": 6000,
    "rebalance_timeout_ms": 6000,
    "member_id": "",
    "group_instance_id": None,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}


INVALID_RECORD = 87


def with_link(do: Callable[[BrokerConnection], Awaitable[None]]) -> None:
    async def main(address: str) -> None:
        host, _, port = address.rpartition(":")
        link = await BrokerConnection.open(await resolve(host, int(port), 20), timeout_s=PATIENCE_S)
        try:
            await do(link)
        finally:
            link.close()

    with EmbeddedBroker(topics={"orders": 1}) as embedded:
        asyncio.run(main(embedded.addresses[0]))


def produce(acks: int) -> dict[str, object]:
    data = new_batch([Record(value=b"lamp")]).to_bytes()
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
    return {"transactional_id": None, "acks": acks, "timeout_ms": 1000, "topic_data": [topic]}


@pytest.mark.parametrize("records", [b"", None])
@pytest.mark.parametrize("version", [2, 7])
def test_a_partition_without_records_is_refused(records: bytes | None, version: int) -> None:
    async def do(link: BrokerConnection) -> None:
        partitions = [{"index": 0, "records": records}]
        body = {"acks": 1, "timeout_ms": 1000, "transactional_id": None}
        body["topic_data"] = [{"name": "orders", "partition_data": partitions}]
        response = await link.request(KEYS["Produce"], version, body)
        assert response is not None
        (topic,) = response.responses
        (partition,) = topic.partition_responses
        assert topic.name == "orders"
        assert (partition.error_code, partition.base_offset) == (INVALID_RECORD, -1)

    with_link(do)


def test_brokers_listen_at_their_advertised_addresses() -> None:
    async def main(addresses: list[str]) -> None:
        cluster = await Cluster.connect(addresses[:1], timeout_s=PATIENCE_S)
        shown = [f"{broker.host}:{broker.port}" for _, broker in sorted(cluster.brokers.items())]
        cluster.close()
        assert shown == addresses

    with EmbeddedBroker(brokers=3, topics={"orders": 6}) as embedded:
        asyncio.run(main(embedded.addresses))


def test_responses_of_front_and_mock_keep_the_order_of_requests() -> None:
    metadata = {"topics": None, "allow_auto_topic_creation": False}

    async def do(link: BrokerConnection) -> None:
        pending = [
            link.send(*each)
            for each in (
                (KEYS["Metadata"], 4, metadata),
                (KEYS["JoinGroup"], 5, JOINS),
                (KEYS["ListOffsets"], 1, {"replica_id": -1, "topics": []}),
                (KEYS["JoinGroup"], 4, JOINS),
                (KEYS["Metadata"], 4, metadata),
            )
        ]
        answers = [await each.response() for each in pending]
        assert [answer.get("error_code") for answer in answers if answer] == [
            None,
            79,
            None,
            79,
            None,
        ]

    with_link(do)


@pytest.mark.parametrize("version", [2, 5, 7])
def test_the_broker_takes_produce_in_any_version_and_with_acks_0(version: int) -> None:
    async def do(link: BrokerConnection) -> None:
        assert (
            await link.request(KEYS["Produce"], version, produce(acks=0), expects_response=False)
            is None
        )
        answer = await link.request(KEYS["Produce"], version, produce(acks=1))
        assert answer is not None
        (partition,) = answer.responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (0, 1)

    with_link(do)


def test_a_request_with_acks_0_before_a_close_is_processed() -> None:
    partition = {"partition_index": 0, "timestamp": -1}
    list_offsets = {"replica_id": -1, "topics": [{"name": "orders", "partitions": [partition]}]}

    async def main(port: int) -> None:
        endpoint = await resolve("127.0.0.1", port, 20)
        staying = await BrokerConnection.open(endpoint, timeout_s=PATIENCE_S)
        for _ in range(20):
            leaving = await BrokerConnection.open(endpoint, timeout_s=PATIENCE_S)
            for _ in range(5):
                await leaving.request(KEYS["Produce"], 7, produce(acks=0), expects_response=False)
            leaving.close()
        async with asyncio.timeout(20):
            listed = None
            while listed is None or listed.topics[0].partitions[0].offset < 100:
                listed = await staying.request(KEYS["ListOffsets"], 1, list_offsets)
        staying.close()

    with EmbeddedBroker(topics={"orders": 1}) as embedded:
        asyncio.run(main(int(embedded.addresses[0].rpartition(":")[2])))


def test_all_offsets_of_a_group_can_be_fetched() -> None:
    async def do(link: BrokerConnection) -> None:
        body = {"group_id": "g", "topics": None, "require_stable": False}
        answer = await link.request(KEYS["OffsetFetch"], 6, body)
        assert answer is not None
        assert (answer.error_code, answer.topics) == (0, [])

    with_link(do)


def test_no_heartbeat_crashes_the_process() -> None:
    beats: dict[str, object] = {
        "group_id": "g",
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 6000,
        "server_assignor": None,
        "topic_partitions": [],
    }

    async def do(link: BrokerConnection) -> None:
        epoch = 0
        for member, names, pattern, error in (
            ("", ["orders"], None, 42),
            ("m", ["orders"], None, 0),
            ("m", None, "", 0),
            ("m", None, None, 0),
        ):
            of_member = {"member_id": member, "member_epoch": epoch}
            asks = {"subscribed_topic_names": names, "subscribed_topic_regex": pattern}
            answer = await link.request(KEYS["ConsumerGroupHeartbeat"], 1, beats | of_member | asks)
            assert answer is not None
            assert answer.error_code == error
            epoch = answer.member_epoch

    with_link(do)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_member_leaves_in_any_version(version: int) -> None:
    member = {"member_id": "m", "group_instance_id": None, "reason": None}

    async def do(link: BrokerConnection) -> None:
        body = {"group_id": "g", "member_id": "m", "members": [member]}
        answer = await link.request(KEYS["LeaveGroup"], version, body)
        assert answer is not None
        assert answer.error_code == 69
        assert [each.member_id for each in answer.get("members", [])] == ["m"] * (version > 2)

    with_link(do)


@pytest.mark.parametrize(
    ("members", "errors"),
    [
        ([("m", "static")], [0]),
        ([("", "static")], [25]),
        ([("m", None), ("n", None)], [25, 25]),
    ],
)
def test_static_members_leave_by_their_ids(
    members: list[tuple[str, str | None]], errors: list[int]
) -> None:
    """The mock removes one member, by its id; Kafka also by its instance id, and several."""
    each = [{"member_id": m, "group_instance_id": i, "reason": None} for m, i in members]

    async def do(link: BrokerConnection) -> None:
        answer = await link.request(KEYS["LeaveGroup"], 4, {"group_id": "g", "members": each})
        assert answer is not None
        left = [(one.member_id, one.group_instance_id, one.error_code) for one in answer.members]
        assert left == [(*member, error) for member, error in zip(members, errors, strict=True)]

    with_link(do)


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup"])
def test_group_apis_work_in_flexible_versions(name: str) -> None:
    syncs = {
        "group_id": "g",
        "generation_id": 1,
        "member_id": "m",
        "group_instance_id": None,
        "assignments": [],
    }

    async def do(link: BrokerConnection) -> None:
        body, error = (JOINS, 79) if name == "JoinGroup" else (syncs, 69)
        answer = await link.request(KEYS[name], link.versions[KEYS[name]][1], body)
        assert answer is not None
        assert answer.error_code == error

    with_link(do)


@pytest.mark.long
def test_the_demo_capture_replays_without_difference() -> None:
    with Plan.of(DEMO) as plan:
        report = replay(plan, "mock", noise=["ApiVersions"], timeout_s=PATIENCE_S)
    assert report.passed, str(report)


def test_the_broker_closes_its_connections_at_the_end() -> None:
    with EmbeddedBroker() as embedded:
        host, _, port = embedded.addresses[0].rpartition(":")
        client = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        client.sendall(bytes((0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255)))
        assert client.recv(8)[4:] == bytes((0, 0, 0, 1))
    with client:
        while client.recv(4096):
            pass
    with pytest.raises(ReplayError, match="refused"):
        asyncio.run(Cluster.connect(embedded.addresses))


def test_a_failed_start_leaves_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    with pytest.raises(ReplayError, match="with 0 brokers"), EmbeddedBroker(0):
        pass
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    with (
        pytest.raises(ReplayError, match=r"can not be started: .*pip install 'kafkashark\[mock\]'"),
        EmbeddedBroker(),
    ):
        pass
    assert threading.active_count() == before


@pytest.mark.long
def test_the_end_closes_connections_being_opened() -> None:
    for _ in range(20):
        with EmbeddedBroker() as embedded:
            host, _, port = embedded.addresses[0].rpartition(":")
            clients = [socket.create_connection((host, int(port))) for _ in range(5)]
        for client in clients:
            assert_closed(client)
            client.close()
