"""Batched report: reports responses that equal the captured ones, many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from dissector.capture.columns import Int64s
from replay.fields.batch_rewriter import PRODUCER_ROLES
from replay.model.outcome import BatchedOutcome
from replay.templates.request_kernel import (
    LAG,
    LATENCY,
    PER_PARTITION,
    RECORD_COUNT,
    REPLACED_ROLES,
    STEP,
)
from replay.templates.template import RequestTemplate

ON_SLOW_PATH = -1
"""In place of the latency of a request that the slow path reports."""

FLUSH_COUNT = 1024


class BatchedReporter:
    """
    Collects matched requests, and reports them in batches.

    Args:
        report: Receives each batch.
        pass_number: Number of the pass.
    """

    def __init__(self, report: Callable[[BatchedOutcome], None], pass_number: int = 0) -> None:
        self._report = report
        self._pass_number = pass_number
        self._request_rows: list[Int64s] = []
        self._replaced: list[Int64s] = []
        self._count = 0
        self._changes: Counter[tuple[str, str]] = Counter()

    def add(self, request_rows: Int64s, count: int, template: RequestTemplate) -> None:
        """
        Add requests that were sent by a template.

        Args:
            request_rows: A row for each request, as the request writer returns it.
            count: Number of steps that are not given up.
            template: The template of the requests.
        """
        if count < len(request_rows):
            request_rows = request_rows[request_rows[:, LATENCY] != ON_SLOW_PATH]
        for change, times in template.changes.items():
            self._changes[change] += count * times
        if template.replaced:
            self._replaced.append(request_rows[:, REPLACED_ROLES::PER_PARTITION].ravel())
        self._request_rows.append(request_rows[:, :RECORD_COUNT])
        self._count += count
        if self._count >= FLUSH_COUNT:
            self.flush()

    def flush(self) -> None:
        """Report all collected requests."""
        rows, replaced, changes = self._request_rows, self._replaced, self._changes
        self._request_rows, self._replaced, self._changes, self._count = [], [], Counter(), 0
        if replaced:
            roles = np.concatenate(replaced)
            for at, role in enumerate(PRODUCER_ROLES):
                changes[role, ""] += int(np.count_nonzero(roles & 1 << at))
        if rows:
            columns: Int64s = np.concatenate(rows)
            steps, lags_ns, latencies_ns = (columns[:, at] for at in (STEP, LAG, LATENCY))
            measured = steps, lags_ns, latencies_ns
            self._report(BatchedOutcome("Produce", *measured, +changes, self._pass_number))
