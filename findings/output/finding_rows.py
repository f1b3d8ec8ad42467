"""A report of findings as rows; `section` is the type of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import RANKS, RankedFinding


def report_rows(
    report: FindingReport, subject: str, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the headline, the findings, what was not judged, and sources that failed."""
    headline = asdict(report.headline)
    counts = {rank.value: report.count(rank) for rank in RANKS}
    yield {"section": "headline", "subject": subject, **headline, **counts}
    for finding in report.findings[:most]:
        yield {"section": "finding", **finding_row(finding)}
    for line in report.unjudged:
        yield {"section": "not judged", "text": line}
    for source, bug in report.faults.items():
        yield {"section": "fault", "source": source, "bug": bug}


def finding_row(finding: RankedFinding) -> dict[str, Any]:
    """Return a finding as a JSON object."""
    return {
        "id": finding.id,
        "rank": finding.rank.value,
        "title": finding.title,
        "detail": finding.detail or None,
        "count": finding.count,
        "clients": list(finding.subjects.clients),
        "topics": list(finding.subjects.topics),
        "groups": list(finding.subjects.groups),
        "packets": list(finding.packets),
        "begin_ns": finding.begin_ns or None,
        "end_ns": finding.end_ns or None,
        "filter": finding.filter or None,
        "more": f"kafkashark {finding.more}" if finding.more else None,
        "joined": [finding_row(each) for each in finding.joined],
    }
