"""
The report as JUnit XML, for test runners: each API is a test case, which fails by `--fail-on`.

Unsent requests are skipped test cases, one for each API and reason; a latency above its limit is a
failed case of its own.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from dissector.view.text.escape import escaped
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.report.headline import about_rows, verdict_line
from replay.report.results import Results
from replay.report.text_report import MAX_SHOWN, difference_heading, not_balanced, value_text

_BALANCE, _SPEED = "balance of records", "highest speed"

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't represent, not even escaped."""


def junit_lines(report: Results) -> Iterator[str]:
    """Yield the lines of the file."""
    listed = _listed_differences(report)
    rows = [row for row in report.api_rows() if _is_sent(row)]
    failing = [row for row in rows if _failing(report, row)]
    skipped, limits = list(_skipped(report)), report.limit_rows()
    error = report.ended or ", ".join(f"no report of part {each}" for each in report.missing_parts)
    early = bool(error)
    unbalanced = [_unbalanced(row) for row in not_balanced(report)]
    failed = [(_BALANCE, why) for why in unbalanced]
    if not report.criteria.wants_balance:
        skipped, failed = skipped + failed, []
    if report.trials and report.found_speed is None:
        failed.append((_SPEED, verdict_line(report)))
    seconds = f"{report.elapsed_ns / 1e9:.3f}"
    totals = (
        f'tests="{len(rows) + len(skipped) + len(limits) + len(failed) + early}" '
        f'failures="{len(failing) + len(limits) + len(failed)}" errors="{int(early)}" '
        f'time="{seconds}"'
    )
    name = _attribute(f"kafkashark replay to {report.target}")
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    # The schema allows `skipped` only here.
    yield f'<testsuite name={name} {totals} skipped="{len(skipped)}">'
    yield "<properties>"
    for row in about_rows(report):
        yield f"<property name={_attribute(row['what'])} value={_attribute(row['value'])}/>"
    yield "</properties>"
    for row in rows:
        yield from _case(report, row, listed[row["api"]])
    for row in limits:
        yield from _limit(row)
    for name, why in failed:
        yield f'<testcase classname="kafkashark.replay" name={_attribute(name)}>'
        yield f"<failure message={_attribute(why)}/>"
        yield "</testcase>"
    for name, why in skipped:
        yield f'<testcase classname="kafkashark.replay" name={_attribute(name)}>'
        yield f"<skipped message={_attribute(why)}/>"
        yield "</testcase>"
    if early:
        yield '<testcase classname="kafkashark.replay" name="the whole replay">'
        yield f"<error message={_attribute(error)}/>"
        yield "</testcase>"
    yield f"<system-out>{_text(verdict_line(report))}</system-out>"
    if report.left_behind:
        left = "\n".join(report.left_behind)
        yield f"<system-err>{_text(left)}</system-err>"
    yield "</testsuite>"
    yield "</testsuites>"


def _case(report: Results, row: Row, differences: list[Row]) -> Iterator[str]:
    yield f'<testcase classname="kafkashark.replay" name={_attribute(row["api"])}>'
    if _failing(report, row):
        shown = ", ".join(
            f"{row[v.value]} {v.value}" for v in sorted(FAILING_VERDICTS) if row[v.value]
        )
        yield f"<failure message={_attribute(shown)}>"
        for each in differences:
            yield _text(f"{difference_heading(each)}\n  {each['path'] or 'response'}")
            yield _text(f"    captured  {value_text(each['captured'])}")
            yield _text(f"    replayed  {value_text(each['replayed'])}")
        yield "</failure>"
    yield "</testcase>"


def _limit(row: Row) -> Iterator[str]:
    name, captured = f"{row['api']} {row['limit']}", row["captured_ms"]
    before = "nothing" if captured is None else f"{captured:.3f} ms"
    yield f'<testcase classname="kafkashark.replay" name={_attribute(name)}>'
    shown = f"{row['replayed_ms']:.3f} ms replayed, {before} captured"
    yield f"<failure message={_attribute(shown)}/>"
    yield "</testcase>"


def _skipped(report: Results) -> Iterator[tuple[str, str]]:
    """Yield name and message of the skipped cases: one for each API and reason."""
    for row in report.left_out_rows():
        for api, count in row["apis"].items():
            yield f"{api}, left out", f"{count:,} not sent: {row['reason']}"
    for row in report.not_judged_rows():
        for api, count in row["apis"].items():
            yield f"{api}, not judged", f"{count:,} sent: {row['reason']}"
    if report.never_reached:
        yield "requests never reached", f"{report.never_reached:,} not sent"


def _unbalanced(row: Row) -> str:
    return f"{row['count']:,} not balanced ({row['logs']}): {row['reason']}"


def _listed_differences(report: Results) -> defaultdict[str, list[Row]]:
    """Return the differences to list for each failing API."""
    listed: defaultdict[str, list[Row]] = defaultdict(list)
    failing = {row["api"] for row in report.api_rows() if _failing(report, row)}
    for each in report.differences() if failing else ():
        if each["api"] in failing and not each["accepted"] and len(listed[each["api"]]) < MAX_SHOWN:
            listed[each["api"]].append(each)
    return listed


def _failing(report: Results, row: Row) -> int:
    return sum(row[verdict.value] for verdict in report.criteria.verdicts)


def _is_sent(row: Row) -> bool:
    unsent = (Verdict.LEFT_OUT, Verdict.NOT_JUDGED)
    return any(row[verdict.value] for verdict in Verdict if verdict not in unsent)


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", escaped(text)))
