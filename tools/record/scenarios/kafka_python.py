"""kafka-python: producers, and what its other scenarios are made of."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from tools.record.scenario import PATIENCE_S, Mock, Stage, orders, scenario

# The mock cluster knows no ApiVersions 4, and kafka-python does not fall back from it.
PINNED = (0, 11)


def producer(stage: Stage, **settings: Any) -> KafkaProducer:
    """Make a producer of this stage."""
    settings = {
        "api_version": None if stage.kafka else PINNED,
        "client_id": "kafka-python",
        **settings,
    }
    return KafkaProducer(bootstrap_servers=stage.bootstrap.split(","), **settings)


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
        sender = producer(stage, compression_type=codec, linger_ms=50, client_id=f"kp-{codec}")
        send(stage, sender, partition=0)
        sender.close(PATIENCE_S)


def member(stage: Stage, name: str, **settings: Any) -> KafkaConsumer:
    """Make a member of this stage's group."""
    return KafkaConsumer(
        stage.topic(),
        bootstrap_servers=stage.bootstrap.split(","),
        group_id=stage.topic("group"),
        client_id=name,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
        fetch_max_wait_ms=200,
        **settings,
    )


def poll(reader: KafkaConsumer, got: list[Any]) -> int:
    """Poll once into `got`; return the number of its records."""
    for records in reader.poll(timeout_ms=100).values():
        got.extend(records)
    return len(got)


def both(*members: KafkaConsumer) -> bool:
    """Return whether all have partitions."""
    return all(each.assignment() for each in members)
