"""aiokafka: codecs, transactions, a group."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import chain
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tools.record.scenario import KAFKA_4, KAFKA_39, PATIENCE_S, Mock, Stage, orders, scenario

_COPIES = "Two members copy a topic to another in transactions that hold their offsets"
_COPIED, _AT_ONCE, _PARTITIONS = 60, 5, 3


def run(play: Coroutine[Any, Any, None]) -> None:
    """Run a scenario with a timeout."""
    asyncio.run(asyncio.wait_for(play, 2 * PATIENCE_S))


@scenario(
    "kafka39-aiokafka-codecs",
    "Produce with every codec and with acks 0; headers",
    client="aiokafka",
    cluster=KAFKA_39,
)
@scenario(
    "kafka4-aiokafka-codecs",
    "Produce with every codec and with acks 0; headers",
    client="aiokafka",
    cluster=KAFKA_4,
)
@scenario(
    "aiokafka-produce-codecs",
    "Produce with every codec and with acks 0 (answered by the mock cluster, which it should not)",
    client="aiokafka",
    cluster=Mock(),
)
def produce_codecs(stage: Stage) -> None:
    run(_produce_codecs(stage))


async def _produce_codecs(stage: Stage) -> None:
    for codec, acks in (
        (None, 0),
        (None, 1),
        ("gzip", 1),
        ("snappy", 1),
        ("lz4", "all"),
        ("zstd", -1),
    ):
        settings = {"compression_type": codec, "acks": acks, "linger_ms": 30}
        async with AIOKafkaProducer(
            bootstrap_servers=stage.bootstrap, client_id=f"aiokafka-{codec}", **settings
        ) as sender:
            headers = [("codec", str(codec).encode())]
            sent = [
                await sender.send(stage.topic(), value, key, partition=0, headers=headers)
                for key, value in orders(8)
            ]
            await asyncio.gather(*sent)


@scenario(
    "kafka4-aiokafka-transactions",
    "A transaction committed with a group's offsets in it, one aborted",
    client="aiokafka",
    cluster=KAFKA_4,
)
def transactions(stage: Stage) -> None:
    run(_transactions(stage))


async def _transactions(stage: Stage) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=stage.bootstrap,
        client_id="aiokafka-tx",
        transactional_id=stage.topic("tx"),
    ) as sender:
        async with sender.transaction():
            for key, value in orders(3):
                await sender.send_and_wait(stage.topic(), value, key)
            offsets = {TopicPartition(stage.topic(), 0): 1}
            await sender.send_offsets_to_transaction(offsets, stage.topic("group"))
        await sender.begin_transaction()
        await sender.send_and_wait(stage.topic(), b"never to be read")
        await sender.abort_transaction()


@scenario("kafka4-aiokafka-copies", _COPIES, client="aiokafka", cluster=KAFKA_4)
@scenario("kafka39-aiokafka-copies", _COPIES, client="aiokafka", cluster=KAFKA_39)
def copies(stage: Stage) -> None:
    run(_copy_all(stage))


async def _copy_all(stage: Stage) -> None:
    """Copy orders from one topic to another, exactly once."""
    admin = AIOKafkaAdminClient(bootstrap_servers=stage.bootstrap, client_id="aiokafka-admin")
    topics = [NewTopic(stage.topic(name), _PARTITIONS, 1) for name in ("orders", "copies")]
    try:
        await admin.start()
        await admin.create_topics(topics)
    finally:
        await admin.close()
    sums = {"copied": 0}
    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(_copy(stage, str(number), sums))
        # Idempotent: partitions refused among others are sent again.
        sender = AIOKafkaProducer(bootstrap_servers=stage.bootstrap, enable_idempotence=True)
        async with sender:
            for key, value in orders(_COPIED):
                await sender.send(stage.topic(), value, key)
    assert sums["copied"] == _COPIED


class _BetweenTransactions(ConsumerRebalanceListener):  # type: ignore[misc]
    """
    Lets a member rejoin only between its transactions.

    aiokafka reads committed offsets while a transaction holds newer ones (OffsetFetch v3, before
    KIP-447): the next owner of a partition would copy the records of an open transaction again.
    """

    def __init__(self) -> None:
        self.transaction = asyncio.Lock()

    async def on_partitions_revoked(self, revoked: object) -> None:
        async with self.transaction:
            pass

    async def on_partitions_assigned(self, assigned: object) -> None:
        pass


async def _copy(stage: Stage, name: str, sums: dict[str, int]) -> None:
    sender = AIOKafkaProducer(
        bootstrap_servers=stage.bootstrap, transactional_id=stage.topic(f"tx-{name}")
    )
    member = _member(stage, f"aiokafka-{name}", isolation_level="read_committed")
    rejoining = _BetweenTransactions()
    member.subscribe([stage.topic()], listener=rejoining)
    async with member, sender:
        while sums["copied"] < _COPIED:
            came = await member.getmany(timeout_ms=100, max_records=_AT_ONCE)
            if not came:
                continue
            async with rejoining.transaction, sender.transaction():
                for record in chain.from_iterable(came.values()):
                    await sender.send(stage.topic("copies"), record.value.upper(), record.key)
                offsets = {place: records[-1].offset + 1 for place, records in came.items()}
                await sender.send_offsets_to_transaction(offsets, stage.topic("group"))
            sums["copied"] += sum(map(len, came.values()))


@scenario(
    "kafka4-aiokafka-group",
    "A group of two members (round robin): join, rebalance, commits, leave",
    client="aiokafka",
    cluster=KAFKA_4,
)
def group(stage: Stage) -> None:
    run(_group(stage))


async def _group(stage: Stage) -> None:
    async with AIOKafkaProducer(bootstrap_servers=stage.bootstrap) as sender:
        for key, value in orders(8):
            await sender.send_and_wait(stage.topic(), value, key)
    async with _member(stage, "aiokafka-first") as first:
        for _ in range(8):
            await first.getone()
        await first.commit()
        async with _member(stage, "aiokafka-second") as second:
            while not (first.assignment() and second.assignment()):
                await asyncio.gather(first.getmany(timeout_ms=100), second.getmany(timeout_ms=100))


def _member(stage: Stage, name: str, **more: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        stage.topic(),
        bootstrap_servers=stage.bootstrap,
        group_id=stage.topic("group"),
        client_id=name,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
        fetch_max_wait_ms=200,
        partition_assignment_strategy=(RoundRobinPartitionAssignor,),
        enable_auto_commit="isolation_level" not in more,
        **more,
    )
