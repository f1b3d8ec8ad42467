"""A verdict for scanners and editors."""

from __future__ import annotations

from collections.abc import Mapping

from conform.registry.rule import Rule
from conform.registry.verdict import Cause, Finding, Verdict
from conform.report.baseline import baseline_line
from conform.report.byte_regions import Region, regions_of
from conform.report.verdict_document import MOODS
from conform.report.verdict_rows import finding_row
from conform.report.verdict_text import location_text, other_findings_text, side_text
from dissector.view.document.sarif_form import Scan, ScanPlace, ScanResult, ScanRule


def verdict_scan(verdict: Verdict, subject: str) -> Scan:
    """Return the rules of a verdict, its causes, and the bugs in kafkashark."""
    regions = regions_of(verdict)
    return Scan(
        "kafkashark",
        "https://kafka.apache.org/protocol.html",
        [_rule(rule) for rule in verdict.rules],
        [_result(cause, subject, regions) for cause in verdict.causes()],
        [f"{fault} ({fault.where})" for fault in verdict.faults.values()],
    )


def _rule(rule: Rule) -> ScanRule:
    help = f"{rule.asks} Violation: {rule.example}. Source: {rule.source}"
    return ScanRule(rule.id, rule.title, rule.asks, help, MOODS[rule.severity], rule.rank.value)


def _result(cause: Cause, subject: str, regions: Mapping[Finding, Region]) -> ScanResult:
    kind = cause.kind
    first = kind.first
    also = f"; with the same cause, {other_findings_text(cause)}" if cause.others else ""
    return ScanResult(
        first.rule.id,
        MOODS[first.severity],
        f"{first.found} ({side_text(first)}){also}",
        [_place(each, subject, regions.get(each)) for each in kind.findings],
        cause.count,
        baseline_line(kind),
        finding_row(kind, first),
        is_known=kind.known,
    )


def _place(finding: Finding, subject: str, region: Region | None) -> ScanPlace:
    name = location_text(finding) or subject
    if finding.capture and finding.capture != "-":
        return ScanPlace(name, finding.capture, region)
    if finding.connection is None and finding.broker:
        # Readers require a file, so use the broker's address; bytes are offsets in the response.
        span = finding.span and (finding.span[0], finding.span[1] - finding.span[0])
        return ScanPlace(name, finding.broker, span)
    return ScanPlace(name)
