"""
A verdict as JUnit XML: a rule is a test case.

Findings at least as severe as `--fail-on` fail it. A case with only milder findings, or without a
judgement, is skipped with the reason as message, so that readers of JUnit do not show a success.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from conform.registry.rule import Rule
from conform.registry.verdict import Fault, Kind, Tally, Verdict
from conform.report.verdict_text import count_text, location_text, side_text, summary_line
from dissector.view.text.escape import escaped


@dataclass(slots=True)
class _TestCase:
    """
    A test case.

    Attributes:
        rule: The rule.
        tally: The counts of the rule.
        failing: The findings that fail it, each with the id of the rule that reports their common
            cause, if any; else empty.
        not_failing: The milder findings, in the same form.
        faults: Bugs in kafkashark.
    """

    rule: Rule
    tally: Tally
    failing: list[tuple[Kind, str]] = field(default_factory=list)
    not_failing: list[tuple[Kind, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def skipped(self) -> str:
        """Reason why the case neither fails nor passes; empty without one."""
        if self.failing or self.faults:
            return ""
        if self.not_failing:
            kind = self.not_failing[0][0]
            return f"{kind.first.severity}, {count_text(kind.count)}: {kind.first.found}"
        if self.tally.judged or self.tally.broken:
            return ""
        return "; ".join(self.tally.unjudged) or "there was no case to judge"


def junit_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of the file."""
    cases = _test_cases(verdict)
    totals = (
        f'tests="{len(cases)}" failures="{sum(bool(case.failing) for case in cases)}" '
        f'errors="{sum(bool(case.faults) for case in cases)}" '
        f'time="{sum(case.tally.seconds for case in cases):.3f}"'
    )
    name = _escape_attribute(f"kafkashark conform {subject}")
    skipped = sum(bool(case.skipped) for case in cases)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    # The schema allows `skipped` only here.
    yield f'<testsuite name={name} {totals} skipped="{skipped}">'
    for case in cases:
        yield from _case_lines(case)
    yield f"<system-out>{_escape_text(summary_line(verdict, subject))}</system-out>"
    yield "</testsuite>"
    yield "</testsuites>"


def _test_cases(verdict: Verdict) -> list[_TestCase]:
    found: dict[str, list[tuple[Kind, str]]] = defaultdict(list)
    for cause in verdict.causes():
        if not cause.kind.known:
            found[cause.kind.first.rule.id].append((cause.kind, ""))
            for kind in cause.others:
                found[kind.first.rule.id].append((kind, cause.kind.first.rule.id))
    cases = []
    for rule in verdict.rules:
        case = _TestCase(rule, verdict.tallies[rule.id])
        case.faults += [fault for fault in verdict.faults.values() if fault.rule == rule.id]
        for kind, cause_of in found[rule.id]:
            fails = verdict.is_failing(kind.first.severity)
            (case.failing if fails else case.not_failing).append((kind, cause_of))
        cases.append(case)
    return cases


def _case_lines(case: _TestCase) -> Iterator[str]:
    name = _escape_attribute(f"{case.rule.id} {case.rule.title}")
    seconds = f"{case.tally.seconds:.6f}"
    yield f'<testcase classname="kafkashark.conform" name={name} time="{seconds}">'
    if case.skipped:
        yield f"<skipped message={_escape_attribute(case.skipped)}/>"
    if case.faults:
        yield f"<error message={_escape_attribute('a bug in kafkashark')}>"
        for fault in case.faults:
            yield _escape_text(f"{fault}, {count_text(fault.count)} ({fault.where})")
        yield "</error>"
    if case.failing:
        rank = case.failing[0][0].first.rank
        asks = _escape_attribute(case.rule.asks)
        yield f"<failure type={_escape_attribute(rank)} message={asks}>"
        for kind, cause in case.failing:
            yield from _kind_lines(kind, cause)
        yield "</failure>"
    if case.not_failing:
        yield "<system-out>"
        for kind, cause in case.not_failing:
            yield from _kind_lines(kind, cause)
        yield "</system-out>"
    yield "</testcase>"


def _kind_lines(kind: Kind, cause: str) -> Iterator[str]:
    first = kind.first
    same = f" (the same cause as {cause})" if cause else ""
    yield _escape_text(f"{first.severity}, {count_text(kind.count)}: {first.found}{same}")
    yield _escape_text(f"  {side_text(first)}: {location_text(first)}")


def _escape_text(text: str) -> str:
    return escape(escaped(text))


def _escape_attribute(text: str) -> str:
    return quoteattr(escaped(text))
