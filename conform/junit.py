"""
A verdict as JUnit XML: a rule is a test case, which fails by errors and is skipped when not judged.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from conform.rule import Rule, Severity
from conform.text import place_text, summary_line, times_text, who_text
from conform.verdict import Kind, Verdict
from dissector.view.escape import escaped


def junit_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of the file."""
    found = defaultdict(list)
    for kind in verdict:
        if not kind.known:
            found[kind.first.rule.id].append(kind)
    cases = [(rule, found[rule.id]) for rule in verdict.rules]
    failing = sum(any(map(_fails, kinds)) for _, kinds in cases)
    skipped = sum(_is_skipped(verdict, rule) for rule in verdict.rules)
    totals = f'tests="{len(cases)}" failures="{failing}" errors="0" skipped="{skipped}" time="0"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    yield f"<testsuite name={_attribute(f'kafkashark conform {subject}')} {totals}>"
    for rule, kinds in cases:
        yield from _case(verdict, rule, kinds)
    yield f"<system-out>{_text(summary_line(verdict, subject))}</system-out>"
    yield "</testsuite>"
    yield "</testsuites>"


def _fails(kind: Kind) -> bool:
    return kind.first.severity is Severity.ERROR


def _is_skipped(verdict: Verdict, rule: Rule) -> bool:
    tally = verdict.tallies[rule.id]
    return not tally.judged and not tally.broken


def _case(verdict: Verdict, rule: Rule, kinds: list[Kind]) -> Iterator[str]:
    name = _attribute(f"{rule.id} {rule.title}")
    yield f'<testcase classname="kafkashark.conform" name={name}>'
    if _is_skipped(verdict, rule):
        reasons = "; ".join(verdict.tallies[rule.id].unjudged) or "nothing of the kind was there"
        yield f"<skipped message={_attribute(reasons)}/>"
    failing = [kind for kind in kinds if _fails(kind)]
    if failing:
        yield f"<failure message={_attribute(rule.asks)}>"
        for kind in failing:
            yield from _told(kind)
        yield "</failure>"
    others = [kind for kind in kinds if not _fails(kind)]
    if others:
        yield "<system-out>"
        for kind in others:
            yield from _told(kind)
        yield "</system-out>"
    yield "</testcase>"


def _told(kind: Kind) -> Iterator[str]:
    first = kind.first
    yield _text(f"{first.severity}, {times_text(kind.count)}: {first.found}")
    yield _text(f"  {who_text(first)}: {place_text(first)}")


def _text(text: str) -> str:
    return escape(escaped(text))


def _attribute(text: str) -> str:
    return quoteattr(escaped(text))
