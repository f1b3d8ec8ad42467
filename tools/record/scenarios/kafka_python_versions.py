"""
kafka-python limited to older Kafka releases: old API versions, old message formats.

It uses only versions of the chosen release, so a few captures cover most versions of client APIs.
Kafka 3.9 still answers all of them; 4.x only those of 2.1 and later.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError

from tests.broker.server_properties import Shape
from tools.record.scenario import KAFKA_4, KAFKA_39, PATIENCE_S, Stage, scenario, until
from tools.record.scenarios.kafka_python import (
    admin,
    both,
    consumer,
    member,
    poll,
    producer,
    send,
)

Version = tuple[int, ...]

AGAINST_39: tuple[Version, ...] = (
    (0, 8, 2), (0, 9), (0, 10, 0), (0, 10, 1), (0, 11), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2),
    (2, 3), (2, 4), (2, 5), (2, 6), (2, 8), (3, 0), (3, 3), (3, 5), (3, 7), (3, 9),
)  # fmt: skip
AGAINST_4: tuple[Version, ...] = ((2, 1), (2, 4), (2, 7), (3, 1), (3, 6), (4, 0), (4, 3))


def as_release(stage: Stage, release: Version) -> None:
    """Produce with every codec, read it back, run a group and every admin call of that release."""
    pinned = {"api_version": release}
    codecs = (None, "gzip", "snappy", "lz4")
    for codec in codecs[: 3 if release < (0, 10) else 4]:
        with producer(stage, **pinned, compression_type=codec, linger_ms=50) as sender:
            send(stage, sender, records=4, partition=0)
    _read(stage, release)
    if release >= (0, 9):
        _group(stage, pinned)
    if release >= (0, 11):
        _transaction(stage, pinned)
    if release >= (0, 10, 1):
        _admin(stage, pinned)


def _read(stage: Stage, release: Version) -> None:
    group = None if release < (0, 9) else stage.topic("reader")
    settings = {"api_version": release, "enable_auto_commit": False, "group_id": group}
    partition = TopicPartition(stage.topic(), 0)
    got: list[Any] = []
    with consumer(stage, **settings) as reader:
        reader.assign([partition])
        reader.seek_to_beginning()
        until("the records", lambda: poll(reader, got) >= 8)
        reader.end_offsets([partition])
        if release >= (0, 10, 1):
            reader.offsets_for_times({partition: 1})


def _group(stage: Stage, pinned: dict[str, Any]) -> None:
    with member(stage, "first", **pinned) as first:
        got: list[Any] = []
        until("the first member", lambda: poll(first, got) >= 0 and both(first))
        first.commit()
        with member(stage, "second", **pinned) as second:
            _join(first, second)


def _join(first: KafkaConsumer, second: KafkaConsumer) -> None:
    """Let a second member join the first."""
    stop = threading.Event()

    def keep_polling() -> None:
        while not stop.is_set():
            first.poll(timeout_ms=100)

    # A joining member blocks until the others have rejoined.
    helper = threading.Thread(target=keep_polling)
    helper.start()
    try:
        until("the second member", lambda: poll(second, []) >= 0 and both(second))
    finally:
        stop.set()
        helper.join()


def _transaction(stage: Stage, pinned: dict[str, Any]) -> None:
    with producer(stage, **pinned, transactional_id=stage.topic("tx")) as sender:
        sender.init_transactions()
        for end in (sender.commit_transaction, sender.abort_transaction):
            sender.begin_transaction()
            sender.send(stage.topic(), b"in a transaction").get(PATIENCE_S)
            end()


def _admin(stage: Stage, pinned: dict[str, Any]) -> None:
    with admin(stage.bootstrap, **pinned) as client:
        for call in _calls(stage, client):
            # The client refuses to send requests that the release lacks.
            with contextlib.suppress(KafkaError, KeyError):
                call()


def _calls(stage: Stage, admin: KafkaAdminClient) -> list[Callable[[], Any]]:
    made, group = stage.topic("made"), stage.topic("group")
    resource = ConfigResource(ConfigResourceType.TOPIC, made)
    change = ConfigResource(ConfigResourceType.TOPIC, made, configs={"retention.ms": "600000"})
    partition = TopicPartition(made, 0)
    pattern = ResourcePattern(ResourceType.TOPIC, made)
    acl = ACL("User:mallory", "*", ACLOperation.READ, ACLPermissionType.DENY, pattern)
    wanted = ACLFilter(
        None, None, ACLOperation.ANY, ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.TOPIC, made, ACLResourcePatternType.ANY),
    )  # fmt: skip
    return [
        lambda: admin.create_topics([NewTopic(made, 1, 1)]),
        lambda: admin.create_partitions({made: NewPartitions(2)}),
        lambda: admin.describe_topics([made]),
        admin.list_topics,
        admin.describe_cluster,
        lambda: admin.describe_configs([resource]),
        lambda: admin.alter_configs([change]),
        lambda: admin.create_acls([acl]),
        lambda: admin.describe_acls(wanted),
        lambda: admin.delete_acls([wanted]),
        lambda: admin.describe_groups([group]),
        admin.list_groups,
        lambda: admin.list_group_offsets([group]),
        lambda: admin.delete_group_offsets(group, [TopicPartition(stage.topic(), 0)]),
        lambda: admin.delete_records({partition: 0}),
        lambda: admin.list_partition_offsets({partition: -1}),
        admin.describe_log_dirs,
        lambda: admin.elect_leaders(0, [partition]),
        admin.list_partition_reassignments,
        lambda: admin.alter_partition_reassignments({partition: [1]}),
        admin.describe_user_scram_credentials,
        admin.describe_features,
        admin.describe_metadata_quorum,
        lambda: admin.describe_producers([TopicPartition(stage.topic(), 0)]),
        admin.list_transactions,
        lambda: admin.describe_transactions([stage.topic("tx")]),
        lambda: admin.describe_topic_partitions([made]),
        admin.list_config_resources,
        lambda: admin.delete_groups([group]),
        lambda: admin.delete_topics([made]),
    ]


def _register(release: Version, cluster: Shape, prefix: str) -> None:
    name = ".".join(map(str, release))
    formats = {True: "message sets (magic 0)", False: "message sets (magic 1)"}
    shows = formats[release < (0, 10)] if release < (0, 11) else "record batches"

    def play(stage: Stage) -> None:
        as_release(stage, release)

    scenario(
        f"{prefix}-kafka-python-as-{name}",
        f"A client held to Kafka {name}: {shows}, each codec; a group, admin calls, transactions "
        "as that release knew them",
        client="kafka-python",
        cluster=cluster,
    )(play)


for _release in AGAINST_39:
    _register(_release, KAFKA_39, "kafka39")
for _release in AGAINST_4:
    _register(_release, KAFKA_4, "kafka4")
