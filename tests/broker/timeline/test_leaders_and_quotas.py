"""Moved leaders and throttled clients agree with the logs of brokers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.recording import fresh, record
from tests.broker.server_properties import Shape
from tests.broker.timeline.test_causes import logged
from timeline.events.event import Event
from timeline.public import timeline
from tools.record.scenarios.inside import THREE_4

pytestmark = pytest.mark.broker

_LEADS = re.compile(
    r"\[Broker id=(\d+)\] Leader (\S+)-(\d+) with .*? starts at leader epoch (\d+) "
)
_MOVED = re.compile(r"(\S+) (\d+): from .*? to broker (\d+), leader epoch \d+ to (\d+)")
_QUOTA = re.compile(r"Changing (PRODUCE|FETCH) quota for client-id (\S+) to")


def leaders_in(cluster: Cluster) -> set[tuple[str, ...]]:
    """Return the leader of each partition and epoch, from the logs of all nodes."""
    return {
        (topic, partition, broker, epoch)
        for node in cluster.nodes
        for broker, topic, partition, epoch in _LEADS.findall(node.log.read_text(errors="replace"))
    }


def only(events: list[Event], kind: str, event: str) -> list[Event]:
    return [each for each in events if (each.kind, each.event) == (kind, event)]


def test_leaders_equal_those_in_the_logs(tmp_path: Path) -> None:
    with fresh(THREE_4) as cluster:
        events = list(timeline(record(cluster, "kafka4-leader-change", tmp_path)))
        leaders = leaders_in(cluster)
        ids = {node.address.at("PLAINTEXT"): str(node.address.node_id) for node in cluster.nodes}
        stopped = cluster.nodes[0].address.at("PLAINTEXT")
    refused = only(events, "connection", "connect failed")
    assert {(each.cause, each.certain) for each in refused} == {("refused", True)}
    assert {each.subject.rpartition(" to ")[2] for each in refused} == {stopped}
    moved = only(events, "cluster", "leader moved")
    assert moved
    for each in moved:
        found = _MOVED.match(each.text)
        assert found is not None
        assert each.certain
        assert found.groups() in leaders, each.text
    changed = [
        *only(events, "producer", "leader changed"),
        *only(events, "consumer", "leader changed"),
    ]
    assert changed
    for each in changed:
        topic, partition = each.text.split(":")[0].split()
        went_on = re.search(r"went on at (\S+) after", each.text)
        assert went_on is not None
        assert {broker for of, at, broker, _ in leaders if (of, at) == (topic, partition)} >= {
            ids[went_on[1]]
        }


def test_throttled_clients_are_those_with_a_quota(kafka: StartCluster, tmp_path: Path) -> None:
    cluster = kafka(Shape())
    events, log = logged(cluster, lambda: record(cluster, "kafka4-throttled", tmp_path))
    limited = {(client, api.capitalize()) for api, client in _QUOTA.findall(log)}
    throttled = [each for each in events if each.event == "throttled"]
    assert throttled
    for each in throttled:
        assert (each.cause, each.certain) == ("quota", True)
        apis = re.search(r"\((.*?)\)", each.text)
        assert apis is not None
        client = each.subject.partition(" at ")[0]
        assert {(client, api) for api in apis[1].split(", ")} <= limited
