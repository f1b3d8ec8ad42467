"""The verdict in one line, and the metadata of the replay."""

from __future__ import annotations

from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.report.report import text_lines
from replay.report.report_words import about_rows, verdict_line
from tests.replay.support.reports import ACCEPTED, every_kind, full, made, outcomes


def test_verdicts() -> None:
    assert verdict_line(made(outcomes()[0])) == "target:9092: answers as captured"
    assert verdict_line(full()).startswith(
        "target:9092: 3 of 9 responses differ from the capture; "
        "1 more as the capture lacks packets; 1 log could not be balanced; "
        "2 latencies are above the limit"
    )
    tolerant = made(outcomes()[1], criteria=Criteria.of(["missing"]))
    assert verdict_line(tolerant).endswith("capture, none in a way that --fail-on names")
    accepted = made(every_kind()[9], criteria=Criteria(accepted=DifferenceBaseline([ACCEPTED])))
    assert accepted.passed
    assert "but for accepted differences in 1 response" in verdict_line(accepted)
    assert verdict_line(made(outcomes()[1])) == (
        "target:9092: 1 of 1 responses differs from the capture"
    )
    assert verdict_line(made(ended="interrupted")) == "target:9092: ended early: interrupted"


def test_the_headline_counts_unsent_requests() -> None:
    report = made(outcomes()[0], outcomes()[4], outcomes()[5], outcomes()[6], captured=10)
    assert verdict_line(report) == (
        "target:9092: answers as captured; 9 of 10 requests were not sent: never reached (6); "
        "is telemetry (2); other reasons (1)"
    )
    (line,) = (line for line in text_lines(report) if line.startswith("requests  "))
    assert line == "requests  10 captured, 1 sent, 3 left out, 6 never reached"


def test_metadata_of_the_replay_precedes_the_verdict() -> None:
    facts = {row["what"]: row["value"] for row in about_rows(full())}
    assert facts["target"] == (
        "target:9092: Kafka 4.1 (metadata.version 27), cluster c-1, 3 brokers"
    )
    assert (
        "--fail-on 'differs,error,missing,latency:max>0.5ms' --accept 2 --upgrade"
        in (facts["options"])
    )
    assert facts["by"].startswith("kafkashark ")
