"""Comparison of artificial responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.compare.ignore_rules import Noise
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Verdict
from replay.order.read_write_sets import Resource
from tests.replay.support.outcomes import outcome


def found(
    name: str,
    version: int,
    captured: dict[str, Any],
    live: dict[str, Any],
    ids: IdMap | None = None,
    noise: Noise | None = None,
    overlaps: Mapping[Resource, bool] | None = None,
    **more: Any,
) -> tuple[Verdict, list[tuple[str, Any, Any]]]:
    """Return the verdict on two responses, and the differences as path and both values."""
    made = outcome(name, version, captured, live, **more)
    made.step.overlaps = overlaps or {}
    verdict, differences = compare_outcome(made, ids or IdMap(), noise)
    return verdict, [(each.path, each.captured, each.replayed) for each in differences]


def produced(error_code: int = 0, base_offset: int = 0, topic: str = "orders") -> dict[str, Any]:
    partition = {
        "index": 0,
        "error_code": error_code,
        "base_offset": base_offset,
        "log_start_offset": 0,
    }
    return {"responses": [{"name": topic, "partition_responses": [partition]}]}


def fetched(data: bytes | None, **more: Any) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "high_watermark": 1000,
        "last_stable_offset": 1000,
        "records": data,
        **more,
    }
    return {"responses": [{"topic": "orders", "partitions": [partition]}]}
