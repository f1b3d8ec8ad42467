"""A target that loses, doubles or changes what it was given is found out; an honest one is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replay import Plan, Report, replay
from replay.embedded import Embedded
from replay.outcome import Verdict
from tests.replay import lies
from tests.replay.liar import Lie, lying

TIMEOUT_S = 1.0


def played(folder: Path, lie: Lie) -> Report:
    """Play the capture at the embedded broker, which gives one batch at a time, behind a proxy."""
    topics = {lies.READ: 1, lies.UNREAD: 1}
    with (
        Plan.of(lies.capture(folder, polls=lies.WRITES, aborted=[])) as plan,
        Embedded(1, topics) as embedded,
        lying(embedded.addresses, lie) as address,
    ):
        return replay(plan, address, timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("lie", lies.LIES.values(), ids=lies.LIES)
def test_a_lie_is_found(tmp_path: Path, lie: Callable[[], Lie]) -> None:
    report = played(tmp_path, lie())
    assert not report.ended
    assert not report.passed, str(report)
    assert report.difference_count
    assert sum(report.verdicts.values()) == len(report.plan)


def test_the_truth_is_no_lie(tmp_path: Path) -> None:
    report = played(tmp_path, Lie())
    assert report.passed, str(report)
    assert report.verdicts[Verdict.SAME] == len(report.plan), str(report)
