"""The summary of a report, and when it passes."""

from __future__ import annotations

import pytest

from findings.registry.finding_report import FindingReport, Headline
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects, first_packets


def test_a_report_passes_below_its_rank_and_only_with_exchanges() -> None:
    found = [RankedFinding("slow:Fetch", Rank.COSTS, "slow", 1)]
    report = FindingReport(Headline(exchanges=5), found)
    assert report.passed
    for rank, passes in ((Rank.BREAKS, True), (Rank.COSTS, False), (Rank.INFORMS, False)):
        report.fail_on = rank
        assert report.passed == passes
    assert not FindingReport(Headline(), [], fail_on=Rank.BREAKS).passed


@pytest.mark.parametrize(
    ("exchanges", "ranks", "text"),
    [
        (0, [], "nothing can be judged: no exchanges; nothing stands out in what could be judged"),
        (1, [], "nothing stands out in what could be judged"),
        (1, [Rank.BREAKS, Rank.INFORMS, Rank.INFORMS], "1 breaks, 2 informs"),
    ],
)
def test_the_summary_counts_ranks(exchanges: int, ranks: list[Rank], text: str) -> None:
    found = [RankedFinding("slow:Fetch", rank, "", 1) for rank in ranks]
    assert str(FindingReport(Headline(exchanges=exchanges), found)) == text


def test_subjects_are_joined_without_repeating() -> None:
    both = Subjects(("a",), groups=("g",)).joined(Subjects(("a", "b"), ("t",)))
    assert both == Subjects(("a", "b"), ("t",), ("g",))
    assert first_packets([3, 1, 3]) == (1, 3)
