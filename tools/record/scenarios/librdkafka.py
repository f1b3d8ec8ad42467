"""librdkafka, through confluent-kafka: producers, transactions and admin calls."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from tools.record.scenario import KAFKA_4, KAFKA_39, PATIENCE_S, Mock, Stage, orders, scenario

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def producer(stage: Stage, **settings: Any) -> Producer:
    """Create a producer of this stage; settings have librdkafka's names with `_` for `.`."""
    return Producer(config(stage, **settings))


def config(stage: Stage, **settings: Any) -> dict[str, Any]:
    """Settings of a librdkafka client: quiet, and without telemetry unless requested."""
    settings = {"client_id": stage.scenario.replace("librdkafka", "rdkafka"), **settings}
    quiet = {"log_level": 2, "enable.metrics.push": False}
    named = {
        name if name.endswith("_cb") else name.replace("_", "."): value
        for name, value in settings.items()
    }
    return {"bootstrap.servers": stage.bootstrap, **quiet, **named}


def finish(sender: Producer) -> None:
    """Wait for all delivery reports."""
    left = sender.flush(PATIENCE_S)
    if left:
        raise TimeoutError(f"{left} records were not delivered in {PATIENCE_S:.0f} s")


@scenario(
    "kafka4-librdkafka-codecs",
    "Produce with no compression, gzip, snappy, lz4 and zstd, a producer each",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-produce-codecs",
    "Produce with no compression, gzip, snappy, lz4 and zstd, a producer each",
    client="librdkafka",
    cluster=Mock(),
)
def produce_codecs(stage: Stage) -> None:
    for codec in CODECS:
        sender = producer(stage, compression_type=codec, linger_ms=50, client_id=f"rdkafka-{codec}")
        for key, value in orders(40):
            sender.produce(stage.topic(), value, key, partition=0)
        finish(sender)


@scenario(
    "kafka4-librdkafka-shapes",
    "Records with headers, null and empty keys and values, tombstones, own timestamps",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-produce-shapes",
    "Records with headers (repeated and null ones too), no key, no value (tombstones), empty key "
    "and value, own timestamps",
    client="librdkafka",
    cluster=Mock(),
)
def produce_shapes(stage: Stage) -> None:
    sender = producer(stage, linger_ms=20)
    topic = stage.topic()
    trace = [("trace", b"4bf92f3577b34da6"), ("trace", b"a3ce929d0e0e4736"), ("empty", b"")]
    sender.produce(topic, b"with headers", b"k1", headers=[*trace, ("null", None)])
    sender.produce(topic, b"without key")
    sender.produce(topic, None, b"tombstone")
    sender.produce(topic, None, None)
    sender.produce(topic, b"", b"")
    sender.produce(topic, b"\x00\xff\xfe not text", b"\x80")
    sender.produce(topic, "na\u00efve \u2615 \U0001f980".encode(), "schl\u00fcssel".encode())
    sender.produce(topic, b"own time", b"k2", timestamp=1_600_000_000_123)
    finish(sender)


@scenario(
    "kafka4-librdkafka-acks",
    "acks 0 (no response at all), 1 and all, the same records each",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-acks",
    "acks 0, 1 and all, the same records each; this mock cluster answers acks 0 (it should not)",
    client="librdkafka",
    cluster=Mock(),
    form="nanosecond pcap",
)
def acks(stage: Stage) -> None:
    for each in ("0", "1", "all"):
        sender = producer(stage, acks=each, client_id=f"rdkafka-acks-{each}")
        for _ in range(3):
            for key, value in orders(2):
                sender.produce(stage.topic(), value, key)
            finish(sender)


@scenario(
    "librdkafka-large",
    "Values of 1 kB to 200 kB: frames over many segments, pipelined",
    client="librdkafka",
    cluster=Mock(),
    form="gz",
)
def large(stage: Stage) -> None:
    sender = producer(stage, linger_ms=0, socket_send_buffer_bytes=8192)
    for size in (1_000, 20_000, 70_000, 200_000, 10):
        sender.produce(stage.topic(), b"0123456789abcdef" * (size // 16), partition=0)
        sender.poll(0)
    finish(sender)


@scenario(
    "kafka39-librdkafka-idempotent",
    "An idempotent producer: InitProducerId, sequence numbers",
    client="librdkafka",
    cluster=KAFKA_39,
)
@scenario(
    "librdkafka-idempotent",
    "An idempotent producer: InitProducerId, sequence numbers",
    client="librdkafka",
    cluster=Mock(nodes=3),
)
def idempotent(stage: Stage) -> None:
    sender = producer(stage, enable_idempotence=True, compression_type="lz4")
    for batch in range(4):
        for key, value in orders(5, first=batch * 5):
            sender.produce(stage.topic(), value, key)
        finish(sender)


@scenario(
    "librdkafka-transactions",
    "Two transactions, one committed and one aborted",
    client="librdkafka",
    cluster=Mock(nodes=3),
)
def transactions(stage: Stage) -> None:
    sender = producer(stage, transactional_id=stage.topic("tx"))
    sender.init_transactions(PATIENCE_S)
    for end in (sender.commit_transaction, sender.abort_transaction):
        sender.begin_transaction()
        for key, value in orders(4):
            sender.produce(stage.topic(), value, key)
        sender.flush(PATIENCE_S)
        end(PATIENCE_S)


@scenario(
    "librdkafka-admin-mock",
    "Metadata of a cluster, offsets of partitions, records deleted; calls that the mock cluster "
    "does not offer",
    client="librdkafka",
    cluster=Mock(nodes=3),
)
def admin_mock(stage: Stage) -> None:
    sender = producer(stage)
    for key, value in orders(6):
        sender.produce(stage.topic(), value, key, partition=0)
    finish(sender)
    admin = AdminClient(config(stage))
    admin.list_topics(timeout=PATIENCE_S)
    partition = TopicPartition(stage.topic(), 0)
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.for_timestamp(1)):
        answers(admin.list_offsets({partition: spec}))
    answers(admin.delete_records([TopicPartition(stage.topic(), 0, 3)]))
    answers(admin.create_topics([NewTopic(stage.topic("new"), 2, 1)], request_timeout=2))
    answers(admin.describe_configs([ConfigResource("topic", stage.topic())], request_timeout=2))


def answers(futures: Mapping[Any, Future[Any]] | Future[Any]) -> list[Exception | None]:
    """Wait for all results, including errors."""
    each = [futures] if isinstance(futures, Future) else futures.values()
    return [future.exception(PATIENCE_S) for future in each]  # type: ignore[misc]
