"""
A report as JUnit XML, for test runners.

Source: the schema that Jenkins' xUnit plugin checks (junit-10.xsd).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dissector.view.text.escape import escaped

Outcome: TypeAlias = Literal["failure", "error", "skipped"]

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't represent, not even escaped."""


@dataclass(slots=True)
class TestCase:
    """
    A test case.

    Attributes:
        name: Its name.
        outcome: Why it does not pass; None if it passes.
        message: The reason in one line.
        type: Kind of the failure; may be empty.
        details: Lines of the failure or error.
        output: Lines that the case printed.
        seconds: Duration; None if unknown.
    """

    name: str
    outcome: Outcome | None = None
    message: str = ""
    type: str = ""
    details: Sequence[str] = ()
    output: Sequence[str] = ()
    seconds: float | None = None


@dataclass(slots=True)
class TestSuite:
    """
    The test cases of a report.

    Attributes:
        name: Of the suite.
        class_name: Of each case: `kafkashark.replay`.
        cases: In order.
        seconds: Duration of all.
        headline: What the report says, in one line.
        properties: Names and values.
        complaints: Lines for the error output.
    """

    name: str
    class_name: str
    cases: Sequence[TestCase]
    seconds: float
    headline: str
    properties: Sequence[tuple[str, str]] = ()
    complaints: Sequence[str] = field(default=())


def junit_lines(suite: TestSuite) -> Iterator[str]:
    """Yield the lines of the file."""
    count = {
        kind: sum(case.outcome == kind for case in suite.cases)
        for kind in ("failure", "error", "skipped")
    }
    totals = (
        f'tests="{len(suite.cases)}" failures="{count["failure"]}" errors="{count["error"]}" '
        f'time="{suite.seconds:.3f}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites {totals}>"
    # The schema allows `skipped` only here.
    yield f'<testsuite name={_attribute(suite.name)} {totals} skipped="{count["skipped"]}">'
    if suite.properties:
        yield "<properties>"
        for name, value in suite.properties:
            yield f"<property name={_attribute(name)} value={_attribute(value)}/>"
        yield "</properties>"
    for case in suite.cases:
        yield from _case_lines(case, suite.class_name)
    yield f"<system-out>{_text(suite.headline)}</system-out>"
    if suite.complaints:
        complaints = "\n".join(map(_text, suite.complaints))
        yield f"<system-err>{complaints}</system-err>"
    yield "</testsuite>"
    yield "</testsuites>"


def _case_lines(case: TestCase, class_name: str) -> Iterator[str]:
    time = "" if case.seconds is None else f' time="{case.seconds:.6f}"'
    yield f'<testcase classname="{class_name}" name={_attribute(case.name)}{time}>'
    if case.outcome is not None:
        kind = f" type={_attribute(case.type)}" if case.type else ""
        begin = f"<{case.outcome}{kind} message={_attribute(case.message)}"
        if case.details:
            yield f"{begin}>"
            yield from map(_text, case.details)
            yield f"</{case.outcome}>"
        else:
            yield f"{begin}/>"
    if case.output:
        yield "<system-out>"
        yield from map(_text, case.output)
        yield "</system-out>"
    yield "</testcase>"


def _text(text: str) -> str:
    from xml.sax.saxutils import escape  # loads clients of HTTP, of which most runs have no use

    return escape(_FORBIDDEN.sub("\ufffd", escaped(text)))


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(_FORBIDDEN.sub("\ufffd", escaped(text)))
