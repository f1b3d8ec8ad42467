from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable

import pytest

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import LATEST, offsets
from cluster.mock.librdkafka_mock import MockCluster
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from tests.waiting import PATIENCE_S


def with_mock(
    mock: MockCluster,
    do: Callable[[MockCluster, Cluster], Awaitable[None]],
    timeout_s: float = PATIENCE_S,
) -> None:
    async def main() -> None:
        cluster = await Cluster.connect(mock.addresses, timeout_s=timeout_s)
        try:
            await do(mock, cluster)
        finally:
            cluster.close()

    with mock:
        asyncio.run(main())


def test_created_topics_have_their_partitions() -> None:
    async def do(mock: MockCluster, cluster: Cluster) -> None:
        assert len(mock.addresses) == len(cluster.brokers) == 3
        shown = {name: len(topic.leaders) for name, topic in cluster.topics.items()}
        assert shown == {"orders": 5, "payments": 1}
        assert {cluster.leader("orders", each) is None for each in range(5)} == {False}
        mock.create_topic("late", 2)
        await cluster.refresh()
        assert len(cluster.topics["late"].leaders) == 2
        assert await offsets(cluster, [("orders", 4)], LATEST) == {("orders", 4): 0}

    with_mock(MockCluster(3, {"orders": 5, "payments": 1}), do)


def test_an_absurd_number_of_partitions_is_not_allocated() -> None:
    async def do(mock: MockCluster, cluster: Cluster) -> None:
        assert len(cluster.topics["damaged"].leaders) == 10_000

    with_mock(MockCluster(1, {"damaged": 2**31 - 1}), do)


def test_injected_errors_and_latencies() -> None:
    async def do(mock: MockCluster, cluster: Cluster) -> None:
        mock.set_leader("orders", 0, 2)
        await cluster.refresh(["orders"])
        leader = cluster.leader("orders", 0)
        assert leader is not None
        assert leader.node == 2
        mock.fail_topic("orders", 29)
        await cluster.refresh(["orders"])
        assert "orders" not in cluster.topics
        mock.fail_topic("orders", 0)
        mock.set_versions(KEYS["Metadata"], 0, 5)
        link = await cluster.open(1)
        assert link.versions[KEYS["Metadata"]] == (0, 5)
        link.close()
        mock.set_down(1)
        with pytest.raises(ReplayError, match="refused"):
            await cluster.open(1)
        mock.set_up(1)
        (await cluster.open(1)).close()

    with_mock(MockCluster(2, {"orders": 1}), do)


def test_injected_errors_are_returned_in_order() -> None:
    async def do(mock: MockCluster, cluster: Cluster) -> None:
        mock.fail_next(KEYS["FindCoordinator"], 15, 53)
        link = await cluster.open(1)
        body = {"key": "readers", "key_type": 0}
        answers = [await link.request(KEYS["FindCoordinator"], 2, body) for _ in range(3)]
        assert [answer.error_code for answer in answers if answer] == [15, 53, 0]
        link.close()

    with_mock(MockCluster(), do)


def test_the_mock_is_closed_at_the_end() -> None:
    with MockCluster() as mock:
        addresses = mock.addresses
    with pytest.raises(ReplayError, match="refused"):
        asyncio.run(Cluster.connect(addresses))


def test_errors_of_the_mock_are_exceptions() -> None:
    with pytest.raises(ReplayError, match="with 0 brokers"), MockCluster(0):
        pass
    with (
        MockCluster(topics={"twice": 1}) as mock,
        pytest.raises(ReplayError, match="topic 'twice'"),
    ):
        mock.create_topic("twice", 1)
    with MockCluster(topics={"orders": 1}) as mock, pytest.raises(ReplayError, match="orders-9"):
        mock.set_leader("orders", 9, 1)


def test_a_missing_librdkafka_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    with (
        pytest.raises(ReplayError, match=r"can not be started: .*pip install 'kafkashark\[mock\]'"),
        MockCluster(),
    ):
        pass
