"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from conform.registry.rank import Severity
from conform.registry.verdict import Verdict
from conform.report.report_formats import verdict_check
from tests.conform.verdicts import verdict
from tests.junit import assert_valid


def _suite(judged: Verdict) -> ElementTree.Element:
    xml = "\n".join(verdict_check(judged, "a.pcap").lines("junit"))
    assert_valid(xml)
    suite = ElementTree.fromstring(xml.encode()).find("testsuite")
    assert suite is not None
    return suite


def test_junit() -> None:
    timed = verdict()
    timed.tallies["F03"].seconds = 0.25
    suite = _suite(timed)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "2")
    order, first, name = suite.iter("testcase")
    assert order.get("name") == "F03 Responses out of order"
    failure = order.find("failure")
    assert failure is not None
    assert "2 times: request 3 came after 4" in (failure.text or "")
    skipped = first.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "the capture begins in the middle of the connection"
    assert name.find("failure") is None
    warned = name.find("skipped")
    assert warned is not None
    assert warned.get("message") == "warning, once: the name is '<b>\\x1b&'"
    assert failure.get("type") == "breaks clients"
    assert [case.get("time") for case in (order, first, name)] == ["0.250000", *["0.000000"] * 2]
    assert suite.get("time") == "0.250"
    assert "<b>\\x1b&" in (name.findtext("system-out") or "")


def test_baseline_findings_do_not_fail() -> None:
    known = verdict()
    next(iter(known)).known = True
    suite = _suite(known)
    assert suite.get("failures") == "0"


def test_fail_on_selects_failures() -> None:
    strict = verdict()
    strict.fail_on = Severity.WARNING
    suite = _suite(strict)
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "1")


def test_a_rule_that_failed_is_an_error() -> None:
    faulty = verdict()
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as error:
        faulty.fault("F15", error, "connection 4")
    suite = _suite(faulty)
    assert (suite.get("errors"), suite.get("skipped")) == ("1", "1")
    error = next(suite.iter("error"))
    assert "F15 failed: ZeroDivisionError" in (error.text or "")
