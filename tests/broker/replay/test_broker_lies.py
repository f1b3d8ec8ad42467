"""With a real broker: each lie is found, an honest one passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from replay import Plan, Report, replay
from tests.broker.conftest import StartCluster
from tests.broker.replay.cases import AT_ONCE
from tests.broker.replay.support.releases import OF_THE_RELEASE
from tests.broker.server_properties import Shape
from tests.corpus import FOLDER
from tests.replay.support.fault_proxy import Fault, proxied
from tests.replay.support.lies import LIES, OF_KAFKA, REBORN, RECORDED, REMOVED
from tests.replay.support.unread import reborn, removed, unread

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

TIMEOUT_S = 20.0
_prefixes = (f"lies-{at}-" for at in count())
_ALL = {**LIES, **OF_KAFKA}


def played(capture: str | Path, kafka: StartCluster, fault: Fault) -> Report:
    bootstrap = kafka(Shape("4.x", properties=AT_ONCE)).bootstrap()
    allow = ("DeleteGroups", "DeleteTopics")
    with Plan.of(capture, allow=allow) as plan, proxied(bootstrap.split(","), fault) as address:
        return replay(
            plan,
            address,
            timeout_s=TIMEOUT_S,
            prefix=next(_prefixes),
            create_topics=True,
            noise=OF_THE_RELEASE,
        )


@pytest.mark.parametrize("lie", _ALL.values(), ids=_ALL)
def test_each_lie_is_found(kafka: StartCluster, tmp_path: Path, lie: Callable[[], Fault]) -> None:
    report = played(unread(tmp_path), kafka, lie())
    assert not report.ended
    assert not report.passed, str(report)


@pytest.mark.parametrize("lie", REMOVED.values(), ids=REMOVED)
def test_what_is_not_removed_is_found(
    kafka: StartCluster, tmp_path: Path, lie: Callable[[], Fault]
) -> None:
    report = played(removed(tmp_path), kafka, lie())
    (row,) = report.differences()
    assert row["captured"] == "removed", row
    assert row["replayed"].startswith("is there at the end"), row


@pytest.mark.parametrize(("name", "lie"), RECORDED.values(), ids=RECORDED)
def test_each_lie_to_recorded_clients_is_found(
    kafka: StartCluster, name: str, lie: Callable[[], Fault]
) -> None:
    report = played(FOLDER / f"{name}.pcap", kafka, lie())
    assert not report.passed, str(report)


@pytest.mark.parametrize("lie", REBORN.values(), ids=REBORN)
def test_a_lie_about_a_topic_created_again_is_found(
    kafka: StartCluster, tmp_path: Path, lie: Callable[[], Fault]
) -> None:
    report = played(reborn(tmp_path), kafka, lie())
    (row,) = report.differences()
    assert row["path"].endswith(("high_watermark", "num_partitions")), row


MADE = {"unread": unread, "removed": removed, "reborn": reborn}


@pytest.mark.parametrize("name", [*MADE, *sorted({name for name, _ in RECORDED.values()})])
def test_an_honest_broker_passes(kafka: StartCluster, tmp_path: Path, name: str) -> None:
    capture = MADE[name](tmp_path) if name in MADE else FOLDER / f"{name}.pcap"
    report = played(capture, kafka, Fault())
    assert report.passed, str(report)
    assert not report.unbalanced_rows()
