"""The brokers that scenarios talk to, started on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tools.record.scenario import Mock


@dataclass(frozen=True)
class Running:
    """A cluster that answers."""

    bootstrap: str
    ports: tuple[int, ...]
    version: str
    """Its name and version, as the manifest shows it."""


@contextlib.contextmanager
def start(cluster: Mock) -> Iterator[Running]:
    """Start a cluster, and stop it when the block ends."""
    with _mock(cluster) as running:
        yield running


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
            f"librdkafka {confluent_kafka.libversion()[0]} mock cluster, {cluster.nodes} "
            + ("broker" if cluster.nodes == 1 else "brokers"),
        )
    finally:
        # The mock cluster lives as long as its producer.
        host.flush(1)
        del host
