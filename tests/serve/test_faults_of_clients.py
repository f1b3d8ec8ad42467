"""Real clients get injected faults and continue."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from tests.serve.support.scenarios import cassette
from tests.waiting import PATIENCE_S
from tools.record.scenarios.kafka_python import ClosingSelector

NAME = "kafka4-librdkafka-group"
TOPIC = f"{NAME}.orders"


def _produce(bootstrap: str, **settings: Any) -> list[KafkaError | None]:
    """Produce a record by librdkafka; return the error of its delivery report."""
    errors: list[KafkaError | None] = []
    names = {key.replace("_", "."): value for key, value in settings.items()}
    sender = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **names})
    sender.produce(TOPIC, b"v", b"k", partition=0, on_delivery=lambda e, _: errors.append(e))
    assert sender.flush(PATIENCE_S) == 0
    return errors


@pytest.mark.parametrize(
    ("action", "times"),
    [
        ("NOT_LEADER_OR_FOLLOWER,times:2", 2),
        ("close,times:1", 1),
        ("truncate,times:1", 1),
        ("delay:50,times:1", 1),
    ],
)
def test_a_producer_retries(action: str, times: int) -> None:
    with cassette(NAME, faults=[(f"api == Produce and topic == {TOPIC}", action)]) as served:
        assert _produce(served.bootstrap, retry_backoff_ms=10) == [None]
    assert served.report.faults.total() == times
    is_sent_again = "delay" not in action
    assert served.report.counts["Produce"] == times * is_sent_again + 1


def test_a_producer_gives_up() -> None:
    with cassette(NAME, faults=[("api == Produce", "MESSAGE_TOO_LARGE")]) as served:
        (error,) = _produce(served.bootstrap)
    assert error is not None
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_another_client_gets_an_error() -> None:
    with cassette(NAME, faults=[("api == Produce", "TOPIC_AUTHORIZATION_FAILED")]) as served:
        sender = KafkaProducer(
            bootstrap_servers=served.bootstrap, selector=ClosingSelector, enable_idempotence=False
        )
        sent = sender.send(TOPIC, b"v", partition=0)
        with pytest.raises(TopicAuthorizationFailedError):
            sent.get(PATIENCE_S)
        sender.close(PATIENCE_S)


def test_a_consumer_retries() -> None:
    with cassette(NAME, faults=[("api == Fetch", "NOT_LEADER_OR_FOLLOWER,times:1")]) as served:
        _produce(served.bootstrap)
        settings = {"bootstrap.servers": served.bootstrap, "group.id": "alone", "log_level": 0}
        reader = Consumer({**settings, "retry.backoff.ms": 10})
        reader.assign([TopicPartition(TOPIC, 0, 0)])
        message = reader.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        reader.close()
    assert served.report.faults.total() == 1
