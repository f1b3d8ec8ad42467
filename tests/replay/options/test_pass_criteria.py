"""Criteria for a failed replay."""

from __future__ import annotations

import pytest

from dissector.errors import UsageError
from replay.compare.log_balance import UnbalancedLog
from replay.model.outcome import Outcome
from replay.options.pass_criteria import Criteria
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import made, outcomes

SAME, DIFFERS, ERROR, MISSING = outcomes()[:4]


@pytest.mark.parametrize(
    ("words", "fails"),
    [
        ([], [DIFFERS, ERROR, MISSING]),
        (["differs"], [DIFFERS]),
        (["error,missing"], [ERROR, MISSING]),
        (["error", "Differs"], [DIFFERS, ERROR]),
        (["nothing"], []),
        (["unbalanced"], []),
        (["latency:p99>2x"], []),
    ],
)
def test_failing_verdicts(words: list[str], fails: list[Outcome]) -> None:
    criteria = Criteria.of(words)
    failing = [
        each for each in (SAME, DIFFERS, ERROR, MISSING) if not made(each, criteria=criteria).passed
    ]
    assert failing == fails


def _took(captured_ms: int, replayed_ms: float) -> Outcome:
    found = outcome("Heartbeat", 3, {}, {}, latency_ns=int(replayed_ms * 1e6))
    found.step.captured.response_time_ns = captured_ms * 1_000_000
    return found


@pytest.mark.parametrize(
    ("limit", "captured_ms", "replayed_ms", "passes"),
    [
        ("latency:p99>2x", 10, 19, True),
        ("latency:p99>2x", 10, 22, False),
        ("latency:p99>2x", 1, 2.9, True),  # noise of the clock
        ("latency:max>20ms", 1, 19, True),
        ("latency:max>20ms", 100, 21, False),
        ("latency:Heartbeat:p50>1.5x", 10, 17, False),
        ("latency:Produce:p50>1.5x", 10, 17, True),
    ],
)
def test_latency_limits(limit: str, captured_ms: int, replayed_ms: float, passes: bool) -> None:
    report = made(_took(captured_ms, replayed_ms), criteria=Criteria.of(["differs", limit]))
    assert report.passed is passes
    assert [row["api"] for row in report.limit_rows()] == ["Heartbeat"] * (not passes)


@pytest.mark.parametrize(
    "word",
    ["all", "latency", "latency:p0>2x", "latency:p101>2x", "latency:p99>2", "latency:X:p9>2x"],
)
def test_unknown_criteria_are_errors(word: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        Criteria.of([word])


def test_unbalanced_logs_fail_on_request() -> None:
    for words, passed in (([], True), (["differs,unbalanced"], False)):
        report = made(SAME, criteria=Criteria.of(words))
        assert report.passed
        report.unbalanced_logs = [UnbalancedLog("orders", 0, "why")]
        assert report.passed is passed
    assert Criteria.of(["differs", "unbalanced"]).words == ["differs", "unbalanced"]
