"""Clusters for the programs: their topics, rights and quotas."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.advise.plans import PLANS, sides
from tests.broker.kafka_cluster import Cluster
from tests.broker.server_properties import Shape
from tools.record.java_tools import tool
from tools.record.scenario import PATIENCE_S, Stage, until

_SESSION = "listener.name.sasl_plaintext.{}.connections.max.reauth.ms"
_COMMON = (("auto.create.topics.enable", "false"), ("group.min.session.timeout.ms", "1000"))
NEWEST = Shape(
    sasl=True,
    properties=(
        *_COMMON,
        (_SESSION.format("plain"), "3000"),
        (_SESSION.format("scram-sha-256"), "3600000"),
    ),
)
OLDER = Shape(version="3.9.x", properties=_COMMON)
_MANY, _QUOTA = 220, "producer_byte_rate=4000"
"""Topics of a large cluster; what `throttling` may send."""


def prepare(cluster: Cluster, client: str, folder: Path) -> None:
    """Create the topics of a client's programs, rights and quotas."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap(), "log_level": 0})
    names = {f"{client}.{advice}.{name}": advice for advice, name, _ in sides()}
    topics = [NewTopic(name, 4, 1, config=PLANS[advice].topic) for name, advice in names.items()]
    if cluster.shape == NEWEST:
        topics += [NewTopic("denied", 1, 1)]
        topics += [NewTopic(f"many-{number}", 1, 1) for number in range(_MANY)]
        _limit(cluster, admin, client, folder)
    there = admin.list_topics(timeout=PATIENCE_S).topics
    missing = [each for each in topics if each.topic not in there]
    for created in admin.create_topics(missing).values():
        created.result(PATIENCE_S)
    places = [
        TopicPartition(each.topic, number)
        for each in missing
        for number in range(each.num_partitions)
    ]
    until("all leaders to lead", lambda: _are_led(admin, places))


def _limit(cluster: Cluster, admin: AdminClient, client: str, folder: Path) -> None:
    """Leave a topic to others, and give the programs of `throttling` a quota."""
    where = (ResourceType.TOPIC, "denied", ResourcePatternType.LITERAL)
    who = ("User:somebody-else", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    for made in admin.create_acls([AclBinding(*where, *who)]).values():
        made.result(PATIENCE_S)
    stage = Stage("advise", cluster.bootstrap(), (), folder, cluster)
    for side in ("bad", "mended"):
        entity = ("--entity-type", "clients", "--entity-name", f"{client}.throttling.{side}")
        server = ("--bootstrap-server", cluster.bootstrap())
        tool(stage, "admin.ConfigCommand", *server, *entity, "--alter", "--add-config", _QUOTA)


def _are_led(admin: AdminClient, places: list[TopicPartition]) -> bool:
    asked = admin.list_offsets(dict.fromkeys(places, OffsetSpec.earliest()))
    try:
        for each in asked.values():
            each.result(PATIENCE_S)
    except KafkaException:
        return False
    return True
