"""The ranked list: of the demo, of the corpus, of captures without anything to judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.public import open_capture
from findings.gather.capture_pass import CapturePass
from findings.public import findings
from findings.registry.ranked_finding import RANKS, Rank
from findings.sources.finding_source import SOURCES, FindingSource
from tests.conform.scene import Scene
from tests.corpus import FOLDER, each_capture
from tests.findings.scenes import by_id, found, shown, written

DEMO = FOLDER / "demo.pcap"

EXACT = ("error", "unanswered", "slow", "problem")
"""Sources whose findings count exchanges: as many as their filters select."""


def keylogs(path: Path) -> list[Path]:
    return list(FOLDER.glob(f"{path.name.partition('.')[0]}*.keylog"))


def test_the_demo_leads_with_its_errors_the_rebalance_and_violations() -> None:
    report = found(DEMO)
    found_errors = [each for name, each in by_id(report).items() if name.startswith("error:")]
    assert sum(each.count for each in found_errors) == report.headline.failed == 13
    assert [each.id for each in report][:6] == [
        "error:OffsetCommit:UNKNOWN_TOPIC_OR_PARTITION",
        "error:Metadata:INVALID_TOPIC_EXCEPTION",
        "error:Metadata:UNKNOWN_TOPIC_OR_PARTITION",
        "error:FindCoordinator:COORDINATOR_NOT_AVAILABLE",
        "error:InitProducerId:COORDINATOR_LOAD_IN_PROGRESS",
        "event:group:rebalance:joined:billing",
    ]
    ranks = [RANKS.index(each.rank) for each in report]
    assert ranks == sorted(ranks)
    assert report.headline.exchanges == 281
    assert report.headline.is_complete


def test_what_has_one_cause_is_one_finding() -> None:
    first, topic, *_ = found(DEMO)
    assert [each.source for each in first.joined] == ["event"]
    assert first.subjects.groups == ("audit",)
    assert [each.id for each in topic.joined] == ["conformance:B22"]


@pytest.mark.thinned(12)
@each_capture("findings")
def test_filters_select_what_was_counted(path: Path) -> None:
    report = findings(open_capture(path, keylogs=keylogs(path)))
    assert not report.faults
    for finding in by_id(report).values():
        if not finding.filter:
            assert finding.source in ("damage", "event"), finding.id
            continue
        rows = len(open_capture(path, filter=finding.filter, keylogs=keylogs(path)).exchanges())
        assert rows, finding.filter
        if finding.source in EXACT:
            assert rows == finding.count, finding.filter


def test_a_filter_narrows_the_list() -> None:
    report = found(DEMO, "client_id == auditor")
    assert report.headline.exchanges == 15
    assert {each.id for each in report if each.source == "error"} == {
        "error:OffsetCommit:UNKNOWN_TOPIC_OR_PARTITION",
        "error:Metadata:INVALID_TOPIC_EXCEPTION",
    }
    assert "conformance:B18" not in by_id(report)
    assert "conformance:B22" in by_id(report)


def test_a_clean_capture_says_what_was_judged_and_an_unread_one_is_no_pass(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect(syn=False)
    for number in range(5):
        member = {"group_id": "billing", "generation_id": 1, "member_id": "billing-1"}
        connection.request(12, 3, number, **member)
        connection.response(12, 3, number)
    report = found(written(scene, tmp_path))
    report.fail_on = Rank.INFORMS
    assert not report.findings
    assert str(report) == "nothing stands out in what could be judged"
    assert report.passed
    assert any("rules judged" in line for line in report.unjudged)
    unread = findings(FOLDER / "kafka4-java-tls13.pcap.gz", fail_on="breaks")
    assert str(unread).startswith("nothing can be judged: no exchanges")
    assert not unread.passed
    assert not unread.headline.is_complete


@pytest.mark.thinned(3)
@pytest.mark.parametrize("part", ["_add_rows", "_advance", "_upgrade"])
def test_a_part_that_fails_is_a_line_and_the_rest_goes_on(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("what may be secret")

    whole = {each.source for each in by_id(found(DEMO)).values()}
    monkeypatch.setattr(CapturePass, part, fails)
    report = found(DEMO)
    ((name, bug),) = report.faults.items()
    assert name in ("exchanges", "events", "upgrade")
    assert "secret" not in bug
    left = {each.source for each in by_id(report).values()}
    assert left >= whole - {"error", "slow", "event"}


def test_a_source_that_fails_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> list[None]:
        raise ZeroDivisionError

    broken = FindingSource("slow", "", "", fails)  # type: ignore[arg-type]
    monkeypatch.setitem(SOURCES, "slow", broken)
    report = found(DEMO)
    assert list(report.faults) == ["slow"]
    assert "error" in {each.source for each in report}


def test_wrong_use_is_refused() -> None:
    with pytest.raises(UsageError, match="no source of findings 'eror'; did you mean error"):
        findings(DEMO, select="eror")
    with pytest.raises(UsageError, match="fail_on takes breaks, costs, differs, informs"):
        findings(DEMO, fail_on="errors")
    with pytest.raises(UsageError, match="findings needs a capture"):
        findings()


def test_sources_are_selected() -> None:
    assert {each.source for each in findings(DEMO, select="error,slow")} == {"error", "slow"}
    assert "error" not in {each.source for each in findings(DEMO, ignore=["error"])}
    report = findings(DEMO, select="slow")
    assert shown(DEMO, report.findings[0]) == report.findings[0].count == 3


def test_a_capture_answers_what_stands_out_in_it() -> None:
    capture = open_capture(DEMO, filter="client_id == auditor")
    assert [each.id for each in capture.findings(select="error")] == [
        "error:OffsetCommit:UNKNOWN_TOPIC_OR_PARTITION",
        "error:Metadata:INVALID_TOPIC_EXCEPTION",
    ]
