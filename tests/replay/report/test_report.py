"""Counts and lists of a report."""

from __future__ import annotations

from cluster.conversion.change import Change
from replay.model.outcome import Difference, Verdict
from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.options.play_options import PlayOptions
from replay.report.counters import OTHER, ReasonCounter
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import NOT_THERE, every_kind, full, made, outcomes, produced

OFFSET = "Produce.responses[*].partition_responses[*].base_offset"


def test_verdicts_are_counted() -> None:
    report = made()
    assert report.verdicts == {
        Verdict.SAME: 1,
        Verdict.EQUIVALENT: 0,
        Verdict.ACCEPTED: 0,
        Verdict.DIFFERS: 1,
        Verdict.ERROR_CHANGED: 1,
        Verdict.MISSING: 1,
        Verdict.INCOMPLETE: 0,
        Verdict.EXTRA: 0,
        Verdict.NOT_JUDGED: 0,
        Verdict.LEFT_OUT: 3,
    }
    assert report.failing == 3
    assert not report.passed
    assert made(outcomes()[0]).passed


def test_a_replay_with_an_early_end_fails() -> None:
    assert not made(outcomes()[0], ended="interrupted").passed


def test_differences_are_listed_with_their_requests() -> None:
    report = made()
    offset, error, missing = report.differences()
    assert (offset["step"], offset["verdict"]) == (1, "differs")
    assert (offset["captured"], offset["replayed"]) == (0, 5)
    assert (error["captured"], error["replayed"]) == ("NONE", "MESSAGE_TOO_LARGE")
    assert (error["api_version"], error["version_sent"]) == (7, 6)
    assert missing["replayed"] == f"none: {NOT_THERE}"
    assert list(report.differences(1)) == [offset]
    report.add(*_differing(9))
    assert [row["step"] for row in report.differences()] == [1, 2, 3, 9]


def _differing(number: int):  # type: ignore[no-untyped-def]
    from replay.compare.step_verdict import compare_outcome
    from replay.mapping.id_map import IdMap

    differing = outcome("Produce", 7, produced(), produced(base_offset=5), number=number)
    return differing, *compare_outcome(differing, IdMap())


def test_differences_due_to_omitted_requests_are_marked() -> None:
    lacking = outcomes()
    for each in lacking:
        each.step.missing_prerequisites = frozenset({"IncrementalAlterConfigs", "AlterConfigs"})
    report = made(*lacking)
    assert (
        report.missing_prerequisites
        == report.failing
        == report.summary()["missing_prerequisites"]
        == 3
    )
    (named,) = {tuple(row["missing_prerequisites"]) for row in report.differences()}
    assert named == ("AlterConfigs", "IncrementalAlterConfigs")
    assert made().missing_prerequisites == 0


def test_differences_are_counted_by_field() -> None:
    report = made()
    for number in range(10, 14):
        report.add(*_differing(number))
    first = report.field_rows()[0]
    assert (first["field"], first["count"]) == (OFFSET, 5)
    assert [row["step"] for row in first["examples"]] == [1, 10]


def test_omitted_requests_have_reasons() -> None:
    assert made().left_out_rows() == [
        {"by": "plan", "reason": "is telemetry", "count": 2, "apis": {"PushTelemetry": 2}},
        {"by": "replay", "reason": "can't be", "count": 1, "apis": {"CreateTopics": 1}},
    ]


def test_requests_without_an_awaited_response_count_as_sent() -> None:
    stopped = outcome(
        "Produce", 7, produced(), None, failure="ended", is_refused=True, latency_ns=None
    )
    report = made(stopped)
    assert report.verdicts[Verdict.NOT_JUDGED] == report.replayed == report.sent == 1
    assert report.passed
    assert report.not_judged_rows() == [{"reason": "ended", "count": 1, "apis": {"Produce": 1}}]
    assert not report.left_out_rows()


def test_substitutions_and_changes_are_counted() -> None:
    report = made()
    (change,) = report.change_rows()
    assert change == {
        "role": "topic",
        "rule": "",
        "count": 1,
        "path": "Produce.topic_data[0].name",
        "captured": "orders",
        "sent": "x-orders",
    }
    (version,) = report.version_rows()
    assert (version["captured_version"], version["version_sent"]) == (7, 6)


