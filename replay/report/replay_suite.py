"""
A replay for test runners: each API is a test case, which fails by `--fail-on`.

Unsent requests are skipped test cases, one for each API and reason; a latency above its limit is a
failed case of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dissector.view.document.junit_form import Outcome, TestCase, TestSuite
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.report.report_words import (
    about_rows,
    difference_heading,
    unbalanced_rows,
    value_text,
    verdict_line,
)
from replay.report.results import Results

MAX_LISTED = 20
"""Number of differences that are listed for an API."""


def replay_suite(report: Results) -> TestSuite:
    """Return the test cases of a replay."""
    listed = _listed_differences(report)
    cases = [_case(report, row, listed[row["api"]]) for row in report.api_rows() if _is_sent(row)]
    cases += map(_limit, report.limit_rows())
    unbalanced: Outcome = "failure" if report.criteria.wants_balance else "skipped"
    for row in unbalanced_rows(report.unbalanced_rows()):
        why = f"{row['count']:,} not balanced ({row['logs']}): {row['reason']}"
        cases.append(TestCase("balance of records", unbalanced, why))
    if report.trials and report.found_speed is None:
        cases.append(TestCase("highest speed", "failure", verdict_line(report)))
    unsupported: Outcome = "failure" if report.criteria.wants_support else "skipped"
    for row in report.unsupported.rows():
        outcome = "skipped" if row["accepted"] else unsupported
        what = f"{row['count']:,}: {row['reason']}; needed by {', '.join(row['clients'])}"
        cases.append(TestCase(f"{row['api']}, unsupported", outcome, what))
    cases += _skipped(report)
    error = report.ended or ", ".join(f"no report of part {each}" for each in report.missing_parts)
    if error:
        cases.append(TestCase("the whole replay", "error", error))
    return TestSuite(
        f"kafkashark replay to {report.target}",
        "kafkashark.replay",
        cases,
        report.elapsed_ns / 1e9,
        verdict_line(report),
        [(row["what"], row["value"]) for row in about_rows(report)],
        list(report.left_behind),
    )


def _case(report: Results, row: Row, differences: Sequence[Row]) -> TestCase:
    case = TestCase(row["api"])
    if _failing(report, row):
        counts = ((verdict.value, row[verdict.value]) for verdict in sorted(FAILING_VERDICTS))
        case.outcome = "failure"
        case.message = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
        case.details = [line for each in differences for line in _difference_lines(each)]
    return case


def _difference_lines(row: Row) -> Iterator[str]:
    yield difference_heading(row)
    yield f"  {row['path'] or 'response'}"
    yield f"    captured  {value_text(row['captured'])}"
    yield f"    replayed  {value_text(row['replayed'])}"


def _limit(row: Row) -> TestCase:
    captured = row["captured_ms"]
    before = "nothing" if captured is None else f"{captured:.3f} ms"
    shown = f"{row['replayed_ms']:.3f} ms replayed, {before} captured"
    return TestCase(f"{row['api']} {row['limit']}", "failure", shown)


def _skipped(report: Results) -> Iterator[TestCase]:
    """Yield the skipped cases: one for each API and reason."""
    for row in report.left_out_rows():
        for api, count in row["apis"].items():
            yield TestCase(f"{api}, left out", "skipped", f"{count:,} not sent: {row['reason']}")
    for row in report.not_judged_rows():
        for api, count in row["apis"].items():
            yield TestCase(f"{api}, not judged", "skipped", f"{count:,} sent: {row['reason']}")
    if report.never_reached:
        yield TestCase("requests never reached", "skipped", f"{report.never_reached:,} not sent")


def _listed_differences(report: Results) -> Mapping[str, list[Row]]:
    """Return the differences to list for each failing API."""
    listed: defaultdict[str, list[Row]] = defaultdict(list)
    failing = {row["api"] for row in report.api_rows() if _failing(report, row)}
    for each in report.differences() if failing else ():
        if (
            each["api"] in failing
            and not each["accepted"]
            and len(listed[each["api"]]) < MAX_LISTED
        ):
            listed[each["api"]].append(each)
    return listed


def _failing(report: Results, row: Row) -> int:
    return sum(row[verdict.value] for verdict in report.criteria.verdicts)


def _is_sent(row: Row) -> bool:
    unsent = (Verdict.LEFT_OUT, Verdict.NOT_JUDGED)
    return any(row[verdict.value] for verdict in Verdict if verdict not in unsent)
