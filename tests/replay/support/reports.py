"""Reports of artificial outcomes."""

from __future__ import annotations

from typing import Any

from cluster.conversion.change import Change
from replay.compare.ignore_rules import Noise
from replay.compare.log_balance import UnbalancedLog
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference, Outcome, Verdict
from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.options.target_settings import TargetSettings
from replay.plan.completeness import Completeness
from replay.plan.plan import Plan
from replay.report.run_report import RunReport
from tests.replay.support.outcomes import outcome

REMAINS = "the transaction of 't' may still be open: a < b"
NOT_THERE = "127.0.0.1:9092: closed the connection"


def produced(error_code: int = 0, base_offset: int = 0, topic: str = "orders") -> dict[str, Any]:
    partition = {"index": 0, "error_code": error_code, "base_offset": base_offset}
    return {"responses": [{"name": topic, "partition_responses": [partition]}]}


def outcomes() -> list[Outcome]:
    """Same, differs, another error, missing, refused, and two omitted by the plan."""
    changes = [Change("topic_data[0].name", "topic", "orders", "x-orders")]
    return [
        outcome("Produce", 7, produced(), produced(), changes=changes, lag_ns=3_000_000),
        outcome("Produce", 7, produced(), produced(base_offset=5), number=1),
        outcome("Produce", 7, produced(), produced(error_code=10), number=2, live_version=6),
        outcome("Produce", 7, produced(), None, number=3, failure=NOT_THERE, latency_ns=None),
        outcome(
            "CreateTopics", 2, {}, None, number=4, parts=[], is_refused=True, failure="can't be"
        ),
        *(_left_out(number, "is telemetry") for number in (5, 6)),
    ]


def every_kind() -> list[Outcome]:
    """`outcomes`, and: equivalent, not judged, accepted by a file and by an upgrade."""
    stopped = {"failure": "ended", "is_refused": True, "latency_ns": None}
    return [
        *outcomes(),
        outcome("Produce", 7, produced(), produced(), number=7, live_version=6),
        outcome("Produce", 7, produced(), None, number=8, **stopped),
        outcome("Produce", 7, produced(), produced(error_code=3), number=9),
        outcome("CreateTopics", 5, created("1"), created("2"), number=10),
    ]


def created(value: str, source: int = 5) -> dict[str, Any]:
    """A response to CreateTopics v5 with one setting; source 5 is Kafka's default."""
    setting = {"name": "min.insync.replicas", "value": value, "config_source": source}
    return {"topics": [{"name": "orders", "configs": [setting]}]}


ACCEPTED = (
    "Produce.responses[*].partition_responses[*].error_code: NONE -> UNKNOWN_TOPIC_OR_PARTITION"
)
STALE = "Fetch.responses[*]"


def full() -> RunReport:
    """A report with something in each of its sections."""
    criteria = Criteria.of(
        ["differs,error", "missing", "latency:max>0.5ms"],
        DifferenceBaseline([ACCEPTED, STALE], True),
    )
    report = made(*every_kind(), noise=Noise(["Fetch"]), criteria=criteria)
    lacking = Difference("responses[orders].partition_responses[0].base_offset", 3, 4)
    gapped = outcome("Produce", 7, produced(), produced(), number=11)
    report.add(gapped, Verdict.INCOMPLETE, [lacking])
    report.add_logs(0, [UnbalancedLog("orders", 0, "ListOffsets: TOPIC_AUTHORIZATION_FAILED")])
    report.about.learn_target("c-1", {"metadata.version": 27}, 3, False)
    return report


def _left_out(number: int, why: str) -> Outcome:
    found = outcome("PushTelemetry", 0, {}, None, number=number, parts=[], failure=why)
    found.step.left_out = why
    return found


def made(
    *of: Outcome,
    noise: Noise | None = None,
    ended: str = "",
    captured: int = 0,
    **setting: Any,
) -> RunReport:
    """A report of outcomes, by default one of each kind, with `captured` steps in the plan."""
    noise = noise or Noise()
    plan = Plan()
    plan.connections[3] = Completeness(3, "c:1", "b:1", requests=4, unanswered=1)
    report = RunReport(plan, TargetSettings("target:9092", noise=noise, **setting))
    for each in of or outcomes():
        report.add(each, *compare_outcome(each, IdMap(), noise))
    report.steps, report.captured = captured, captured * report.passes
    report.elapsed_ns = 2_000_000_000
    report.ended = ended
    report.left_behind = [REMAINS]
    return report
