"""SASL and TLS; a TLS capture has its key log beside it."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException

from tests.broker.server_properties import PASSWORD, USER, Shape
from tools.record.scenario import Stage, orders, scenario
from tools.record.scenarios import kafka_python
from tools.record.scenarios.aiokafka import run
from tools.record.scenarios.broker_errors import SECURE_4
from tools.record.scenarios.librdkafka import config, finish, producer
from tools.record.scenarios.librdkafka_groups import read

SECURE_39 = Shape("3.9.x", sasl=True, tls=True)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def login(stage: Stage, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    """Settings of a librdkafka client that logs in."""
    return {
        "bootstrap_servers": stage.cluster.bootstrap("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
        "sasl_password": password,
    }


@scenario(
    "kafka4-librdkafka-sasl",
    "SASL PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and a wrong password with each",
    client="librdkafka",
    cluster=SECURE_4,
)
def librdkafka_sasl(stage: Stage) -> None:
    for mechanism in MECHANISMS:
        good = login(stage, mechanism)
        sender = producer(stage, **good, client_id=f"rdkafka-{mechanism.lower()}")
        sender.produce(stage.topic(), b"let in by " + mechanism.encode())
        finish(sender)
        settings = config(stage, **{**good, "sasl_password": "guessed", "group_id": "intruders"})
        failed: list[Any] = []
        intruder = Consumer({**settings, "error_cb": failed.append})
        while not failed:
            intruder.poll(0.1)
        intruder.close()


@scenario(
    "kafka39-kafka-python-sasl",
    "SASL with SaslHandshake v0 and raw tokens (a client held to Kafka 0.10.2), then v1 (2.0)",
    client="kafka-python",
    cluster=SECURE_39,
)
def kafka_python_sasl(stage: Stage) -> None:
    for release, mechanisms in (((0, 10, 2), MECHANISMS), ((2, 0), MECHANISMS)):
        for mechanism in mechanisms:
            with kafka_python.producer(
                stage,
                bootstrap_servers=stage.cluster.bootstrap("SASL_PLAINTEXT").split(","),
                api_version=release,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism=mechanism,
                sasl_plain_username=USER,
                sasl_plain_password=PASSWORD,
                client_id=f"kp-{mechanism.lower()}",
            ) as sender:
                kafka_python.send(stage, sender, records=2)


@scenario(
    "kafka4-aiokafka-tls",
    "TLS 1.3, with the key log beside the capture",
    client="aiokafka",
    cluster=SECURE_4,
)
def aiokafka_tls(stage: Stage) -> None:
    run(_aiokafka_tls(stage))


async def _aiokafka_tls(stage: Stage) -> None:
    context = ssl.create_default_context(cafile=str(stage.cluster.certificate))
    context.keylog_filename = str(stage.folder / f"{stage.scenario}.keylog")
    tls = {
        "bootstrap_servers": stage.cluster.bootstrap("SSL"),
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    async with AIOKafkaProducer(client_id="aiokafka-tls", **tls) as sender:
        for key, value in orders(4):
            await sender.send_and_wait(stage.topic(), value, key)
    async with AIOKafkaConsumer(
        stage.topic(), auto_offset_reset="earliest", group_id=stage.topic("group"), **tls
    ) as reader:
        await asyncio.gather(*(reader.getone() for _ in range(4)))


@scenario(
    "kafka4-librdkafka-tls",
    "TLS without a key log; a plaintext client at the TLS port and a TLS client at the plaintext "
    "port",
    client="librdkafka",
    cluster=SECURE_4,
)
def librdkafka_tls(stage: Stage) -> None:
    tls = {
        "security_protocol": "SSL",
        "ssl_ca_location": str(stage.cluster.certificate),
    }
    sender = producer(stage, bootstrap_servers=stage.cluster.bootstrap("SSL"), **tls)
    sender.produce(stage.topic(), b"nobody can read this")
    finish(sender)
    for settings in (
        {"bootstrap_servers": stage.cluster.bootstrap("SSL")},
        {"bootstrap_servers": stage.bootstrap, **tls},
    ):
        try:
            lost = producer(stage, **settings, reconnect_backoff_ms=1000)
            lost.list_topics(timeout=1.5)
        except KafkaException:
            continue
    reader = Consumer(
        config(
            stage, bootstrap_servers=stage.cluster.bootstrap("SSL"), **tls,
            group_id=stage.topic("group"), auto_offset_reset="earliest",
        )
    )  # fmt: skip
    reader.subscribe([stage.topic()])
    read(reader, 1)
    reader.close()
