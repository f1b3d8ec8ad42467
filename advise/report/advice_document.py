"""The content of a report of advice."""

from __future__ import annotations

from advise.registry.advice import Rank
from advise.registry.advice_report import AdviceFinding, AdviceReport
from advise.report.advice_text import advice_summary, packets_text, setting_text, unjudged_lines
from dissector.notebook_forms import register_form
from dissector.view.document.content import (
    Document,
    Finding,
    Findings,
    Mood,
    Notes,
    Section,
    Table,
    TableRow,
)
from dissector.view.document.html_form import html_lines
from dissector.view.text.notebook import page_html

MOODS: dict[Rank, Mood] = {Rank.COSTLY: "bad", Rank.RISKY: "warning", Rank.INFORMS: "note"}


def advice_document(report: AdviceReport, subject: str, *, is_page: bool) -> Document:
    """
    Return the report of advice.

    Args:
        report: What was found.
        subject: The captures.
        is_page: Whether it is a page: with a table of all advices.
    """
    sections = []
    if report.findings:
        sections.append(Section("findings", "Findings", [Findings(map(_finding, report))]))
    if lines := list(unjudged_lines(report)):
        sections.append(Section("not-judged", "Not judged", [Notes(lines, "Not judged")]))
    if is_page:
        sections.append(Section("advices", "Advices", [_table(report)]))
    mood: Mood = "good" if report.passed else "bad"
    return Document(f"Advice on {subject}", advice_summary(report, subject), sections, mood)


def _finding(finding: AdviceFinding) -> Finding:
    return Finding(
        f"{finding.advice.title}: {finding.subject}",
        [
            ("found", finding.found),
            ("costs", finding.cost),
            ("change", setting_text(finding)),
            ("see", packets_text(finding)),
        ],
        f"{finding.rank} {finding.advice.id}",
        MOODS[finding.rank],
        is_open=True,
    )


def _table(report: AdviceReport) -> Table:
    rows = []
    for advice in report.advices:
        reasons = report.unjudged.get(advice.id, {})
        why = "; ".join(f"{count:,}: {reason}" for reason, count in reasons.items())
        found = sum(each.advice.id == advice.id for each in report)
        values = (advice.id, str(advice.rank), advice.title, found, report.judged[advice.id], why)
        rows.append(TableRow([*values, advice.source]))
    columns = ("advice", "rank", "title", "found", "judged", "not judged", "source")
    return Table("Advices", columns, rows)


def _notebook_html(report: AdviceReport) -> str:
    return page_html("Advice", html_lines(advice_document(report, "capture", is_page=True)))


register_form(AdviceReport, _notebook_html)
