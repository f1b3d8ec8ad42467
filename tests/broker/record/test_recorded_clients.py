"""The results of real clients are the same with a recorder between them and the cluster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from conform import conform
from dissector.public import dissect
from record.public import Recorder
from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.waiting import PATIENCE_S
from tools.record.scenario import KAFKA_4, Stage, all_scenarios

pytestmark = pytest.mark.broker

CLIENTS = (
    "kafka4-librdkafka-group",
    "kafka4-librdkafka-transactions",
    "kafka4-kafka-python-as-4.3",
    "kafka4-aiokafka-copies",
    "kafka4-franz-go",
    "kafka4-sarama",
    "kafka4-kafka-go",
    "kafka4-java-clients",
)
STREAMS = ("kafka4-streams", "kafka4-streams-group")

EXPLAINED = {"kafka4-kafka-go": ["G05"]}
"""What `conform` says of clients without a recorder, too."""

Records = dict[str, list[tuple[bytes | None, bytes | None]]]


def committed_records(cluster: Cluster, scenario: str) -> Records:
    """Return key and value of what each topic of a scenario has, as `read_committed` sees it."""
    settings = {"group.id": "reader", "isolation.level": "read_committed"}
    settings |= {"bootstrap.servers": cluster.bootstrap(), "enable.partition.eof": True}
    consumer = Consumer(settings)
    begin = f"{scenario}."
    topics = consumer.list_topics(timeout=PATIENCE_S).topics
    found: Records = {}
    for name in sorted(each for each in topics if each.startswith(begin)):
        parts = [TopicPartition(name, number, 0) for number in topics[name].partitions]
        consumer.assign(parts)
        records = found.setdefault(name.removeprefix(begin), [])
        left = len(parts)
        while left:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, name
            if message.error() is None:
                records.append((message.key(), message.value()))
            else:
                left -= 1
    consumer.close()
    return found


def play_both(kafka: StartCluster, name: str, folder: Path) -> tuple[Records, Records]:
    """Play a scenario at the cluster and through a recorder; return what each has written."""
    cluster = kafka(KAFKA_4)
    (scenario,) = (each for each in all_scenarios() if each.name == name)
    ports = tuple(cluster.nodes[0].address.ports.values())
    direct, through = f"{name}-direct", f"{name}-through"
    scenario.play(Stage(direct, cluster.bootstrap(), ports, folder, cluster))
    file = folder / "recorded.pcapng"
    with Recorder(file, to=cluster.bootstrap()) as recorder:
        scenario.play(Stage(through, recorder.bootstrap, ports, folder, cluster))
    assert recorder.counts.unread == recorder.counts.foreign == 0
    assert not recorder.counts.failed
    assert sum(1 for _ in dissect(str(file))) == recorder.counts.requests > 20
    assert {each.broker for each in dissect(str(file))} == {cluster.bootstrap()}
    assert conform(str(file), ignore=EXPLAINED.get(name, ())).passed
    return committed_records(cluster, direct), committed_records(cluster, through)


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_write_the_same(kafka: StartCluster, tmp_path: Path, name: str) -> None:
    direct, through = play_both(kafka, name, tmp_path)
    assert any(direct.values())
    counts = [
        {topic: Counter(found) for topic, found in each.items()} for each in (direct, through)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", STREAMS)
def test_streams_with_exactly_once_end_with_the_same(
    kafka: StartCluster, tmp_path: Path, name: str
) -> None:
    """The last value of each key: how often a store is flushed depends on the time."""
    direct, through = play_both(kafka, name, tmp_path)
    last = [{topic: dict(found) for topic, found in each.items()} for each in (direct, through)]
    assert any(last[0].values())
    assert last[0] == last[1]
