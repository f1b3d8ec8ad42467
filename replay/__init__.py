"""
Plays captured Kafka traffic at another broker and compares the responses.

    from kafkashark import Plan, replay

    with Plan.of("a.pcap") as plan:
        report = replay(plan, "mock")
    assert report.passed, report
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.client.auth import Security
    from replay.compare.ignore_rules import Noise
    from replay.options.pacing import Pace
    from replay.plan.plan import Plan
    from replay.plan.schema_mapping import SchemaMapping
    from replay.public import replay, replay_async
    from replay.report.merged_report import merge_reports
    from replay.report.report import Report

__all__ = [
    "Noise",
    "Pace",
    "Plan",
    "Report",
    "SchemaMapping",
    "Security",
    "merge_reports",
    "replay",
    "replay_async",
]

_PLACES = {
    "Noise": "replay.compare.ignore_rules",
    "Pace": "replay.options.pacing",
    "Plan": "replay.plan.plan",
    "Report": "replay.report.report",
    "SchemaMapping": "replay.plan.schema_mapping",
    "Security": "cluster.client.auth",
    "merge_reports": "replay.report.merged_report",
    "replay": "replay.public",
    "replay_async": "replay.public",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that using one part does not load asyncio."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'replay' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
