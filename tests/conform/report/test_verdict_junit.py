"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from conform.registry.rank import Severity
from conform.report.verdict_junit import junit_lines
from tests.conform.verdicts import verdict


def test_junit() -> None:
    timed = verdict()
    timed.tallies["F03"].seconds = 0.25
    root = ElementTree.fromstring("\n".join(junit_lines(timed, "a.pcap")).encode())
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "2")
    order, first, name = root.iter("testcase")
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
    assert root.get("time") == "0.250"
    assert "<b>\\x1b&" in (name.findtext("system-out") or "")


def test_what_is_known_does_not_fail() -> None:
    known = verdict()
    next(iter(known)).known = True
    root = ElementTree.fromstring("\n".join(junit_lines(known, "a.pcap")).encode())
    assert root.get("failures") == "0"


def test_fail_on_says_what_fails() -> None:
    strict = verdict()
    strict.fail_on = Severity.WARNING
    root = ElementTree.fromstring("\n".join(junit_lines(strict, "a.pcap")).encode())
    assert (root.get("failures"), root.get("skipped")) == ("2", "1")


def test_a_rule_that_failed_is_an_error() -> None:
    faulty = verdict()
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as error:
        faulty.fault("F15", error, "connection 4")
    root = ElementTree.fromstring("\n".join(junit_lines(faulty, "a.pcap")).encode())
    assert (root.get("errors"), root.get("skipped")) == ("1", "1")
    error = next(root.iter("error"))
    assert "F15 failed: ZeroDivisionError" in (error.text or "")
