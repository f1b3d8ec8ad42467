"""A report of findings for scanners and editors."""

from __future__ import annotations

from dissector.view.document.sarif_form import Scan, ScanPlace, ScanResult, ScanRule
from findings.output.finding_document import MOODS
from findings.output.finding_rows import finding_row
from findings.output.finding_texts import where, who
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import RankedFinding
from findings.sources.finding_source import SOURCES


def finding_scan(report: FindingReport, subject: str) -> Scan:
    """Return the sources and findings of a report."""
    begin_ns = report.headline.begin_ns
    return Scan(
        "kafkashark findings",
        "https://kafka.apache.org/documentation/",
        [ScanRule(each.name, each.title, each.meaning) for each in SOURCES.values()],
        [_result(each, subject, begin_ns) for each in report],
        [f"{source}: {bug}" for source, bug in report.faults.items()],
    )


def _result(finding: RankedFinding, subject: str, begin_ns: int) -> ScanResult:
    return ScanResult(
        finding.source,
        MOODS[finding.rank],
        "; ".join(filter(None, (finding.title, finding.detail, who(finding)))),
        [ScanPlace(where(finding, begin_ns) or subject, subject)],
        finding.count,
        finding.id,
        finding_row(finding),
    )
