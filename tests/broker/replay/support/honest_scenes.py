"""Scenes of real clusters whose honest replay must pass: captures, and what their replay needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cluster.client.auth import Security
from cluster.client.cluster import Cluster
from dissector.protocol.apis import KEYS
from replay import Pace, Plan, Report, replay_async
from replay.order.exclusion_policy import EXCLUDED_APIS, Exclusion
from tests.broker.kafka_cluster import running
from tests.broker.replay.support.recording import Play, record
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.replay.incomplete_captures import Damage, damaged
from tools.record.scenario import PATIENCE_S, Stage, orders, until
from tools.record.scenarios.inside import THREE_39, create, leader_change, reassignment
from tools.record.scenarios.librdkafka import config, finish, producer
from tools.record.scenarios.librdkafka_groups import consumer, read

ROOT = Path(__file__).parents[4]
CAPTURES = ROOT / "captures"
CLUSTERS = ROOT.parent / "shared" / "repro" / "clusters"

SETTINGS = (
    ("group.consumer.heartbeat.interval.ms", "1000"),
    ("group.consumer.min.heartbeat.interval.ms", "1000"),
    ("group.share.heartbeat.interval.ms", "1000"),
    ("group.share.min.heartbeat.interval.ms", "1000"),
    ("group.share.record.lock.duration.ms", "3000"),
    ("group.share.min.record.lock.duration.ms", "1000"),
)
"""Settings of the captured clusters that responses show."""

REPLICATION_REFUSED = "INVALID_REPLICATION_FACTOR"
_GROUP, _SET = 32, 0
"""Type of the resource, and operation, of IncrementalAlterConfigs (KIP-848, KIP-339)."""

_numbers = count()


@dataclass(frozen=True)
class Scene:
    """
    A capture, and what its replay needs.

    Attributes:
        source: The capture, or what is recorded at Kafka 3.9 if there is none.
        nodes: Nodes of its cluster.
        allow: APIs that are otherwise left out.
        share_groups: Share groups that read from the beginning, by a setting made before.
        needs_replicas: Whether it creates a topic with three replicas: one node refuses that, and
            all that follows differs.
        needs_nodes: Whether it names brokers that a cluster of one node lacks.
        cut: Percentage of its packets that are missing at the beginning.
        ignored: Fields that are not compared.
    """

    source: Path | Play
    nodes: int = 1
    allow: tuple[str, ...] = ()
    share_groups: tuple[str, ...] = ()
    needs_replicas: bool = False
    needs_nodes: bool = False
    cut: int = 0
    ignored: tuple[str, ...] = ()

    def is_right(self, report: Report, nodes: int) -> bool:
        """Return whether the report of an honest replay is right."""
        if report.ended:
            return False
        if self.needs_replicas and nodes < self.nodes:
            first = report.summary()["first_difference"]
            return first is not None and first.endswith(REPLICATION_REFUSED)
        return report.passed

    def plays_on(self, nodes: int) -> bool:
        """Return whether a cluster has the brokers that it names."""
        return nodes >= self.nodes or not self.needs_nodes

    def capture(self, name: str, folder: Path) -> Path:
        """
        Return its capture: the file, cut in the folder if it is, or recorded there.

        Raises:
            FileNotFoundError: It is not there.
        """
        path = self.source if isinstance(self.source, Path) else folder / f"{name}.pcap"
        if not path.exists() and not isinstance(self.source, Path):
            with running(THREE_39) as cluster:
                record(cluster, name, folder, self.source)
        if not path.exists():
            raise FileNotFoundError(f"{path.name} is not there")
        return damaged(path, Damage(self.cut), folder) if self.cut else path


def recreated(stage: Stage) -> None:
    """Delete a topic that is written and read, and create it again."""
    admin = AdminClient(config(stage))
    for life in range(2):
        create(stage, replicas=1)
        sender = producer(stage, acks="all", client_id=f"writer-{life}")
        for key, value in orders(12, first=100 * life):
            sender.produce(stage.topic(), value, key)
        finish(sender)
        reader = consumer(stage, stage.topic(f"group-{life}"))
        reader.subscribe([stage.topic()])
        read(reader, 12)
        reader.close()
        if not life:
            for done in admin.delete_topics([stage.topic()]).values():
                done.result(PATIENCE_S)
            until("the end of the topic", _is_gone(admin, stage.topic()))


def _is_gone(admin: AdminClient, topic: str) -> Callable[[], bool]:
    return lambda: topic not in admin.list_topics(timeout=PATIENCE_S).topics


def timed_out(stage: Stage) -> None:
    """Leave a transaction open until its coordinator aborts it; then write another."""
    create(stage, replicas=1)
    settings = {"transactional_id": stage.topic("tx"), "transaction_timeout_ms": 2000}
    late = producer(stage, client_id="late", **settings)
    late.init_transactions(PATIENCE_S)
    late.begin_transaction()
    late.produce(stage.topic(), b"too late")
    late.flush(PATIENCE_S)
    reader = consumer(stage, stage.topic("group"), isolation_level="read_uncommitted")
    reader.subscribe([stage.topic()])
    read(reader, 1)
    reader.close()
    until("the end of the transaction", lambda: _is_refused(late, stage.topic()))
    again = producer(stage, client_id="again", **settings)
    again.init_transactions(PATIENCE_S)
    again.begin_transaction()
    again.produce(stage.topic(), b"in time")
    again.commit_transaction(PATIENCE_S)


def _is_refused(late: object, topic: str) -> bool:
    """Write once more to an open transaction; return whether it has been aborted."""
    try:
        late.produce(topic, b"later")  # type: ignore[attr-defined]
        late.flush(PATIENCE_S)  # type: ignore[attr-defined]
        late.poll(0.5)  # type: ignore[attr-defined]
    except KafkaException:
        return True
    return False


_CHANGING = tuple(EXCLUDED_APIS[Exclusion.CHANGING].split())
_OF_OTHERS = ("Metadata.topics", "ListGroups.groups", "ListTransactions.transaction_states")
"""Responses about all topics, groups and transactions include those of other runs."""

_SET_OTHERWISE = (
    "ConsumerGroupHeartbeat.heartbeat_interval_ms",
    "ShareGroupHeartbeat.heartbeat_interval_ms",
)
"""What `SETTINGS` change for captures of a cluster without them."""

SCENES = {
    "crash": Scene(CLUSTERS / "crash.pcap.gz", 3),
    "k848": Scene(CLUSTERS / "k848.pcap.gz"),
    "reborn": Scene(CLUSTERS / "reborn.pcap.gz", 3, allow=("DeleteTopics",), needs_replicas=True),
    "share": Scene(CLUSTERS / "share.pcap.gz", share_groups=("sg",)),
    "txn": Scene(CLUSTERS / "txn.pcap.gz"),
}
"""Captures of clusters of Kafka 4.4."""

MORE_SCENES = {
    "reassigned": Scene(
        CAPTURES / "kafka4-reassignment.pcap",
        3,
        allow=_CHANGING,
        ignored=_OF_OTHERS,
        needs_nodes=True,
    ),
    **{f"{name}-middle": replace(each, cut=30) for name, each in SCENES.items()},
    **{
        f"kafka44-{name}-middle": Scene(
            CAPTURES / f"kafka44-{name}.pcap", cut=30, ignored=(*_OF_OTHERS, *_SET_OTHERWISE)
        )
        for name in ("franz-go", "java-clients")
    },
}
"""Others of Kafka 4; those called `middle` begin midway."""

SCENES_39 = {
    "recreated-39": Scene(recreated, 3, allow=_CHANGING, ignored=_OF_OTHERS),
    "reassigned-39": Scene(reassignment, 3, allow=_CHANGING, ignored=_OF_OTHERS, needs_nodes=True),
    "crash-39": Scene(leader_change, 3),
    "timed-out-39": Scene(timed_out, 3),
    **{
        f"kafka39-{name}{end}": Scene(
            CAPTURES / f"kafka39-{name}.pcap", ignored=(*_OF_OTHERS, *_SET_OTHERWISE), cut=cut
        )
        for name in ("aiokafka-copies", "java-clients", "librdkafka-fenced", "librdkafka-group")
        for end, cut in (("", 0), ("-middle", 30))
    },
}
"""Captures of Kafka 3.9, some of them recorded when they are needed."""


async def play(plan: Plan, bootstrap: str, speed: float, scene: Scene, address: str = "") -> Report:
    """
    Replay under a new prefix.

    Args:
        plan: The plan of the capture.
        bootstrap: The cluster.
        speed: 0 for as fast as responses arrive.
        scene: The scene.
        address: Another address of the cluster to connect to.
    """
    prefix = f"{os.getpid()}-{next(_numbers)}-"
    await _read_from_beginning(bootstrap, [prefix + each for each in scene.share_groups])
    return await replay_async(
        plan,
        address or bootstrap,
        prefix=prefix,
        pace=Pace(speed),
        create_topics=True,
        timeout_s=20,
        noise=(*OF_THE_RELEASE, *scene.ignored),
        upgrade=scene in SCENES_39.values(),
    )


async def _read_from_beginning(bootstrap: str, groups: list[str]) -> None:
    """Let share groups read from the beginning of logs (KIP-932)."""
    if not groups:
        return
    cluster = await Cluster.connect([bootstrap.split(",")[0]], Security())
    try:
        start = {"name": "share.auto.offset.reset", "config_operation": _SET, "value": "earliest"}
        resources = [
            {"resource_type": _GROUP, "resource_name": group, "configs": [start]}
            for group in groups
        ]
        connection = await cluster.open(cluster.any_node)
        key = KEYS["IncrementalAlterConfigs"]
        body = await connection.request(key, 1, {"resources": resources, "validate_only": False})
        assert body is not None
        assert not any(each.error_code for each in body.responses)
        connection.close()
    finally:
        cluster.close()
