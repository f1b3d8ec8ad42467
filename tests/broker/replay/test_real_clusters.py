"""Captures of real clusters and clients pass at real brokers, run after run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster.client.auth import Security
from cluster.client.cluster import Cluster
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from replay import Pace, Plan, Report, replay_async
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape
from tests.replay.support.fault_proxy import Fault, proxied

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

ROOT = Path(__file__).parents[3]
CAPTURED = ROOT.parent / "shared" / "repro" / "clusters"
RUNS = 5
_GROUP, _SET = 32, 0
"""Type of the resource, and operation, of IncrementalAlterConfigs (KIP-848, KIP-339)."""

NEEDS_REPLICAS = {"reborn"}
"""Captures that create a topic with three replicas: one node refuses, all that follows differs."""

_numbers = count()


class Scene(NamedTuple):
    """
    A capture, and what its replay needs.

    Attributes:
        nodes: Nodes of its cluster.
        allow: APIs that are otherwise left out.
        share_groups: Share groups that read from the beginning, by a setting made before.
    """

    nodes: int = 1
    allow: tuple[str, ...] = ()
    share_groups: tuple[str, ...] = ()


SETTINGS = (
    ("group.consumer.heartbeat.interval.ms", "1000"),
    ("group.consumer.min.heartbeat.interval.ms", "1000"),
    ("group.share.heartbeat.interval.ms", "1000"),
    ("group.share.min.heartbeat.interval.ms", "1000"),
    ("group.share.record.lock.duration.ms", "3000"),
    ("group.share.min.record.lock.duration.ms", "1000"),
)
"""Settings of the captured clusters that responses show."""

SCENES = {
    "crash": Scene(3),
    "k848": Scene(),
    "reborn": Scene(3, allow=("DeleteTopics",)),
    "share": Scene(share_groups=("sg",)),
    "txn": Scene(),
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("speed", [1.0, 0.0], ids=["captured", "max"])
@pytest.mark.parametrize("name", SCENES)
def test_each_run_passes(kafka: StartCluster, name: str, speed: float, nodes: int) -> None:
    capture, scene = CAPTURED / f"{name}.pcap.gz", SCENES[name]
    if not capture.exists():
        pytest.skip(f"{capture.name} is not there")
    bootstrap = kafka(Shape("4.x", nodes, properties=SETTINGS)).bootstrap()
    with Plan.of(capture, allow=scene.allow) as plan:
        reports = asyncio.run(_runs(plan, bootstrap, speed, scene))
    for report in reports:
        assert not report.ended
        if name in NEEDS_REPLICAS and nodes < scene.nodes:
            assert report.summary()["first_difference"].endswith("INVALID_REPLICATION_FACTOR")
        else:
            assert report.passed, str(report)


@dataclass
class OtherTypes(Fault):
    """Acknowledges records of share groups with another type."""

    before: int
    after: int

    def change_request(self, request: Message) -> bool:
        body = request.body
        if body is None or request.api not in ("ShareFetch", "ShareAcknowledge"):
            return False
        for topic in body.topics:
            for partition in topic.partitions:
                for each in partition.acknowledgement_batches:
                    kinds = each.acknowledge_types
                    each.acknowledge_types = [
                        self.after if kind == self.before else kind for kind in kinds
                    ]
        return True


ACCEPT, RELEASE = 1, 2


@pytest.mark.parametrize(
    ("fault", "start"),
    [
        (OtherTypes(ACCEPT, RELEASE), "or later"),
        (OtherTypes(RELEASE, ACCEPT), "or earlier"),
        (Fault(), ""),
    ],
    ids=["accepted records are released", "released records are accepted", "honest"],
)
def test_changed_acknowledgements_are_found(kafka: StartCluster, fault: Fault, start: str) -> None:
    capture, scene = CAPTURED / "share.pcap.gz", SCENES["share"]
    if not capture.exists():
        pytest.skip(f"{capture.name} is not there")
    bootstrap = kafka(Shape("4.x", properties=SETTINGS)).bootstrap()
    with Plan.of(capture) as plan, proxied(bootstrap.split(","), fault) as address:
        report = asyncio.run(_run(plan, bootstrap, 0.0, scene, address))
    found = {(each["api"], each["path"].rpartition(".")[2]) for each in report.differences()}
    assert found == ({("ShareAcknowledge", "start_offset")} if start else set()), str(report)
    assert all(start in each["captured"] for each in report.differences())


async def _runs(plan: Plan, bootstrap: str, speed: float, scene: Scene) -> list[Report]:
    """Replay several times: side by side at the captured speed, else one after the other."""
    given = plan, bootstrap, speed, scene
    if speed:
        return await asyncio.gather(*(_run(*given) for _ in range(RUNS)))
    return [await _run(*given) for _ in range(RUNS)]


async def _run(plan: Plan, bootstrap: str, speed: float, scene: Scene, address: str = "") -> Report:
    """Replay under a new prefix, at another address of the cluster if one is given."""
    prefix = f"{next(_numbers)}-"
    await _read_from_beginning(bootstrap, [prefix + each for each in scene.share_groups])
    return await replay_async(
        plan,
        address or bootstrap,
        prefix=prefix,
        pace=Pace(speed),
        create_topics=True,
        timeout_s=20,
        noise=OF_THE_RELEASE,
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
