"""A report of advice for test runners: an advice is a test case."""

from __future__ import annotations

from advise.registry.advice import RANKS, Advice
from advise.registry.advice_report import AdviceReport
from advise.report.advice_text import advice_summary, packets_text, setting_text
from dissector.view.document.junit_form import TestCase, TestSuite


def advice_suite(report: AdviceReport, subject: str) -> TestSuite:
    """Return the test cases of a report; milder findings and unjudged advices are skipped."""
    return TestSuite(
        f"kafkashark advise {subject}",
        "kafkashark.advise",
        [_case(report, advice) for advice in report.advices],
        0.0,
        advice_summary(report, subject),
    )


def _case(report: AdviceReport, advice: Advice) -> TestCase:
    found = [each for each in report if each.advice is advice]
    case = TestCase(f"{advice.id} {advice.title}", type=str(advice.rank))
    lines = [
        line
        for each in found
        for line in (
            f"{each.subject}: {each.found}",
            f"  {each.cost}",
            f"  {setting_text(each)}",
            f"  {packets_text(each)}",
        )
    ]
    fails = report.fail_on is not None and RANKS.index(advice.rank) <= RANKS.index(report.fail_on)
    if found and fails:
        case.outcome, case.message, case.details = "failure", advice.what, lines
    elif found:
        case.outcome, case.output = "skipped", lines
        case.message = f"{advice.rank}: {found[0].found}"
    elif not report.judged[advice.id]:
        case.outcome = "skipped"
        reasons = report.unjudged.get(advice.id, {})
        case.message = "; ".join(reasons) or "there was no case to judge"
    return case
