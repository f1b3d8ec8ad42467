"""Findings as reported by rules."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import REGISTRY, Rule, Side
from conform.registry.verdict import Finding, Verdict
from tests.conform.scene import Scene, findings

METADATA, AUTHENTICATE = 3, 36


def _judged(scene: Scene, call: object) -> Verdict:
    rule = Rule("F99", "t", Severity.ERROR, "s", "a.", "e", "exchange", (), call)
    return scene.judge([rule])


def _finding(scene: Scene, call: object) -> Finding:
    return next(findings(_judged(scene, call)))


def _metadata() -> Scene:
    connection = Scene().connect().request(METADATA, 9, 1, topics=[{"name": "orders"}])
    return connection.response(METADATA, 9, 1, cluster_id="abc").scene


def test_the_message_belongs_to_the_side() -> None:
    def call(observation: Observation, reporter: Reporter) -> None:
        reporter.report_violation(Side.BROKER, "odd", path="cluster_id")

    finding = _finding(_metadata(), call)
    assert (finding.message, finding.packet, finding.path) == ("response", 6, "cluster_id")
    assert finding.span is not None
    assert finding.severity is Severity.ERROR


def test_all_parts_of_a_finding_can_be_given() -> None:
    def call(observation: Observation, reporter: Reporter) -> None:
        reporter.report_violation(
            Side.BROKER,
            "odd",
            message=observation.request,
            span=(1, 2),
            severity=Severity.NOTE,
            retained=observation,
        )

    finding = _finding(_metadata(), call)
    assert (finding.message, finding.span, finding.severity) == ("request", (1, 2), "note")


def test_cases_are_counted() -> None:
    def call(observation: Observation, reporter: Reporter) -> None:
        reporter.count_judged()
        reporter.count_unjudged("why")
        reporter.count_unjudged("why")

    tally = _judged(_metadata(), call).tallies["F99"]
    assert (tally.judged, tally.broken, tally.unjudged) == (1, 0, {"why": 2})


def test_secrets_are_masked() -> None:
    def call(observation: Observation, reporter: Reporter) -> None:
        found = f"the token is '{observation.request_body.auth_bytes.decode()}'"
        reporter.report_violation(Side.CLIENT, found, path="auth_bytes")

    connection = Scene().connect().request(AUTHENTICATE, 2, 1, auth_bytes=b"made-up secret")
    verdict = _judged(connection.response(AUTHENTICATE, 2, 1).scene, call)
    (finding,) = findings(verdict)
    assert finding.found == "the token is ***"
    assert not any("made-up" in key for key in verdict.kinds)


def test_other_values_are_not_masked() -> None:
    def call(observation: Observation, reporter: Reporter) -> None:
        reporter.report_violation(Side.CLIENT, "the name is 'orders'", path="topics[0].name")

    assert _finding(_metadata(), call).found == "the name is 'orders'"
    assert "F99" not in REGISTRY
