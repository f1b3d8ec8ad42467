"""Transactions unfinished in a capture are not left open on the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from dissector import dissect
from replay import Plan, replay
from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape
from tools.record.raw_packets import walk
from tools.record.scenario import until
from tools.record.scenarios.kafka_python import admin

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
PATIENCE_S = 90.0

INTERRUPTED = (
    "kafka4-librdkafka-transactions",
    "kafka39-librdkafka-transactions",
    "kafka4-aiokafka-transactions",
)
"""The first leaves it to the broker to add partitions to a transaction; the others do so."""


@pytest.mark.parametrize("version", ["4.x", "3.9.x"])
@pytest.mark.parametrize("name", INTERRUPTED)
def test_no_transaction_stays_open(
    kafka: StartCluster, tmp_path: Path, name: str, version: str
) -> None:
    cluster = kafka(Shape(version))
    capture = before_first(CAPTURES / f"{name}.pcap", "EndTxn", tmp_path / "interrupted.pcap")
    prefix = f"interrupted-on-{version}-"
    with Plan.of(capture) as plan:
        assert "EndTxn" not in {step.captured.api for step in plan}
        report = replay(plan, cluster.bootstrap(), prefix=prefix, noise=OF_THE_RELEASE)
    assert report.passed, str(report)
    states = until("the end of what was aborted", lambda: settled(cluster, prefix + name))
    assert states
    assert set(states.values()) <= {"CompleteAbort", "Empty"}
    topic = f"{name}.{'orders' if 'aiokafka' in name else 'sink'}"
    stable, newest = ends(cluster, prefix + topic)
    assert sum(newest)
    assert stable == newest


def before_first(capture: Path, api: str, cut: Path) -> Path:
    """Write the packets before the first request of an API."""
    first_ns = min(each.request_time_ns or 0 for each in dissect(capture) if each.api == api)
    data = capture.read_bytes()
    for packet in walk(data):
        seconds, fraction = (
            int.from_bytes(data[packet.start + at : packet.start + at + 4], "little")
            for at in (0, 4)
        )
        if seconds * 1_000_000_000 + fraction * 1_000 >= first_ns:
            cut.write_bytes(data[: packet.start])
            return cut
    raise AssertionError(f"no {api} in {capture}")


def settled(cluster: Cluster, beginning: str) -> dict[str, str] | None:
    """Return the state of each transactional id; None while one is changing."""
    with admin(cluster.bootstrap()) as client:
        lists: dict[int, list[Any]] = client.list_transactions()
    found = {
        each.transactional_id: each.state.value
        for transactions in lists.values()
        for each in transactions
    }
    states = {name: state for name, state in found.items() if name.startswith(beginning)}
    return None if any(state.startswith("Prepare") for state in states.values()) else states


def ends(cluster: Cluster, topic: str) -> tuple[list[int], list[int]]:
    """Return last stable offset and end offset of each partition of a topic."""
    out = []
    for isolation in ("read_committed", "read_uncommitted"):
        reader = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap(),
                "group.id": "nobody",
                "isolation.level": isolation,
                "allow.auto.create.topics": False,
            }
        )
        known = reader.list_topics(topic, PATIENCE_S).topics[topic].partitions
        places = [TopicPartition(topic, each) for each in sorted(known)]
        out.append([reader.get_watermark_offsets(at, PATIENCE_S)[1] for at in places])
        reader.close()
    return out[0], out[1]
