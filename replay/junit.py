"""
The report as JUnit XML, for what runs tests: an API is a test case, and fails if an answer differs.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from xml.sax.saxutils import escape, quoteattr

from dissector.view.escape import escaped
from replay.compare import FAILING
from replay.report import Report
from replay.tallies import Row
from replay.text import SHOWN, difference_heading, value_text, verdict_line

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 can't hold even escaped."""


def junit_lines(report: Report) -> Iterator[str]:
    """Yield the lines of the file."""
    told = _told(report)
    rows = report.api_rows()
    failing = [row for row in rows if _failing(row)]
    early = bool(report.ended)
    seconds = f"{report.elapsed_ns / 1e9:.3f}"
    totals = (
        f'tests="{len(rows) + early}" failures="{len(failing)}" errors="{int(early)}" '
        f'skipped="{sum(_is_skipped(row) for row in rows)}" time="{seconds}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    yield f"<testsuite name={_attribute(f'kafkashark replay to {report.target}')} {totals}>"
    for row in rows:
        yield from _case(row, told[row["api"]])
    if early:
        yield '<testcase classname="kafkashark.replay" name="the whole replay">'
        yield f"<error message={_attribute(report.ended)}/>"
        yield "</testcase>"
    yield f"<system-out>{_text(verdict_line(report))}</system-out>"
    if report.remains:
        left = "\n".join(report.remains)
        yield f"<system-err>{_text(left)}</system-err>"
    yield "</testsuite>"
    yield "</testsuites>"


def _case(row: Row, differences: list[Row]) -> Iterator[str]:
    yield f'<testcase classname="kafkashark.replay" name={_attribute(row["api"])}>'
    if _failing(row):
        shown = ", ".join(f"{row[v.value]} {v.value}" for v in sorted(FAILING) if row[v.value])
        yield f"<failure message={_attribute(shown)}>"
        for each in differences:
            yield _text(f"{difference_heading(each)}\n  {each['path'] or 'answer'}")
            yield _text(f"    captured  {value_text(each['captured'])}")
            yield _text(f"    replayed  {value_text(each['replayed'])}")
        yield "</failure>"
    elif _is_skipped(row):
        yield '<skipped message="left out"/>'
    yield "</testcase>"


def _told(report: Report) -> defaultdict[str, list[Row]]:
    """Return the differences of each API that are told."""
    told: defaultdict[str, list[Row]] = defaultdict(list)
    for api in (row["api"] for row in report.api_rows() if _failing(row)):
        told[api] = list(islice((r for r in report.differences() if r["api"] == api), SHOWN))
    return told


def _failing(row: Row) -> int:
    return sum(row[verdict.value] for verdict in FAILING)


def _is_skipped(row: Row) -> bool:
    return row["left_out"] > 0 and not any(
        row[name] for name in ("same", "equivalent", "incomplete", "extra", *FAILING)
    )


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", escaped(text)))
