"""Clusters for the scenarios, started on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.broker.kafka_cluster import Cluster, running
from tests.broker.server_properties import Shape
from tools.record.scenario import Mock


@dataclass(frozen=True)
class Running:
    """A running cluster."""

    bootstrap: str
    ports: tuple[int, ...]
    version: str
    """The cluster's name and version for the manifest."""
    inside: tuple[int, ...] = ()
    """Ports of the INTERNAL and CONTROLLER listeners, between brokers and controllers."""
    kafka: Cluster | None = None


@contextlib.contextmanager
def start(cluster: Mock | Shape) -> Iterator[Running]:
    """Start a cluster; stop it at the end of the block."""
    with _mock(cluster) if isinstance(cluster, Mock) else _kafka(cluster) as started:
        yield started


@contextlib.contextmanager
def _kafka(shape: Shape) -> Iterator[Running]:
    with running(shape) as kafka:
        ports = [node.address.ports for node in kafka.nodes]
        yield Running(
            kafka.bootstrap(),
            tuple(each[name] for each in ports for name in shape.listeners),
            f"Apache Kafka {kafka.version}, {_count(shape.nodes)}",
            tuple(each[name] for each in ports for name in ("INTERNAL", "CONTROLLER")),
            kafka,
        )


def _count(brokers: int) -> str:
    return "1 broker" if brokers == 1 else f"{brokers} brokers"


@contextlib.contextmanager
def _mock(cluster: Mock) -> Iterator[Running]:
    import confluent_kafka

    host = confluent_kafka.Producer(
        {
            "bootstrap.servers": "127.0.0.1",
            "client.id": "mock-cluster-host",
            "test.mock.num.brokers": cluster.nodes,
            "log_level": 2,
        }
    )
    try:
        brokers = host.list_topics(timeout=10).brokers.values()
        yield Running(
            ",".join(f"127.0.0.1:{each.port}" for each in brokers),
            tuple(each.port for each in brokers),
            f"librdkafka {confluent_kafka.libversion()[0]} mock cluster, " + _count(cluster.nodes),
        )
    finally:
        # The mock cluster lives as long as its producer.
        host.flush(1)
        del host
