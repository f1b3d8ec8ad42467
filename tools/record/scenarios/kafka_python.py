"""kafka-python: producers."""

from __future__ import annotations

from typing import Any

from kafka import KafkaProducer

from tools.record.scenario import PATIENCE_S, Mock, Stage, orders, scenario

# The mock cluster knows no ApiVersions 4, and kafka-python does not fall back from it.
PINNED = (0, 11)


def producer(stage: Stage, **settings: Any) -> KafkaProducer:
    """Make a producer of this stage."""
    settings = {"api_version": PINNED, "client_id": "kafka-python", **settings}
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