def test_tokens_are_not_shown() -> None:
    token = Change("hmac", "token", b"secret", b"other")
    (change,) = made(outcome("Produce", 7, {}, {}, changes=[token])).change_rows()
    assert change["captured"] == change["sent"] == "***"


def test_captured_and_replayed_latencies() -> None:
    row = next(row for row in made().api_rows() if row["api"] == "Produce")
    assert row["captured_p50_ms"] == 2.0
    assert row["replayed_p50_ms"] == 1.0
    assert made().summary()["lag_max_ms"] == 3.0


def test_completeness_of_connections() -> None:
    (row,) = made().connection_rows()
    assert (row["connection"], row["score"], row["unanswered"]) == (3, 0.75, 1)


def test_kinds_of_failures_are_bounded() -> None:
    reasons = ReasonCounter()
    for number in range(3000):
        reasons.add(str(number), "Produce")
    rows = reasons.rows()
    assert len(rows) <= 1001
    assert (rows[0]["reason"], rows[0]["count"]) == (OTHER, 2000)


def test_captured_requests_are_sent_omitted_or_never_reached() -> None:
    row = made(*every_kind(), captured=20).summary()
    assert (row["captured"], row["sent"], row["left_out"], row["never_reached"]) == (20, 8, 3, 9)
    sent = ("same", "equivalent", "accepted", "differs", "error_changed", "missing", "extra")
    assert sum(row[name] for name in sent) + row["not_judged"] == row["sent"]
    report = made(*every_kind(), captured=20)
    assert sum(each["count"] for each in report.left_out_rows()) == row["left_out"]
    for name in (*sent, "not_judged", "left_out"):
        assert sum(each[name] for each in report.api_rows()) == row[name]


def test_passes_are_counted() -> None:
    options = PlayOptions(loop=3)
    assert made(outcomes()[0], captured=20, play_options=options).summary()["never_reached"] == 59


def test_reasons_of_equivalence_are_counted_and_listed() -> None:
    report = full()
    (reason,) = report.reason_rows()
    assert reason["reason"] == "answered in another version"
    assert reason["apis"] == {"Produce": 1}
    (row,) = report.equivalents()
    assert (row["step"], row["reasons"]) == (7, ["answered in another version"])


def test_the_end_of_a_pass_may_reveal_a_difference() -> None:
    same, differs = outcomes()[:2]
    report = made(same, differs)
    for each in (same, same, differs):
        report.revise(each.step, 0, Difference("lost", "a record", None))
    assert (report.verdicts[Verdict.SAME], report.verdicts[Verdict.DIFFERS]) == (0, 2)
    assert [(row["step"], row["path"]) for row in report.differences()][1:] == [
        (0, "lost"),
        (0, "lost"),
        (1, "lost"),
    ]
    (row,) = report.api_rows()
    assert (row["same"], row["differs"]) == (0, 2)
    accepting = made(same, criteria=Criteria(accepted=DifferenceBaseline(["Produce.lost"])))
    accepting.revise(same.step, 0, Difference("lost", "a record", None))
    assert accepting.verdicts[Verdict.ACCEPTED] == 1
    assert accepting.passed


def test_a_revised_verdict_removes_its_reasons() -> None:
    equivalents = [
        outcome("Produce", 7, produced(), produced(), number=number, live_version=6)
        for number in (4, 7)
    ]
    report = made(*equivalents)
    (reason,) = report.reason_rows()
    assert reason["count"] == 2
    for _ in range(2):
        report.revise(equivalents[0].step, 0, Difference("lost", "a record", None))
    (reason,) = report.reason_rows()
    assert (reason["count"], reason["apis"]) == (1, {"Produce": 1})
    assert [row["step"] for row in report.equivalents()] == [7]
    report.revise(equivalents[1].step, 0, Difference("lost", "a record", None))
    assert not report.reason_rows()
    assert report.verdicts[Verdict.DIFFERS] == 2
