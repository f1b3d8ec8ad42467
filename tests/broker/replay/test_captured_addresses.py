"""Requests go only to the hosts of the target."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cluster.mock.librdkafka_mock import MockCluster
from replay import Plan, replay
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.connects import connects
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"


def test_every_connection_is_recorded() -> None:
    with connects() as seen, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("localhost", port)).close()
    assert f"localhost:{port}" in seen
    assert f"127.0.0.1:{port}" in seen


def test_replay_connects_to_the_mock_only() -> None:
    with (
        Plan.of(CAPTURES / "demo.pcap") as plan,
        MockCluster(3, plan.topics) as mock,
        connects() as seen,
    ):
        replay(plan, mock.addresses[0], timeout_s=0.5, limit=200)
        assert plan.brokers.keys().isdisjoint(mock.addresses)
    assert seen
    assert seen <= set(mock.addresses)


@pytest.mark.parametrize("name", ["kafka4-librdkafka-group", "kafka4-leader-change"])
def test_replay_connects_to_the_broker_only(kafka: StartCluster, name: str) -> None:
    bootstrap = kafka(Shape("4.x")).bootstrap()
    with Plan.of(CAPTURES / f"{name}.pcap") as plan, connects() as seen:
        replay(plan, bootstrap, timeout_s=2, prefix="addresses-")
        assert bootstrap not in plan.brokers
    assert seen == {bootstrap}
