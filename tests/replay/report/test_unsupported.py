"""What the target can't do is a section of the report, with the clients that need it, and fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay import merge_reports
from replay.model.outcome import Outcome
from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.options.target_profile import ProfileLine, TargetProfile
from replay.report.report import write_report
from replay.report.run_report import RunReport
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import made, produced

NO_VERSION = "the target offers no version of ConsumerGroupHeartbeat that we know"


def _unsent() -> Outcome:
    unsent = {"parts": [], "is_refused": True, "is_unsupported": True, "failure": NO_VERSION}
    return outcome("ConsumerGroupHeartbeat", 0, {}, None, **unsent)


def _refused(error: int) -> Outcome:
    return outcome("Produce", 7, produced(), produced(error_code=error), number=1)


def _report(*of: Outcome, criteria: Criteria | None = None) -> RunReport:
    return made(*of, criteria=criteria or Criteria())


def test_unsent_requests_fail_by_default() -> None:
    report = _report(_unsent())
    assert not report.passed
    assert report.summary()["unsupported"] == 1
    assert "the target cannot do 1 requests (ConsumerGroupHeartbeat)" in str(report)
    (row,) = report.unsupported.rows()
    assert (row["api"], row["reason"]) == ("ConsumerGroupHeartbeat", NO_VERSION)
    assert row["clients"] == {"unknown (tester)": 1}
    assert _report(_unsent(), criteria=Criteria.of(["differs,error,missing"])).passed
    assert not _report(_unsent(), criteria=Criteria.of(["unsupported"])).passed


@pytest.mark.parametrize(
    ("error", "is_listed"), [(76, True), (35, True), (44, True), (43, True), (10, False)]
)
def test_refusals_of_a_codec_or_version_are_listed(error: int, is_listed: bool) -> None:
    report = _report(_refused(error), criteria=Criteria.of(["unsupported"]))
    assert report.passed is not is_listed
    assert len(report.unsupported.rows()) == is_listed


def test_a_baseline_accepts_them_and_a_profile_only_marks_them() -> None:
    accepted = DifferenceBaseline([key.line for key in _report(_unsent()).acceptable()])
    assert _report(_unsent(), criteria=Criteria.of([], accepted)).passed
    assert not accepted.stale
    page = "https://example.org"
    profile = TargetProfile([ProfileLine("ConsumerGroupHeartbeat", "", "", page)])
    report = _report(_unsent(), criteria=Criteria.of([], DifferenceBaseline(profile=profile)))
    assert not report.passed
    assert report.unsupported.rows()[0]["documented"] == page


def test_merged_reports_add_them_up(tmp_path: Path) -> None:
    files = []
    for number in range(2):
        report = _report(_unsent(), _refused(76))
        report.elapsed_ns += number
        report.about.began_ns += number
        files.append(tmp_path / f"{number}.ndjson")
        write_report(report, files[-1])
    sections = [json.loads(line)["section"] for line in files[0].read_text().splitlines()]
    assert sections.count("unsupported") == 2
    merged = merge_reports(files)
    assert merged.unsupported.failing == 4
    assert not merged.passed
    write_report(merged, junit := tmp_path / "merged.xml")
    assert "ConsumerGroupHeartbeat, unsupported" in junit.read_text()
