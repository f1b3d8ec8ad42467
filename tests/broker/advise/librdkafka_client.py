"""Librdkafka, by confluent-kafka, as the steps of programs use it."""

from __future__ import annotations

import uuid
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from tests.broker.server_properties import PASSWORD, USER

_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "max.block.ms": None,
}
"""Settings with another name, or without one."""

_PATIENCE_S = 30


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    named = {_NAMES.get(name, name): value for name, value in given.items()}
    found = {name: value for name, value in named.items() if name is not None}
    if version := found.pop("api.version", None):
        found |= {"api.version.request": False, "broker.version.fallback": f"{version}.0"}
    if "sasl.mechanism" in found:
        found |= {"sasl.username": USER, "sasl.password": PASSWORD}
    return {**found, "log_level": 0}


class _Producer:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = confluent_kafka.Producer(_settings(given))
        self._patience_s = 1.0 if "max.block.ms" in given else _PATIENCE_S

    def send(self, topic: str, value: bytes, key: bytes | None, partition: int | None) -> None:
        where = {} if partition is None else {"partition": partition}
        self._own.produce(topic, value, key, **where)

    def flush(self) -> None:
        self._own.flush(self._patience_s)

    def close(self) -> None:
        self._own.flush(self._patience_s)

    def init(self) -> None:
        self._own.init_transactions(_PATIENCE_S)

    def begin(self) -> None:
        self._own.begin_transaction()

    def commit(self) -> None:
        self._own.commit_transaction(_PATIENCE_S)


class _Consumer:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = confluent_kafka.Consumer(_settings(given))

    def subscribe(self, topic: str) -> None:
        self._own.subscribe([topic])

    def assign(self, topic: str, partition: int, offset: int) -> None:
        self._own.assign([TopicPartition(topic, partition, offset)])

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        found = self._own.poll(seconds)
        is_record = found is not None and found.error() is None
        return [(found.partition(), found.offset())] if is_record else []

    def is_assigned(self) -> bool:
        return bool(self._own.assignment())

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._own.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)

    def close(self) -> None:
        self._own.close()


class _Asker:
    def __init__(self, given: dict[str, Any]) -> None:
        self._own = confluent_kafka.Consumer({**_settings(given), "group.id": str(uuid.uuid4())})

    def ask(self, topic: str | None) -> None:
        self._own.list_topics(topic, _PATIENCE_S)

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
