"""
A verdict as JUnit XML: a rule is a test case.

Findings at least as severe as `--fail-on` fail it. With milder ones only, and where it could not be
judged, it is skipped with the reason as message: readers of JUnit show neither as a success.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from conform.registry.rule import Rule
from conform.registry.verdict import Fault, Kind, Tally, Verdict
from conform.report.verdict_text import place_text, summary_line, times_text, who_text
from dissector.view.text.escape import escaped


@dataclass(slots=True)
class _Case:
    """
    A test case.

    Attributes:
        rule: The rule.
        tally: The counts of the rule.
        failing: The findings that make it fail, each with the id of the rule that has already
            reported their cause, which is mostly empty.
        mild: The findings that do not make it fail, likewise.
        faults: Bugs in kafkashark.
    """

    rule: Rule
    tally: Tally
    failing: list[tuple[Kind, str]] = field(default_factory=list)
    mild: list[tuple[Kind, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def skipped(self) -> str:
        """Why the case neither fails nor passes; empty where it does."""
        if self.failing or self.faults:
            return ""
        if self.mild:
            kind = self.mild[0][0]
            return f"{kind.first.severity}, {times_text(kind.count)}: {kind.first.found}"
        if self.tally.judged or self.tally.broken:
            return ""
        return "; ".join(self.tally.unjudged) or "nothing of the kind was there"


def junit_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of the file."""
    cases = _cases(verdict)
    totals = (
        f'tests="{len(cases)}" failures="{sum(bool(case.failing) for case in cases)}" '
        f'errors="{sum(bool(case.faults) for case in cases)}" '
        f'skipped="{sum(bool(case.skipped) for case in cases)}" '
        f'time="{sum(case.tally.seconds for case in cases):.3f}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    yield f"<testsuite name={_attribute(f'kafkashark conform {subject}')} {totals}>"
    for case in cases:
        yield from _case_lines(case)
    yield f"<system-out>{_text(summary_line(verdict, subject))}</system-out>"
    yield "</testsuite>"
    yield "</testsuites>"


def _cases(verdict: Verdict) -> list[_Case]:
    found: dict[str, list[tuple[Kind, str]]] = defaultdict(list)
    for cause in verdict.causes():
        if not cause.kind.known:
            found[cause.kind.first.rule.id].append((cause.kind, ""))
            for kind in cause.others:
                found[kind.first.rule.id].append((kind, cause.kind.first.rule.id))
    cases = []
    for rule in verdict.rules:
        case = _Case(rule, verdict.tallies[rule.id])
        case.faults += [fault for fault in verdict.faults.values() if fault.rule == rule.id]
        for kind, cause_of in found[rule.id]:
            fails = verdict.is_failing(kind.first.severity)
            (case.failing if fails else case.mild).append((kind, cause_of))
        cases.append(case)
    return cases


def _case_lines(case: _Case) -> Iterator[str]:
    name = _attribute(f"{case.rule.id} {case.rule.title}")
    seconds = f"{case.tally.seconds:.6f}"
    yield f'<testcase classname="kafkashark.conform" name={name} time="{seconds}">'
    if case.skipped:
        yield f"<skipped message={_attribute(case.skipped)}/>"
    if case.faults:
        yield f"<error message={_attribute('a mistake of kafkashark')}>"
        for fault in case.faults:
            yield _text(f"{fault}, {times_text(fault.count)} ({fault.where})")
        yield "</error>"
    if case.failing:
        rank = case.failing[0][0].first.rank
        yield f"<failure type={_attribute(rank)} message={_attribute(case.rule.asks)}>"
        for kind, cause in case.failing:
            yield from _kind_lines(kind, cause)
        yield "</failure>"
    if case.mild:
        yield "<system-out>"
        for kind, cause in case.mild:
            yield from _kind_lines(kind, cause)
        yield "</system-out>"
    yield "</testcase>"


def _kind_lines(kind: Kind, cause: str) -> Iterator[str]:
    first = kind.first
    same = f" (the same cause as {cause})" if cause else ""
    yield _text(f"{first.severity}, {times_text(kind.count)}: {first.found}{same}")
    yield _text(f"  {who_text(first)}: {place_text(first)}")


def _text(text: str) -> str:
    return escape(escaped(text))


def _attribute(text: str) -> str:
    return quoteattr(escaped(text))
