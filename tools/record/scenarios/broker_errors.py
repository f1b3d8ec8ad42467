"""Errors on purpose, and a quota that throttles."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.server_properties import PASSWORD, USER, Shape
from tools.record.java_tools import tool
from tools.record.scenario import KAFKA_4, PATIENCE_S, Stage, orders, scenario, until
from tools.record.scenarios.librdkafka import answers, config, finish, producer
from tools.record.scenarios.librdkafka_groups import consumer, fill, read

SECURE_4 = Shape("4.x", sasl=True, tls=True)


@scenario(
    "kafka4-errors",
    "Errors on purpose: a record too large, a topic with a bad name, an unknown topic, offsets out "
    "of range, an unknown partition, commits of a stranger, too few replicas",
    client="librdkafka",
    cluster=KAFKA_4,
)
def errors(stage: Stage) -> None:
    admin = AdminClient(config(stage, allow_auto_create_topics=False))
    small = NewTopic(stage.topic(), 1, 1, config={"max.message.bytes": "1000"})
    strict = NewTopic(stage.topic("strict"), 1, 1, config={"min.insync.replicas": "2"})
    answers(admin.create_topics([small, strict, NewTopic("greedy", 1, 7)]))
    fill(stage, records=5)
    sender = producer(stage, request_timeout_ms=2000, message_timeout_ms=3000)
    sender.produce(stage.topic(), b"x" * 5000)
    sender.produce(stage.topic("strict"), b"not enough replicas")
    finish(sender)
    reader = consumer(stage, stage.topic("group"), allow_auto_create_topics=False)
    for ask in (
        lambda: reader.list_topics("a bad name!", PATIENCE_S),
        lambda: reader.list_topics("unknown", PATIENCE_S),
        lambda: reader.commit(offsets=[TopicPartition("unknown", 3, 4)], asynchronous=False),
        lambda: reader.get_watermark_offsets(TopicPartition(stage.topic(), 9), 2, cached=False),
    ):
        try:
            ask()
        except KafkaException:
            continue
    reader.assign([TopicPartition(stage.topic(), 0, 1_000_000)])
    read(reader, 5)  # reset to the beginning
    reader.close()


@scenario(
    "kafka4-denied",
    "A user whom an ACL keeps from one topic and one group, over SASL/PLAIN: authorization errors",
    client="librdkafka",
    cluster=SECURE_4,
)
def denied(stage: Stage) -> None:
    admin = AdminClient(config(stage, client_id="admin"))
    topic = stage.topic()
    answers(admin.create_topics([NewTopic(topic, 1, 1)]))
    literal, who = ResourcePatternType.LITERAL, f"User:{USER}"
    answers(
        admin.create_acls(
            [
                AclBinding(kind, name, literal, who, "*", AclOperation.ALL, AclPermissionType.DENY)
                for kind, name in (
                    (ResourceType.TOPIC, topic),
                    (ResourceType.GROUP, "closed"),
                    (ResourceType.TRANSACTIONAL_ID, "closed"),
                )
            ]
        )
    )
    login = {
        "bootstrap_servers": stage.cluster.bootstrap("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": USER,
        "sasl_password": PASSWORD,
    }
    sender = producer(stage, **login)
    sender.produce(topic, b"not allowed")
    finish(sender)
    reader = consumer(stage, "closed", **login)
    reader.subscribe([stage.topic("other")])
    until("the refusal of the group", lambda: (got := reader.poll(0.2)) and got.error())
    reader.close()
    try:
        producer(stage, **login, transactional_id="closed").init_transactions(PATIENCE_S)
    except KafkaException:
        return


@scenario(
    "kafka4-throttled",
    "A quota, and a client that the broker throttles for it: throttle_time_ms above 0",
    client="librdkafka",
    cluster=KAFKA_4,
)
def throttled(stage: Stage) -> None:
    quota = "producer_byte_rate=2000,consumer_byte_rate=4000"
    where = ("--bootstrap-server", stage.bootstrap, "--entity-type", "clients")
    entity = (*where, "--entity-name", "greedy")
    tool(stage, "admin.ConfigCommand", *entity, "--alter", "--add-config", quota)
    tool(stage, "admin.ConfigCommand", *entity, "--describe")
    sender = producer(stage, client_id="greedy", linger_ms=5)
    for _ in range(4):
        for key, value in orders(40):
            sender.produce(stage.topic(), value * 4, key, partition=0)
        finish(sender)
    reader = consumer(stage, stage.topic("group"), client_id="greedy", fetch_message_max_bytes=4000)
    reader.assign([TopicPartition(stage.topic(), 0, 0)])
    read(reader, 160)
    reader.close()
