"""A report of advice for scanners and editors."""

from __future__ import annotations

from advise.registry.advice import Advice
from advise.registry.advice_report import AdviceFinding, AdviceReport
from advise.report.advice_document import MOODS
from advise.report.advice_rows import finding_row
from advise.report.advice_text import packets_text
from dissector.view.document.sarif_form import Scan, ScanPlace, ScanResult, ScanRule


def advice_scan(report: AdviceReport, subject: str) -> Scan:
    """Return the advices and findings of a report."""
    return Scan(
        "kafkashark advise",
        "https://kafka.apache.org/documentation/",
        [_rule(advice) for advice in report.advices],
        [_result(each, subject) for each in report],
    )


def _rule(advice: Advice) -> ScanRule:
    settings = "; ".join(f"{library}: {text}" for library, text in advice.settings.items())
    return ScanRule(
        advice.id,
        advice.title,
        f"{advice.what} {advice.cost}",
        f"{settings}. Source: {advice.source}",
        MOODS[advice.rank],
        advice.rank.value,
    )


def _result(finding: AdviceFinding, subject: str) -> ScanResult:
    return ScanResult(
        finding.advice.id,
        MOODS[finding.rank],
        f"{finding.subject}: {finding.found}. {finding.cost}",
        [ScanPlace(packets_text(finding), subject)],
        finding.count,
        f"{finding.advice.id} {finding.subject}",
        finding_row(finding),
    )
