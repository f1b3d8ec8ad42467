"""Text of reports: it fits, it is safe, and it cuts details."""

from __future__ import annotations

import pytest

from findings.output.finding_lines import FindingLines
from findings.registry.finding_report import FindingReport, Headline
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects


def report(**more: object) -> FindingReport:
    finding = RankedFinding(
        "error:Fetch:X",
        Rank.BREAKS,
        "1 Fetch failed: X",
        1,
        **more,  # type: ignore[arg-type]
    )
    return FindingReport(Headline(begin_ns=1, end_ns=2, exchanges=1), [finding])


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    names = tuple(f"client-{number}" for number in range(40))
    long = report(detail="word; " * 200, subjects=Subjects(names, names, names))
    lines = list(FindingLines(width).lines(long, ["a.pcap"]))
    text = [line for line in lines if "kafkashark" not in line]
    assert max(map(len, text)) <= width
    joined = " ".join(line.strip() for line in lines)
    assert "word ..." in joined
    assert "and 35 more" in joined


def test_control_characters_of_the_capture_are_escaped() -> None:
    hostile = report(subjects=Subjects(("\x1b[2J",), ("\u202e",)), filter="client_id == '\x1b'")
    lines = list(FindingLines().lines(hostile, ["\x1b.pcap"]))
    assert all(line.isprintable() for line in lines)
