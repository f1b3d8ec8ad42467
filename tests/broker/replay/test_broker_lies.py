"""With a real broker: each lie about what nothing reads again is found, an honest one passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from replay import Plan, Report, replay
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tests.replay.support.fault_proxy import Fault, proxied
from tests.replay.support.lies import LIES, OF_KAFKA
from tests.replay.support.unread import unread

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

TIMEOUT_S = 20.0
_prefixes = (f"lies-{at}-" for at in count())
_ALL = {**LIES, **OF_KAFKA}


def played(folder: Path, kafka: StartCluster, fault: Fault) -> Report:
    with (
        Plan.of(unread(folder)) as plan,
        proxied(kafka(Shape("4.x")).bootstrap().split(","), fault) as address,
    ):
        return replay(
            plan, address, timeout_s=TIMEOUT_S, prefix=next(_prefixes), create_topics=True
        )


@pytest.mark.parametrize("lie", _ALL.values(), ids=_ALL)
def test_each_lie_is_found(kafka: StartCluster, tmp_path: Path, lie: Callable[[], Fault]) -> None:
    report = played(tmp_path, kafka, lie())
    assert not report.ended
    assert not report.passed, str(report)


def test_an_honest_broker_passes(kafka: StartCluster, tmp_path: Path) -> None:
    report = played(tmp_path, kafka, Fault())
    assert report.passed, str(report)
    assert not report.unbalanced_rows()
