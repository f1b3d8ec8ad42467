"""Profiles of targets: documented differences fail nothing, and never hide a lost record."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import UsageError
from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.options.target_profile import SHIPPED, TargetProfile
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import created, made, produced

SOURCE = "https://example.org/page"


def _profile(tmp_path: Path, *lines: str) -> TargetProfile:
    file = tmp_path / "profile.txt"
    file.write_text("# a comment\n\n" + "".join(f"{line}\n" for line in lines))
    return TargetProfile.of(file)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_have_a_source_in_each_line(name: str) -> None:
    profile = TargetProfile.of(name)
    assert profile.lines
    assert all(each.source.startswith("https://") for each in profile.lines)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Metadata.topics[*].is_internal", "has no source"),
        ("Metadata.topics[*].is_internal | ", "has no source"),
        ("Metadata.topics[*].is_internal | a page", "has no source"),
        (f"Metdata | {SOURCE}", "'Metdata' is no API"),
        (f"Metadata.topics[*].colour | {SOURCE}", "Metadata has no field 'topics[*].colour'"),
        (f"Metadata.topics[*]is_internal | {SOURCE}", "Metadata has no field"),
        (f"Fetch.responses[*] | {SOURCE}", "would hide lost records"),
        (f"Fetch.responses[*].partitions[*].records | {SOURCE}", "would hide lost records"),
        (f"Produce.responses[*].partition_responses[*].base_offset | {SOURCE}", "would hide lost"),
        (
            "Produce.responses[*].partition_responses[*].error_code: NONE -> CORRUPT_MESSAGE"
            f" | {SOURCE}",
            "would hide lost records",
        ),
    ],
)
def test_bad_lines_are_refused_with_their_number(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(UsageError, match=r"profile\.txt: line 4: ") as refused:
        _profile(tmp_path, f"ElectLeaders | {SOURCE}", line)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_documented_differences_fail_nothing(tmp_path: Path) -> None:
    profile = _profile(tmp_path, f"CreateTopics.topics[*].configs | {SOURCE}")
    criteria = Criteria.of([], DifferenceBaseline(profile=profile))
    setting = outcome("CreateTopics", 5, created("1", 1), created("2", 1))
    report = made(setting, criteria=criteria)
    assert report.passed
    assert "Documented for this target" in str(report)
    assert SOURCE in str(report)
    assert not made(setting).passed
    lost = outcome("Produce", 7, produced(), produced(base_offset=5), number=1)
    assert not made(setting, lost, criteria=criteria).passed
    missing = outcome("CreateTopics", 5, created("1"), None, number=1, failure="closed")
    assert not made(setting, missing, criteria=criteria).passed
