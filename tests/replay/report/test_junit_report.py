"""Reports as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from replay.compare.log_balance import UnbalancedLog
from replay.options.pass_criteria import Criteria
from replay.report.report import Report, junit_lines
from tests.junit import assert_valid
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import REMAINS, every_kind, full, made, outcomes, produced


def _suite(report: Report) -> ElementTree.Element:
    suite = ElementTree.fromstring("\n".join(junit_lines(report)).encode()).find("testsuite")
    assert suite is not None
    return suite


def _names(suite: ElementTree.Element, what: str) -> list[str | None]:
    """The names of the cases with an element of this kind."""
    return [case.get("name") for case in suite.iter("testcase") if case.find(what) is not None]


def test_each_api_is_a_case() -> None:
    suite = _suite(made())
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "2"}
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failure = cases["Produce"].find("failure")
    assert failure is not None
    assert failure.get("message") == "1 differs, 1 error_changed, 1 missing"
    assert "MESSAGE_TOO_LARGE" in (failure.text or "")
    skipped = {name: case.find("skipped") for name, case in cases.items()}
    messages = {name: each.get("message") for name, each in skipped.items() if each is not None}
    assert messages == {
        "CreateTopics, left out": "1 not sent: can't be",
        "PushTelemetry, left out": "2 not sent: is telemetry",
    }


def test_unsent_and_unjudged_requests_are_skipped_cases() -> None:
    suite = _suite(made(*every_kind(), captured=20))
    names = _names(suite, "skipped")
    assert names[-2:] == ["Produce, not judged", "requests never reached"]
    assert suite.get("skipped") == str(len(names))
    assert suite.get("tests") == str(len(list(suite.iter("testcase"))))


def test_latencies_fail_cases_but_accepted_differences_do_not() -> None:
    suite = _suite(full())
    failing = _names(suite, "failure")
    limit = "latency:max>0.5ms"
    assert failing == ["Produce", f"CreateTopics {limit}", f"Produce {limit}"]
    assert "configs" not in ElementTree.tostring(suite, "unicode")
    tolerant = _suite(made(*outcomes()[:3], criteria=Criteria.of(["nothing"])))
    assert tolerant.get("failures") == "0"
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert "cluster c-1" in (properties["target"] or "")


def test_an_unbalanced_log_is_skipped_or_fails() -> None:
    assert "balance of records" in _names(_suite(full()), "skipped")
    report = made(outcomes()[0], criteria=Criteria.of(["unbalanced"]))
    report.unbalanced_logs = [UnbalancedLog("orders", 0, "ListOffsets: why")]
    suite = _suite(report)
    assert _names(suite, "failure") == ["balance of records"]
    assert suite.get("failures") == "1"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "1 not balanced (orders-0): ListOffsets: why"


def test_leftovers_on_the_target_are_reported() -> None:
    assert _suite(made()).findtext("system-err") == REMAINS
    report = made()
    report.left_behind.clear()
    assert _suite(report).find("system-err") is None


def test_a_replay_without_differences_has_no_failures() -> None:
    suite = _suite(made(outcomes()[0]))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert suite.find("testcase/failure") is None


def test_a_replay_that_ended_early_is_an_error_case() -> None:
    suite = _suite(made(outcomes()[0], ended='a < "b" & \x00'))
    assert suite.get("errors") == "1"
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("message") == 'a < "b" & \\x00'


def test_any_text_is_valid_xml() -> None:
    evil = outcome("Produce", 7, produced(topic="\x00]]>&<\ufffe"), produced(topic="b"))
    assert _suite(made(evil)).get("failures") == "1"


def test_the_file_has_the_junit_structure() -> None:
    for report in (made(), made(*every_kind(), captured=20), full()):
        assert_valid("\n".join(junit_lines(report)))
