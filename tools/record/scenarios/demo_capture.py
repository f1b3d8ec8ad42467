"""`demo.pcap`: one capture with a bit of everything, for the README."""

from __future__ import annotations

from functools import partial

from confluent_kafka import KafkaException, TopicPartition

from tools.record.scenario import PATIENCE_S, Stage, orders, scenario, until
from tools.record.scenarios import aiokafka, kafka_python
from tools.record.scenarios.inside import THREE_4, create
from tools.record.scenarios.librdkafka import finish, producer
from tools.record.scenarios.librdkafka_groups import assigned, committed, consumer, read


@scenario(
    "demo",
    "A bit of everything: three client families, compressed records, a group that rebalances, "
    "a transaction, acks 0, errors on purpose",
    client="several",
    cluster=THREE_4,
)
def demo(stage: Stage) -> None:
    topic = stage.topic()
    create(stage, replicas=3)
    sender = producer(stage, compression_type="zstd", linger_ms=10, client_id="shop")
    for key, value in orders(60):
        sender.produce(topic, value, key)
    finish(sender)

    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200}
    first = consumer(stage, "billing", client_id="billing-1", **settings)
    first.subscribe([topic])
    read(first, 60)
    for start in range(60, 120, 6):
        for key, value in orders(6, first=start):
            sender.produce(topic, value, key, headers=[("trace", b"%016x" % start)])
        finish(sender)
    read(first, 60)
    second = consumer(stage, "billing", client_id="billing-2", **settings)
    second.subscribe([topic])
    until("both members of billing", assigned(first, second))
    until("a commit", partial(committed, first))

    metrics = producer(stage, acks="0", client_id="metrics")
    for number in range(10):
        metrics.produce(stage.topic("metrics"), b'{"cpu": %d}' % number)
        finish(metrics)
    _errors(stage)
    ledger = producer(stage, transactional_id="ledger", client_id="ledger")
    ledger.init_transactions(PATIENCE_S)
    ledger.begin_transaction()
    ledger.produce(stage.topic("ledger"), b"paid", b"customer-1")
    ledger.commit_transaction(PATIENCE_S)

    with kafka_python.producer(stage, client_id="warehouse", compression_type="gzip") as old:
        kafka_python.send(stage, old)
    aiokafka.produce_codecs(stage)
    second.close()
    first.close()


def _errors(stage: Stage) -> None:
    """Request an unknown topic."""
    auditor = consumer(stage, "audit", client_id="auditor", enable_auto_commit=False)
    missing = TopicPartition(stage.topic(), 999, 0)
    for ask in (
        lambda: auditor.commit(offsets=[missing], asynchronous=False),
        lambda: auditor.get_watermark_offsets(missing, 2, cached=False),
        lambda: auditor.list_topics("no such topic!", PATIENCE_S),
    ):
        try:
            ask()
        except KafkaException:
            continue
    auditor.close()
