"""Reports of outcomes that are made by hand."""

from __future__ import annotations

from typing import Any

from replay.compare import compare
from replay.completeness import Completeness
from replay.noise import Noise
from replay.outcome import Change, Outcome
from replay.plan import Plan
from replay.report import Report
from replay.world import World
from tests.replay.outcomes import outcome

REMAINS = "the transaction of 't' may still be open: a < b"
NOT_THERE = "127.0.0.1:9092: closed the connection"


def produced(error_code: int = 0, base_offset: int = 0, topic: str = "orders") -> dict[str, Any]:
    partition = {"index": 0, "error_code": error_code, "base_offset": base_offset}
    return {"responses": [{"name": topic, "partition_responses": [partition]}]}


def outcomes() -> list[Outcome]:
    """One that is the same, one that differs, one with another error, one missing, one refused."""
    changes = [Change("topic_data[0].name", "topic", "orders", "x-orders")]
    return [
        outcome("Produce", 7, produced(), produced(), changes=changes, lag_ns=3_000_000),
        outcome("Produce", 7, produced(), produced(base_offset=5), number=1),
        outcome("Produce", 7, produced(), produced(error_code=10), number=2, live_version=6),
        outcome("Produce", 7, produced(), None, number=3, failure=NOT_THERE, latency_ns=None),
        outcome(
            "CreateTopics", 2, {}, None, number=4, parts=[], is_refused=True, failure="can't be"
        ),
    ]


def made(*of: Outcome, noise: Noise | None = None, ended: str = "") -> Report:
    """A report of these outcomes, by default one of each kind."""
    plan = Plan()
    plan.left_out["is telemetry"] = 2
    plan.connections[3] = Completeness(3, "c:1", "b:1", requests=4, unanswered=1)
    report = Report(plan, "target:9092", noise)
    for each in of or outcomes():
        report.add(each, *compare(each, World(), noise))
    report.elapsed_ns = 2_000_000_000
    report.ended = ended
    report.remains = [REMAINS]
    return report
