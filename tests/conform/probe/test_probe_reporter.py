"""Findings as reported by probes."""

from __future__ import annotations

from conform.probe.probe_reporter import ProbeReporter, response_prefix
from conform.probe.raw_exchange import RawExchange, encode_request
from conform.registry.rank import Severity
from conform.registry.verdict import Verdict
from tests.conform.probe.scripts import LIVE
from tests.dissector.cli.cli_traffic import response_frame

RULE = LIVE["P12"]
HEARTBEAT = 12


def _reporter() -> tuple[ProbeReporter, Verdict]:
    verdict = Verdict([RULE])
    return ProbeReporter(RULE, verdict, "here:9092"), verdict


def _exchange(**values: int) -> RawExchange:
    exchange = encode_request("Heartbeat", 3, {}, 7)
    exchange.set_response(response_frame(HEARTBEAT, 3, 7, **values)[4:])
    return exchange


def test_an_expected_error_keeps_the_rule() -> None:
    reporter, verdict = _reporter()
    assert reporter.check_error(_exchange(error_code=25), "error_code", "NONE", "UNKNOWN_MEMBER_ID")
    assert (verdict.tallies["P12"].judged, verdict.tallies["P12"].broken) == (1, 0)


def test_an_unexpected_error_is_found_with_its_position() -> None:
    reporter, verdict = _reporter()
    assert not reporter.check_error(_exchange(), "error_code", "UNKNOWN_MEMBER_ID")
    (kind,) = verdict
    assert kind.first.found == "Heartbeat v3: answered NONE (0), not UNKNOWN_MEMBER_ID"
    assert (kind.first.path, kind.first.span) == ("error_code", (8, 10))
    assert (kind.first.broker, kind.first.severity) == ("here:9092", Severity.ERROR)


def test_a_finding_may_have_its_own_severity() -> None:
    reporter, verdict = _reporter()
    reporter.check_error(_exchange(), "error_code", "UNKNOWN_MEMBER_ID", severity=Severity.NOTE)
    assert verdict.count(Severity.ERROR) == 0
    assert verdict.count(Severity.NOTE) == 1


def test_a_missing_response_breaks_the_rule() -> None:
    reporter, verdict = _reporter()
    exchange = encode_request("Heartbeat", 3, {}, 7)
    exchange.failure = "closed the connection"
    assert not reporter.check_error(exchange, "error_code", "NONE")
    (kind,) = verdict
    assert kind.first.found == "Heartbeat v3: closed the connection"


def test_an_undecodable_response_is_shown() -> None:
    reporter, verdict = _reporter()
    exchange = encode_request("Heartbeat", 3, {}, 7)
    exchange.set_response(b"\0\0\0\7\0")
    assert not reporter.check_readable(exchange)
    (kind,) = verdict
    assert "'00 00 00 07 00' can't be read" in kind.first.found
    assert response_prefix(exchange) == "'00 00 00 07 00'"


def test_a_missing_field() -> None:
    reporter, verdict = _reporter()
    assert not reporter.check_error(_exchange(), "topics[0].error_code", "NONE")
    (kind,) = verdict
    assert "no topics[0].error_code" in kind.first.found


def test_unjudged_rules_are_counted() -> None:
    reporter, verdict = _reporter()
    reporter.count_unjudged("there is none")
    assert verdict.tallies["P12"].unjudged == {"there is none": 1}
