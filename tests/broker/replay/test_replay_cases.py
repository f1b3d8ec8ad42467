from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replay import Plan
from tests.broker.replay.cases import CASES, LINES, NOT_PLAYED
from tools.record.manifest import read
from tools.record.scenario import Mock, all_scenarios

CAPTURES = Path(__file__).parents[3] / "captures"


def test_each_scenario_is_replayed_or_has_a_reason() -> None:
    """Those of librdkafka's mock cluster are replayed in `tests/replay/test_recorded_replay.py`."""
    ours = {each.name for each in all_scenarios() if not isinstance(each.cluster, Mock)}
    named = Counter([case.name for _, cases in LINES for case in cases] + list(NOT_PLAYED))
    assert named == Counter(ours)
    assert len(CASES) + len(NOT_PLAYED) == len(ours)


@pytest.mark.parametrize("name", NOT_PLAYED)
def test_scenarios_not_replayed_send_nothing(name: str) -> None:
    with Plan.of(CAPTURES / read(CAPTURES)[name].file) as plan:
        sent = {step.captured.api for step in plan if not step.left_out}
    assert sent <= {"ApiVersions", "Metadata"}
