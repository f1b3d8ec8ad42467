"""Sources of settings: defaults, or set by somebody."""

from __future__ import annotations

import pytest

from replay.compare.config_sources import are_defaults, is_default_setting
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.options.difference_baseline import DifferenceBaseline, DifferenceKey
from tests.replay.support.outcomes import outcome


@pytest.mark.parametrize(
    ("one", "other", "is_default"),
    [
        ({"config_source": 5, "value": "1"}, {"config_source": 5, "value": "2"}, True),
        ({"source": 5}, {"source": 5}, True),
        ({"is_default": True}, {"is_default": True}, True),
        ({"is_default": True}, {"is_default": False}, False),
        ({"config_source": 5, "value": "1"}, {"config_source": 3, "value": "1"}, True),
        ({"config_source": 5, "value": "1"}, {"config_source": 3, "value": "2"}, False),
        ({"config_source": 3, "value": "1"}, {"config_source": 3, "value": "1"}, False),
        ({"config_source": 5, "value": "1"}, {"config_source": 1, "value": "1"}, False),
        ({"name": "t"}, {"name": "t"}, False),
    ],
)
def test_defaults(one: dict[str, object], other: dict[str, object], is_default: bool) -> None:
    assert is_default_setting(one, other) is is_default
    assert is_default_setting(other, one) is is_default


def test_defaults_of_two_releases() -> None:
    assert are_defaults("task_offset_interval_ms", 0, 60_000)
    assert not are_defaults("task_offset_interval_ms", 0, 30_000)
    assert not are_defaults("task_offset_interval_ms", None, 60_000)
    assert not are_defaults("heartbeat_interval_ms", 0, 60_000)


@pytest.mark.parametrize("upgrade", [False, True])
def test_an_upgrade_accepts_the_default_of_another_release(upgrade: bool) -> None:
    bodies = ({"task_offset_interval_ms": interval_ms} for interval_ms in (0, 60_000))
    made = outcome("StreamsGroupHeartbeat", 0, *bodies)
    _, (difference,) = compare_outcome(made, IdMap())
    baseline = DifferenceBaseline(upgrade=upgrade)
    place = DifferenceKey.of("StreamsGroupHeartbeat", difference)
    found = baseline.accepted_by("StreamsGroupHeartbeat", place, difference)
    assert bool(found) is upgrade
