"""kafka-python, as the steps of programs use it."""

from __future__ import annotations

from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.broker.server_properties import PASSWORD, USER

_WITHOUT = {"group.protocol"}
_PATIENCE_S = 20


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    found = {name.replace(".", "_"): each for name, each in given.items() if name not in _WITHOUT}
    found["bootstrap_servers"] = found["bootstrap_servers"].split(",")
    if version := found.get("api_version"):
        found["api_version"] = tuple(int(part) for part in version.split("."))
    if "sasl_mechanism" in found:
        found |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    if found.get("compression_type") == "none":
        found["compression_type"] = None
    if found.get("acks") == "0":
        found["acks"] = 0
    return found


class _Producer:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = KafkaProducer(**_settings(given))

    def send(self, topic: str, value: bytes, key: bytes | None, partition: int | None) -> None:
        self._own.send(topic, value, key, partition=partition)

    def flush(self) -> None:
        self._own.flush(_PATIENCE_S)

    def close(self) -> None:
        self._own.close(_PATIENCE_S)

    def init(self) -> None:
        self._own.init_transactions()

    def begin(self) -> None:
        self._own.begin_transaction()

    def commit(self) -> None:
        self._own.commit_transaction()


class _Consumer:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = KafkaConsumer(**_settings(given))

    def subscribe(self, topic: str) -> None:
        self._own.subscribe([topic])

    def assign(self, topic: str, partition: int, offset: int) -> None:
        place = TopicPartition(topic, partition)
        self._own.assign([place])
        self._own.seek(place, offset)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        found = self._own.poll(int(seconds * 1000))
        return [(each.partition, each.offset) for rows in found.values() for each in rows]

    def is_assigned(self) -> bool:
        return bool(self._own.assignment())

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._own.commit({TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)})

    def close(self) -> None:
        self._own.close()


class _Asker:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = KafkaAdminClient(**_settings(given))

    def ask(self, topic: str | None) -> None:
        self._own.describe_topics(None if topic is None else [topic])

    def close(self) -> None:
        self._own.close()


def producer(settings: dict[str, Any]) -> _Producer:
    """Return a producer."""
    return _Producer(settings)


def consumer(settings: dict[str, Any]) -> _Consumer:
    """Return a consumer."""
    return _Consumer(settings)


def asker(settings: dict[str, Any]) -> _Asker:
    """Return a client that asks for metadata."""
    return _Asker(settings)
