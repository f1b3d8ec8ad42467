"""
A verdict for test runners: a rule is a test case.

Findings at least as severe as `--fail-on` fail it. A case with only milder findings, or without a
judgement, is skipped with the reason as message, so that readers of JUnit do not show a success.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from conform.registry.rule import Rule
from conform.registry.verdict import Kind, Verdict
from conform.report.verdict_text import count_text, location_text, side_text, summary_line
from dissector.view.document.junit_form import TestCase, TestSuite


class _Found(NamedTuple):
    """A finding, and the id of the rule that reports the same cause, if any."""

    kind: Kind
    cause: str


def verdict_suite(verdict: Verdict, subject: str) -> TestSuite:
    """Return the test cases of a verdict."""
    found = _found_by_rule(verdict)
    cases = [_case(verdict, rule, found[rule.id]) for rule in verdict.rules]
    return TestSuite(
        f"kafkashark conform {subject}",
        "kafkashark.conform",
        cases,
        sum(case.seconds or 0.0 for case in cases),
        summary_line(verdict, subject),
    )


def _found_by_rule(verdict: Verdict) -> Mapping[str, list[_Found]]:
    found: dict[str, list[_Found]] = defaultdict(list)
    for cause in verdict.causes():
        if not cause.kind.known:
            rule = cause.kind.first.rule.id
            found[rule].append(_Found(cause.kind, ""))
            for kind in cause.others:
                found[kind.first.rule.id].append(_Found(kind, rule))
    return found


def _case(verdict: Verdict, rule: Rule, found: Sequence[_Found]) -> TestCase:
    tally = verdict.tallies[rule.id]
    fails = [each for each in found if verdict.is_failing(each.kind.first.severity)]
    milder = [each for each in found if not verdict.is_failing(each.kind.first.severity)]
    faults = [fault for fault in verdict.faults.values() if fault.rule == rule.id]
    case = TestCase(f"{rule.id} {rule.title}", seconds=tally.seconds)
    if faults:
        case.outcome, case.message = "error", "a bug in kafkashark"
        case.details = [f"{each}, {count_text(each.count)} ({each.where})" for each in faults]
    elif fails:
        case.outcome, case.message, case.type = "failure", rule.asks, fails[0].kind.first.rank
        case.details = list(_lines(fails))
    elif milder:
        kind = milder[0].kind
        first = kind.first
        case.outcome = "skipped"
        case.message = f"{first.severity}, {count_text(kind.count)}: {first.found}"
    elif not (tally.judged or tally.broken):
        case.outcome = "skipped"
        case.message = "; ".join(tally.unjudged) or "there was no case to judge"
    case.output = list(_lines([*(fails if faults else []), *milder]))
    return case


def _lines(found: Sequence[_Found]) -> Iterator[str]:
    for kind, cause in found:
        first = kind.first
        same = f" (the same cause as {cause})" if cause else ""
        yield f"{first.severity}, {count_text(kind.count)}: {first.found}{same}"
        yield f"  {side_text(first)}: {location_text(first)}"
