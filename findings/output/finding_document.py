"""The content of a report of findings, for a page, and its test cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.notebook_forms import register_form
from dissector.view.document.content import (
    Document,
    Facts,
    Finding,
    Findings,
    Mood,
    Notes,
    Section,
)
from dissector.view.document.html_form import html_lines
from dissector.view.document.junit_form import TestCase, TestSuite
from dissector.view.text.notebook import page_html
from findings.output.finding_texts import headline_lines, next_commands, summary, where, who
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import RANKS, Rank, RankedFinding
from findings.sources.finding_source import SOURCES

MOODS: dict[Rank, Mood] = {
    Rank.BREAKS: "bad",
    Rank.COSTS: "warning",
    Rank.DIFFERS: "warning",
    Rank.INFORMS: "note",
}


def finding_document(report: FindingReport, subject: str) -> Document:
    """Return the report; `subject` names its captures."""
    begin_ns = report.headline.begin_ns
    found = [finding_block(each, begin_ns) for each in report]
    sections = [Section("capture", "Capture", [Notes(list(headline_lines(report.headline)))])]
    if found:
        sections.append(Section("findings", "What stands out", [Findings(found)]))
    faults = [f"{source}: bug in kafkashark: {bug}" for source, bug in report.faults.items()]
    if lines := [*report.unjudged, *faults]:
        title = "Not judged, or only in part"
        sections.append(Section("not-judged", title, [Notes(lines, title)]))
    commands = [(what, command) for command, what in next_commands(report, [subject])]
    sections.append(Section("go-on", "Go on", [Facts(commands)]))
    worst = report.findings[0].rank if report.findings else None
    mood: Mood = MOODS[worst] if worst else "good" if report.headline.exchanges else "unsure"
    return Document(f"What stands out in {subject}", summary(report, subject), sections, mood)


def finding_suite(report: FindingReport, subject: str) -> TestSuite:
    """Return the test cases of a report: one for each source."""
    cases = [_case(report, source) for source in SOURCES]
    return TestSuite(
        f"kafkashark findings {subject}",
        "kafkashark.findings",
        cases,
        0.0,
        summary(report, subject),
    )


def finding_block(finding: RankedFinding, begin_ns: int) -> Finding:
    """Return a finding for a report; times count from `begin_ns`."""
    parts: list[tuple[str, Any]] = [
        ("what", finding.detail),
        ("who", who(finding)),
        ("where", where(finding, begin_ns)),
        *(("with it", each.title) for each in finding.joined),
        ("filter", finding.filter),
        ("more", f"kafkashark {finding.more}"),
    ]
    return Finding(
        finding.title,
        [part for part in parts if part[1]],
        str(finding.rank),
        MOODS[finding.rank],
        is_open=True,
    )


def _case(report: FindingReport, source: str) -> TestCase:
    found = [each for each in report if each.source == source]
    case = TestCase(f"{source} {SOURCES[source].title}")
    lines = [f"{each.rank} {each.title}: {each.detail}; -Y '{each.filter}'" for each in found]
    failing = RANKS[: RANKS.index(report.fail_on) + 1] if report.fail_on else ()
    if any(each.rank in failing for each in found):
        case.outcome, case.message, case.details = "failure", found[0].title, lines
        case.type = str(found[0].rank)
    elif found:
        case.outcome, case.message, case.output = "skipped", found[0].title, lines
    elif not report.headline.exchanges or source in report.faults:
        case.outcome = "skipped"
        case.message = report.faults.get(source, "there is no exchange to judge")
    return case


def _notebook_html(report: FindingReport) -> str:
    lines: Iterator[str] = html_lines(finding_document(report, "capture"))
    return page_html("What stands out", lines)


register_form(FindingReport, _notebook_html)
