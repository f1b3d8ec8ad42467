"""librdkafka consumers: by assignment and in groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tools.record.scenario import (
    KAFKA_4,
    KAFKA_39,
    PATIENCE_S,
    Mock,
    Stage,
    orders,
    scenario,
    until,
)
from tools.record.scenarios.librdkafka import config, finish, producer


def consumer(stage: Stage, group: str, **settings: Any) -> Consumer:
    """Create a consumer of this stage that starts at the beginning, with short fetch waits."""
    quick = {"auto_offset_reset": "earliest", "fetch_wait_max_ms": 200, "group_id": group}
    return Consumer(config(stage, **{**quick, **settings}))


def read(reader: Consumer, records: int) -> None:
    """Poll until a number of records has arrived."""
    got = 0

    def attempt() -> bool:
        nonlocal got
        message = reader.poll(0.2)
        got += message is not None and message.error() is None
        return got >= records

    until(f"{records} records", attempt)


def assigned(*members: Consumer) -> Callable[[], bool]:
    """Poll all members; return whether each has partitions, without overlaps."""

    def attempt() -> bool:
        for member in members:
            member.poll(0.1)
        held = [{(at.topic, at.partition) for at in member.assignment()} for member in members]
        return all(held) and sum(map(len, held)) == len(set().union(*held))

    return attempt


def fill(stage: Stage, records: int = 12, **settings: Any) -> None:
    """Produce records to read."""
    sender = producer(stage, **settings)
    for key, value in orders(records):
        sender.produce(stage.topic(), value, key)
    finish(sender)


@scenario(
    "kafka4-librdkafka-assigned",
    "A consumer that takes one partition by assignment, seeks, asks for offsets, commits",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-consume-assigned",
    "A consumer that takes one partition by assignment, seeks, asks for watermarks and offsets by "
    "time, commits and reads the commit back",
    client="librdkafka",
    cluster=Mock(),
)
def consume_assigned(stage: Stage) -> None:
    sender = producer(stage, compression_type="zstd")
    for key, value in orders(10):
        sender.produce(stage.topic(), value, key, partition=0)
    finish(sender)
    reader = consumer(stage, stage.topic("group"), enable_auto_commit=False)
    partition = TopicPartition(stage.topic(), 0, OFFSET_BEGINNING)
    reader.assign([partition])
    read(reader, 10)
    reader.seek(TopicPartition(stage.topic(), 0, 5))
    read(reader, 5)
    reader.get_watermark_offsets(TopicPartition(stage.topic(), 0), PATIENCE_S, cached=False)
    reader.offsets_for_times([TopicPartition(stage.topic(), 0, 1)], PATIENCE_S)
    reader.commit(
        offsets=[TopicPartition(stage.topic(), 0, 10, "read by hand")], asynchronous=False
    )
    reader.committed([TopicPartition(stage.topic(), 0)], PATIENCE_S)
    reader.close()


@scenario(
    "kafka4-librdkafka-group",
    "A classic group (range): a member joins, a second one makes it rebalance, both leave",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-librdkafka-group",
    "A classic group (range): a member joins, a second one makes it rebalance, both leave",
    client="librdkafka",
    cluster=KAFKA_39,
)
@scenario(
    "librdkafka-group-rebalance",
    "A classic group (range): a member joins, a second one makes it rebalance, both leave",
    client="librdkafka",
    cluster=Mock(nodes=3),
)
def group_rebalance(stage: Stage) -> None:
    rebalance(stage, "range")


@scenario(
    "kafka4-librdkafka-group-cooperative",
    "A classic group, cooperative-sticky, with a static member, rebalanced",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-group-cooperative",
    "A classic group with cooperative-sticky assignment and a static member, rebalanced",
    client="librdkafka",
    cluster=Mock(nodes=3),
    form="pcapng",
)
def group_cooperative(stage: Stage) -> None:
    rebalance(stage, "cooperative-sticky", group_instance_id="static-member")


@scenario(
    "kafka4-librdkafka-group-848",
    "A consumer group of the new protocol (KIP-848): two members, assignment by the broker",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "librdkafka-group-848",
    "A consumer group of the new protocol (KIP-848): two members, assignment by the broker",
    client="librdkafka",
    cluster=Mock(nodes=3),
)
def group_848(stage: Stage) -> None:
    fill(stage)
    new = {"group_protocol": "consumer"}
    first = consumer(stage, stage.topic("group"), client_id="rdkafka-848-first", **new)
    first.subscribe([stage.topic()])
    read(first, 12)
    second = consumer(stage, stage.topic("group"), client_id="rdkafka-848-second", **new)
    second.subscribe([stage.topic()])
    until("both members to be assigned", assigned(first, second))
    second.close()
    first.close()


def rebalance(stage: Stage, strategy: str, **first_only: Any) -> None:
    """Run a group: one member reads all, a second joins, both leave."""
    fill(stage)
    common = {
        "partition_assignment_strategy": strategy,
        # The mock lets members wait for others for a session timeout, but only once a second.
        "session_timeout_ms": 6000 if stage.kafka else 3000,
        "heartbeat_interval_ms": 300,
    }
    group = stage.topic("group")
    first = consumer(stage, group, client_id="rdkafka-first", **common, **first_only)
    first.subscribe([stage.topic()])
    read(first, 12)
    second = consumer(stage, group, client_id="rdkafka-second", **common)
    second.subscribe([stage.topic()])
    until("both members to be assigned", assigned(first, second))
    for member in (second, first):
        until("a commit", partial(committed, member))
        member.close()


def committed(member: Consumer) -> bool:
    """Try to commit the member's position; return whether it succeeded."""
    try:
        member.commit(asynchronous=False)
    except KafkaException as error:
        # Still joining: poll and retry. A member without records has no position to commit.
        member.poll(0.1)
        return bool(error.args[0].name() == "_NO_OFFSET")
    return True


@scenario(
    "kafka4-static-members",
    "Static members of a classic group: one comes back without a rebalance, one is fenced by a "
    "twin, one stays away until its session times out",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-static-members",
    "Static members of a classic group: one comes back without a rebalance, one is fenced by a "
    "twin, one stays away until its session times out",
    client="librdkafka",
    cluster=KAFKA_39,
)
def static_members(stage: Stage) -> None:
    fill(stage)
    quick: dict[str, Any] = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}

    def member(name: str) -> Consumer:
        settings = {**quick, "group_instance_id": name, "client_id": f"rdkafka-{name}"}
        made = consumer(stage, stage.topic("group"), **settings)
        made.subscribe([stage.topic()])
        return made

    first, second = member("first"), member("second")
    until("both members to be assigned", assigned(first, second))
    second.close()  # a static member sends no LeaveGroup
    second = member("second")
    until("the second member to be back", assigned(first, second))
    twin = member("second")
    until("the second member to be fenced", lambda: _fenced(second, first, twin))
    second.close()
    twin.close()
    until("the first member to have all", lambda: _holds(first, partitions=2), patience_s=20)
    first.close()


def _fenced(member: Consumer, *others: Consumer) -> bool:
    for other in others:
        other.poll(0.1)
    message = member.poll(0.1)
    error = message.error() if message is not None else None
    return error is not None and error.code() == KafkaError._FATAL


def _holds(member: Consumer, partitions: int) -> bool:
    member.poll(0.1)
    return len(member.assignment()) == partitions
