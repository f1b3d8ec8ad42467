"""Captures of real clusters and clients pass at real brokers, run after run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from dissector.protocol.messages import Message
from replay import Plan, Report
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.honest_scenes import SCENES, SETTINGS, Scene, play
from tests.broker.server_properties import Shape
from tests.replay.support.fault_proxy import Fault, proxied

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

RUNS = 5


@pytest.mark.timeout(400)
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("speed", [1.0, 0.0], ids=["captured", "max"])
@pytest.mark.parametrize("name", SCENES)
def test_each_run_passes(kafka: StartCluster, name: str, speed: float, nodes: int) -> None:
    scene = SCENES[name]
    capture = _capture(name)
    bootstrap = kafka(Shape("4.x", nodes, properties=SETTINGS)).bootstrap()
    with Plan.of(capture, allow=scene.allow) as plan:
        reports = asyncio.run(_runs(plan, bootstrap, speed, scene))
    for report in reports:
        assert scene.is_right(report, nodes), str(report)


def _capture(name: str) -> Path:
    try:
        return SCENES[name].capture(name, Path())
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


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
    capture, scene = _capture("share"), SCENES["share"]
    bootstrap = kafka(Shape("4.x", properties=SETTINGS)).bootstrap()
    with Plan.of(capture) as plan, proxied(bootstrap.split(","), fault) as address:
        report = asyncio.run(play(plan, bootstrap, 0.0, scene, address))
    found = {(each["api"], each["path"].rpartition(".")[2]) for each in report.differences()}
    assert found == ({("ShareAcknowledge", "start_offset")} if start else set()), str(report)
    assert all(start in each["captured"] for each in report.differences())


async def _runs(plan: Plan, bootstrap: str, speed: float, scene: Scene) -> list[Report]:
    """Replay several times: side by side at the captured speed, else one after the other."""
    given = plan, bootstrap, speed, scene
    if speed:
        return await asyncio.gather(*(play(*given) for _ in range(RUNS)))
    return [await play(*given) for _ in range(RUNS)]
