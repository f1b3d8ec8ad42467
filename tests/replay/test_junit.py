"""Reports as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from replay.junit import junit_lines
from replay.report import Report
from tests.replay.outcomes import outcome
from tests.replay.reports import REMAINS, made, outcomes, produced


def _suite(report: Report) -> ElementTree.Element:
    suite = ElementTree.fromstring("\n".join(junit_lines(report)).encode()).find("testsuite")
    assert suite is not None
    return suite


def test_an_api_is_a_case() -> None:
    suite = _suite(made())
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "1", "errors": "0", "skipped": "1"}
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failure = cases["Produce"].find("failure")
    assert failure is not None
    assert failure.get("message") == "1 differs, 1 error_changed, 1 missing"
    assert "MESSAGE_TOO_LARGE" in (failure.text or "")
    assert cases["CreateTopics"].find("skipped") is not None


def test_what_was_left_behind_is_told() -> None:
    assert _suite(made()).findtext("system-err") == REMAINS
    report = made()
    report.remains.clear()
    assert _suite(report).find("system-err") is None


def test_a_replay_as_captured_has_no_failures() -> None:
    suite = _suite(made(outcomes()[0]))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert suite.find("testcase/failure") is None


def test_one_that_ended_early_is_an_error() -> None:
    suite = _suite(made(outcomes()[0], ended='a < "b" & \x00'))
    assert suite.get("errors") == "1"
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("message") == 'a < "b" & \\x00'


def test_any_text_can_be_held() -> None:
    evil = outcome("Produce", 7, produced(topic="\x00]]>&<\ufffe"), produced(topic="b"))
    assert _suite(made(evil)).get("failures") == "1"
