"""The content of the report on a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from conform.registry.rank import Severity
from conform.registry.verdict import Cause, Verdict
from conform.report.verdict_text import (
    count_text,
    fault_text,
    location_text,
    other_findings_text,
    request_bytes_text,
    side_text,
    summary_line,
)
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

MOODS: dict[Severity, Mood] = {
    Severity.ERROR: "bad",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}


def verdict_document(verdict: Verdict, subject: str, *, is_page: bool) -> Document:
    """
    Return the report on a verdict.

    Args:
        verdict: The verdict.
        subject: The checked rules and exchanges: files, or the address of a broker.
        is_page: Whether it is a page: with the rules, and what a baseline knows.
    """
    causes = list(verdict.causes())
    new = [_finding(cause) for cause in causes if not cause.kind.known]
    known = [_finding(cause) for cause in causes if cause.kind.known]
    sections = [Section("findings", "Findings", [Findings(new)])] if new else []
    if is_page and known:
        sections.append(Section("baseline", "In the baseline", [Findings(known)]))
    if not_judged := list(_not_judged(verdict, is_page=is_page)):
        blocks = [Notes(not_judged, "Not judged")]
        sections.append(Section("not-judged", "Not judged", blocks))
    if verdict.faults:
        faults = map(fault_text, verdict.faults.values())
        title = "Bugs in kafkashark: please report them"
        sections.append(Section("faults", "Bugs", [Notes(faults, title, "bad")]))
    if is_page:
        sections.append(Section("rules", "Rules", [_rule_table(verdict)]))
    mood: Mood = "bad" if verdict.fails else "good"
    title = f"Conformance of {subject}"
    return Document(title, summary_line(verdict, subject), sections, mood)


def _finding(cause: Cause) -> Finding:
    kind = cause.kind
    first = kind.first
    rule = first.rule
    parts = [("expected", rule.asks)]
    for finding in kind.findings:
        parts.append(("found", finding.found))
        where = filter(None, (side_text(finding), location_text(finding)))
        parts.append(("", ": ".join(where)))
        if finding.request:
            parts.append(("sent", request_bytes_text(finding.request)))
    if cause.others:
        parts.append(("also", other_findings_text(cause)))
    return Finding(
        f"{rule.title} ({count_text(kind.count)}; {first.rank})",
        parts,
        f"{first.severity} {rule.id}",
        MOODS[first.severity],
        is_open=True,
    )


def _not_judged(verdict: Verdict, *, is_page: bool) -> Iterator[str]:
    """Yield what was not read; for a text also each reason, with the rules that share it."""
    yield from verdict.not_read
    rules: dict[tuple[str, int], list[str]] = {}
    for rule in () if is_page else verdict.rules:
        for reason, count in verdict.tallies[rule.id].unjudged.most_common():
            rules.setdefault((reason, count), []).append(rule.id)
    for (reason, count), ids in rules.items():
        yield f"{count_text(count)}: {reason} ({' '.join(ids)})"


def _rule_table(verdict: Verdict) -> Table:
    rows = []
    for rule in verdict.rules:
        tally = verdict.tallies[rule.id]
        reasons = "; ".join(f"{n:,}: {reason}" for reason, n in tally.unjudged.most_common())
        values = (rule.id, rule.title, str(rule.rank), tally.judged, tally.broken, reasons)
        rows.append(TableRow([*values, rule.source]))
    columns = ("rule", "title", "rank", "judged", "broken", "not judged", "source")
    return Table("Rules", columns, rows)


def _notebook_html(verdict: Verdict) -> str:
    subject = ", ".join(verdict.captures)
    return page_html("Verdict", html_lines(verdict_document(verdict, subject, is_page=True)))


register_form(Verdict, _notebook_html)
