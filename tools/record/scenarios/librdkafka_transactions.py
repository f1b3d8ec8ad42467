"""librdkafka transactions against Apache Kafka: offsets, isolation, fencing."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition

from tools.record.scenario import KAFKA_4, KAFKA_39, PATIENCE_S, Stage, orders, scenario
from tools.record.scenarios.librdkafka import finish, producer
from tools.record.scenarios.librdkafka_groups import consumer, read


@scenario(
    "kafka4-librdkafka-transactions",
    "Read, process, write: a transaction with the group's offsets in it, an aborted one, read back "
    "with read_committed and read_uncommitted (aborted transactions and control records in Fetch)",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-librdkafka-transactions",
    "Read, process, write: a transaction with the group's offsets in it, an aborted one, read back "
    "with read_committed and read_uncommitted (aborted transactions and control records in Fetch)",
    client="librdkafka",
    cluster=KAFKA_39,
)
def transactions(stage: Stage) -> None:
    source, sink = stage.topic("source"), stage.topic("sink")
    filler = producer(stage)
    for key, value in orders(6):
        filler.produce(source, value, key, partition=0)
    finish(filler)

    reader = consumer(stage, stage.topic("group"), enable_auto_commit=False)
    reader.subscribe([source])
    read(reader, 6)
    writer = producer(stage, transactional_id=stage.topic("tx"), compression_type="snappy")
    writer.init_transactions(PATIENCE_S)
    writer.begin_transaction()
    for key, value in orders(6):
        writer.produce(sink, value, key, partition=0)
    offsets = [TopicPartition(source, 0, 6)]
    writer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), PATIENCE_S)
    writer.commit_transaction(PATIENCE_S)
    writer.begin_transaction()
    writer.produce(sink, b"never committed", partition=0)
    writer.flush(PATIENCE_S)
    writer.abort_transaction(PATIENCE_S)
    writer.begin_transaction()
    writer.produce(sink, b"the last word", partition=0)
    writer.commit_transaction(PATIENCE_S)
    reader.close()

    for isolation, records in (("read_committed", 7), ("read_uncommitted", 8)):
        name = f"{stage.scenario}-{isolation}"
        late = consumer(stage, name, isolation_level=isolation, client_id=isolation)
        late.assign([TopicPartition(sink, 0, 0)])
        read(late, records)
        late.close()


@scenario(
    "kafka4-librdkafka-fenced",
    "Two producers with one transactional id: the older is fenced (PRODUCER_FENCED or "
    "INVALID_PRODUCER_EPOCH)",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-librdkafka-fenced",
    "Two producers with one transactional id: the older is fenced (PRODUCER_FENCED or "
    "INVALID_PRODUCER_EPOCH)",
    client="librdkafka",
    cluster=KAFKA_39,
)
def fenced(stage: Stage) -> None:
    older, newer = (
        producer(stage, transactional_id=stage.topic("tx"), client_id=name)
        for name in ("older", "newer")
    )
    older.init_transactions(PATIENCE_S)
    older.begin_transaction()
    older.produce(stage.topic(), b"from the older")
    older.flush(PATIENCE_S)
    newer.init_transactions(PATIENCE_S)
    newer.begin_transaction()
    newer.produce(stage.topic(), b"from the newer")
    newer.commit_transaction(PATIENCE_S)
    try:
        older.produce(stage.topic(), b"too late")
        older.commit_transaction(PATIENCE_S)
    except KafkaException:
        return
    raise AssertionError("the older producer was not fenced")
