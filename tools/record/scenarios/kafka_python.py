"""kafka-python: producers, and the basis of its other scenarios."""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from tools.record.scenario import PATIENCE_S, Mock, Stage, orders, scenario, until

# The mock cluster lacks ApiVersions 4, and kafka-python does not fall back.
PINNED = (0, 11)


class ClosingSelector(selectors.DefaultSelector):
    """
    Closes all sockets of a kafka-python client when the client closes it.

    The client loses nodes during connecting and writing. Otherwise the garbage collector would
    close them during another test, with a ResourceWarning.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sockets: set[socket] = set()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Register a socket."""
        self._sockets.add(fileobj)
        return super().register(fileobj, events, data)

    def close(self) -> None:
        """Close the selector and all sockets registered at any time."""
        super().close()
        for each in self._sockets:
            each.close()


@contextmanager
def admin(bootstrap: str, **settings: Any) -> Iterator[KafkaAdminClient]:
    """Create an admin client for a block."""
    client = KafkaAdminClient(
        bootstrap_servers=bootstrap.split(","), selector=ClosingSelector, **settings
    )
    try:
        yield client
    finally:
        client.close()


@contextmanager
def producer(stage: Stage, **settings: Any) -> Iterator[KafkaProducer]:
    """Create a producer of this stage for a block."""
    settings = {
        "bootstrap_servers": stage.bootstrap.split(","),
        "api_version": None if stage.kafka else PINNED,
        "client_id": "kafka-python",
        **settings,
    }
    sender = KafkaProducer(selector=ClosingSelector, **settings)
    try:
        yield sender
    finally:
        sender.close(PATIENCE_S)


def send(stage: Stage, sender: KafkaProducer, records: int = 8, **where: Any) -> None:
    """Send some orders and wait for each answer."""
    sent = [sender.send(stage.topic(), value, key, **where) for key, value in orders(records)]
    for each in sent:
        each.get(PATIENCE_S)


@scenario(
    "kafka-python-produce-codecs",
    "Produce with no compression, gzip, snappy (xerial framing), lz4: record batches of Produce v3",
    client="kafka-python",
    cluster=Mock(),
)
def produce_codecs(stage: Stage) -> None:
    for codec in (None, "gzip", "snappy", "lz4"):
        settings = {"compression_type": codec, "linger_ms": 50, "client_id": f"kp-{codec}"}
        with producer(stage, **settings) as sender:
            send(stage, sender, partition=0)


@contextmanager
def consumer(stage: Stage, *topics: str, **settings: Any) -> Iterator[KafkaConsumer]:
    """Create a consumer of this stage for a block."""
    reader = KafkaConsumer(
        *topics,
        bootstrap_servers=stage.bootstrap.split(","),
        selector=ClosingSelector,
        fetch_max_wait_ms=200,
        **settings,
    )
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def member(stage: Stage, name: str, **settings: Any) -> Iterator[KafkaConsumer]:
    """Create a member of this stage's group for a block."""
    topic = stage.topic()
    with consumer(
        stage,
        group_id=stage.topic("group"),
        client_id=name,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
        **settings,
    ) as reader:
        # A leader that doesn't know the topic yet assigns nothing, and asks again after minutes.
        until(f"{topic} to be known", lambda: reader.partitions_for_topic(topic))
        reader.subscribe([topic])
        yield reader


def poll(reader: KafkaConsumer, got: list[Any]) -> int:
    """Poll once into `got`; return the number of its records."""
    for records in reader.poll(timeout_ms=100).values():
        got.extend(records)
    return len(got)


def both(*members: KafkaConsumer) -> bool:
    """Return whether all members have partitions."""
    return all(each.assignment() for each in members)
