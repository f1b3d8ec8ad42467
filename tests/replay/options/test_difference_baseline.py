"""Differences accepted by a file or due to an upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import UsageError
from replay.model.outcome import Outcome, Verdict
from replay.options.difference_baseline import DifferenceBaseline, accepted_lines
from replay.options.pass_criteria import Criteria
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import created, made, outcomes

_, DIFFERS, ERROR, MISSING = outcomes()[:4]


def _accepting(file: Path, *of: Outcome, upgrade: bool = False) -> Criteria:
    file.write_text("\n".join(accepted_lines(made(*of).acceptable())))
    return Criteria(accepted=DifferenceBaseline.read(file, upgrade))


def test_an_accepted_line_names_the_field_and_both_errors(tmp_path: Path) -> None:
    criteria = _accepting(tmp_path / "accepted", DIFFERS, ERROR)
    report = made(DIFFERS, ERROR, criteria=criteria)
    assert report.passed
    assert report.verdicts[Verdict.ACCEPTED] == 2
    other = outcome("Heartbeat", 3, {}, {"error_code": 25})
    same_field = outcome("Heartbeat", 3, {}, {"error_code": 22})
    criteria = _accepting(tmp_path / "accepted", other)
    assert made(other, criteria=criteria).passed
    assert not made(same_field, criteria=criteria).passed


def test_a_missing_response_is_accepted_by_its_api(tmp_path: Path) -> None:
    criteria = _accepting(tmp_path / "accepted", MISSING)
    assert criteria.accepted.lines == ("Produce: no answer",)
    assert made(MISSING, criteria=criteria).passed


def test_unused_entries_of_the_baseline_are_reported(tmp_path: Path) -> None:
    criteria = _accepting(tmp_path / "accepted", DIFFERS, MISSING)
    report = made(DIFFERS, criteria=criteria)
    assert report.stale_rows() == [{"stale": "Produce: no answer"}]
    assert made(DIFFERS, criteria=criteria, ended="interrupted").stale_rows() == []
    assert made(DIFFERS, criteria=criteria, captured=2).stale_rows() == []


def test_an_upgrade_accepts_new_apis_and_changed_defaults() -> None:
    criteria = Criteria(accepted=DifferenceBaseline(upgrade=True))
    offered = [{"api_key": 0, "min_version": 0, "max_version": most} for most in (9, 13)]
    apis = [{"api_keys": [each]} for each in offered]
    brought = [
        outcome("ApiVersions", 3, *apis),
        outcome("CreateTopics", 5, created("1"), created("2")),
        outcome("CreateTopics", 5, created("1"), {"topics": [{"name": "orders", "configs": []}]}),
        outcome("CreateTopics", 5, created("1"), created("1", source=3)),  # KIP-966
        _described(is_default=True),
    ]
    for each in brought:
        assert made(each, criteria=criteria).passed
        assert not made(each).passed
    real = [
        outcome("ApiVersions", 3, apis[0], {"error_code": 35}),
        outcome("CreateTopics", 5, created("1", source=4), created("2", source=4)),
        outcome("CreateTopics", 5, created("1"), created("2", source=4)),
        outcome("CreateTopics", 5, created("1"), created("2", source=3)),
        _described(is_default=False),
        outcome("CreateTopics", 5, created("1"), {"topics": []}),
    ]
    for each in real:
        assert not made(each, criteria=criteria).passed


def _described(is_default: bool) -> Outcome:
    """Responses of a broker before KIP-226 and of a later one."""
    sides = [
        {
            "results": [
                {
                    "resource_name": "t",
                    "configs": [{"name": "x", "value": value, "is_default": is_default}],
                }
            ]
        }
        for value in "ab"
    ]
    return outcome("DescribeConfigs", 0, *sides)


def test_each_setting_is_accepted_by_its_name(tmp_path: Path) -> None:
    changed = outcome("CreateTopics", 5, created("1", source=1), created("2", source=1))
    criteria = _accepting(tmp_path / "accepted", changed)
    setting = "CreateTopics.topics[*].configs[min.insync.replicas].value"
    assert criteria.accepted.lines == (setting,)
    assert list(made(changed).fields) == ["CreateTopics.topics[*].configs[*].value"]


def test_differences_due_to_an_upgrade_are_not_written_to_the_file(tmp_path: Path) -> None:
    criteria = Criteria(accepted=DifferenceBaseline(upgrade=True))
    changed = outcome("CreateTopics", 5, created("1"), created("2"))
    (place,) = made(changed, DIFFERS, criteria=criteria).acceptable()
    assert place.pattern.startswith("Produce.")


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        DifferenceBaseline.read(tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        DifferenceBaseline.read(tmp_path / "binary")
