"""Services that produce and consume as documentation advises, with three clients of Python.

`python -m tests.broker.advise.well_behaved.python_clients CLIENT BOOTSTRAP TOPIC SECONDS`
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

TICK_S = 0.5
EACH_TICK, EACH_BURST = 10, 1000
BURST_S, DEPLOYMENT_S = 30.0, 600.0
"""A service sends some records all along, many now and then; its consumer starts anew at times."""

_NEVER = threading.Event()


def orders(seconds: float) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield keys and values of orders, to send until the next ones come."""
    number, end = 0, time.monotonic() + seconds
    next_burst = time.monotonic() + BURST_S
    while time.monotonic() < end:
        count = EACH_TICK
        if time.monotonic() >= next_burst:
            count, next_burst = EACH_BURST, next_burst + BURST_S
        made = []
        for each in range(number, number + count):
            value = {"order": each, "customer": each * 7919 % 5003, "state": "accepted", "items": 3}
            made.append((b"order-%d" % each, json.dumps(value).encode()))
        number += count
        yield made


def librdkafka(bootstrap: str, topic: str, seconds: float) -> None:
    """Run the services with librdkafka."""
    from confluent_kafka import Consumer, Producer

    common = {"bootstrap.servers": bootstrap}
    settings = {"enable.idempotence": True, "compression.type": "zstd", "linger.ms": 100}
    producer = Producer({**common, **settings, "client.id": "librdkafka-producer"})

    def consume(until: float) -> None:
        own = {"group.id": f"{topic}.billing", "client.id": "librdkafka-consumer"}
        consumer = Consumer({**common, **own, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        while time.monotonic() < until:
            consumer.poll(0.5)
        consumer.close()

    with _consuming(consume, seconds):
        for made in orders(seconds):
            for key, value in made:
                producer.produce(topic, value, key)
            producer.poll(0)
            _NEVER.wait(TICK_S)
    producer.flush(60)


def kafka_python(bootstrap: str, topic: str, seconds: float) -> None:
    """Run the services with kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer

    common: dict[str, Any] = {"bootstrap_servers": bootstrap.split(",")}
    settings = {"enable_idempotence": True, "compression_type": "zstd", "linger_ms": 100}
    producer = KafkaProducer(client_id="kafka-python-producer", **common, **settings)

    def consume(until: float) -> None:
        own = {"group_id": f"{topic}.billing", "client_id": "kafka-python-consumer"}
        consumer = KafkaConsumer(topic, auto_offset_reset="earliest", **common, **own)
        while time.monotonic() < until:
            consumer.poll(500)
        consumer.close()

    with _consuming(consume, seconds):
        for made in orders(seconds):
            for key, value in made:
                producer.send(topic, value, key)
            _NEVER.wait(TICK_S)
    producer.close(60)


class _consuming:  # noqa: N801 (a context manager, used as a function)
    """Consume in a thread, with a new consumer after each deployment."""

    def __init__(self, consume: Any, seconds: float) -> None:
        end = time.monotonic() + seconds

        def run() -> None:
            while (now := time.monotonic()) < end - 1:
                consume(min(end, now + DEPLOYMENT_S))

        self._thread = threading.Thread(target=run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def aiokafka(bootstrap: str, topic: str, seconds: float) -> None:
    """Run the services with aiokafka."""
    asyncio.run(_aiokafka(bootstrap, topic, seconds))


async def _aiokafka(bootstrap: str, topic: str, seconds: float) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def produce() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id="aiokafka-producer",
            enable_idempotence=True,
            compression_type="zstd",
            linger_ms=100,
        ) as producer:
            for made in orders(seconds):
                for key, value in made:
                    await producer.send(topic, value, key)
                await asyncio.sleep(TICK_S)

    async def consume() -> None:
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end - 1:
            until = min(end, now + DEPLOYMENT_S)
            async with AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                client_id="aiokafka-consumer",
                group_id=f"{topic}.billing",
                auto_offset_reset="earliest",
            ) as consumer:
                while time.monotonic() < until:
                    await consumer.getmany(timeout_ms=500)

    await asyncio.gather(produce(), consume())


CLIENTS = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}

if __name__ == "__main__":
    name, brokers, topic_name, duration = sys.argv[1:]
    CLIENTS[name](brokers, topic_name, float(duration))
