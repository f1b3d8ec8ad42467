"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from conform.junit import junit_lines
from tests.conform.verdicts import verdict


def test_junit() -> None:
    root = ElementTree.fromstring("\n".join(junit_lines(verdict(), "a.pcap")).encode())
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    order, first, name = root.iter("testcase")
    assert order.get("name") == "F03 Responses come in the order of their requests"
    failure = order.find("failure")
    assert failure is not None
    assert "2 times: request 3 came after 4" in (failure.text or "")
    skipped = first.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "the capture begins in the middle of the connection"
    assert name.find("failure") is None
    assert "<b>\\x1b&" in (name.findtext("system-out") or "")


def test_what_is_known_does_not_fail() -> None:
    known = verdict()
    next(iter(known)).known = True
    root = ElementTree.fromstring("\n".join(junit_lines(known, "a.pcap")).encode())
    assert root.get("failures") == "0"
