"""Unchanged responses are reported in batches."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest

from replay.model.outcome import BatchedOutcome
from replay.templates import batched_report as unreported_module
from replay.templates.batched_report import ON_SLOW_PATH, BatchedReporter
from replay.templates.request_writer import RequestRows
from replay.templates.template import RequestTemplate


def template(replaced: frozenset[str] = frozenset()) -> RequestTemplate:
    parts: dict[str, Any] = dict.fromkeys(RequestTemplate._fields)
    return cast(
        RequestTemplate,
        RequestTemplate(**parts)._replace(
            changes=Counter({("topic", "prefix"): 2}), replaced=replaced
        ),
    )


def outcome_rows(first: int, changed: tuple[int, ...]) -> RequestRows:
    rows = RequestRows.empty(len(changed), 1)
    rows.requests["step"] = first + np.arange(len(changed))
    rows.requests["lag_ns"], rows.requests["latency_ns"] = 5, 7
    rows.batches["replaced_roles"] = changed
    return rows


def test_each_step_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreported_module, "FLUSH_COUNT", 4)
    reports: list[BatchedOutcome] = []
    waiting = BatchedReporter(reports.append)
    waiting.add(outcome_rows(0, (0, 0, 0)), 3, template())
    assert not reports
    waiting.add(outcome_rows(3, (0, 0)), 2, template())
    waiting.add(outcome_rows(5, (0,)), 1, template())
    waiting.flush()
    waiting.flush()
    assert [each.step_numbers.tolist() for each in reports] == [[0, 1, 2, 3, 4], [5]]
    assert [each.lags_ns.tolist() for each in reports] == [[5] * 5, [5]]
    assert [each.latencies_ns.tolist() for each in reports] == [[7] * 5, [7]]
    assert [each.changes for each in reports] == [{("topic", "prefix"): n} for n in (10, 2)]


def test_steps_on_the_slow_path_are_reported_elsewhere() -> None:
    reports: list[BatchedOutcome] = []
    waiting = BatchedReporter(reports.append)
    rows = outcome_rows(0, (1, 5, 4))
    rows.requests["latency_ns"][1] = ON_SLOW_PATH
    waiting.add(rows, 2, template(frozenset({"producer_id", "sequence"})))
    waiting.flush()
    (report,) = reports
    assert report.step_numbers.tolist() == [0, 2]
    assert report.changes == {
        ("topic", "prefix"): 4,
        ("producer_id", ""): 1,
        ("sequence", ""): 1,
    }
