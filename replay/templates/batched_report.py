"""Batched report: reports responses that equal the captured ones, many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from cluster.fields.batch_rewriter import PRODUCER_ROLES
from dissector.capture.columns import Int64s
from dissector.kernel.named_rows import RowArray
from replay.model.outcome import BatchedOutcome
from replay.templates.request_writer import RequestRows
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
        self._requests: list[RowArray] = []
        self._replaced: list[Int64s] = []
        self._count = 0
        self._changes: Counter[tuple[str, str]] = Counter()

    def add(self, rows: RequestRows, count: int, template: RequestTemplate) -> None:
        """
        Add requests that were sent by a template.

        Args:
            rows: The requests, as the request writer returns them.
            count: Number of steps that are not given up.
            template: The template of the requests.
        """
        requests, batches = rows.requests, rows.batches_by_request()
        if count < len(rows):
            is_matched = requests["latency_ns"] != ON_SLOW_PATH
            requests, batches = requests[is_matched], batches[is_matched]
        for change, times in template.changes.items():
            self._changes[change] += count * times
        if template.replaced:
            self._replaced.append(batches["replaced_roles"].ravel())
        self._requests.append(requests)
        self._count += count
        if self._count >= FLUSH_COUNT:
            self.flush()

    def flush(self) -> None:
        """Report all collected requests."""
        requests, replaced, changes = self._requests, self._replaced, self._changes
        self._requests, self._replaced, self._changes, self._count = [], [], Counter(), 0
        if replaced:
            roles = np.concatenate(replaced)
            for at, role in enumerate(PRODUCER_ROLES):
                changes[role, ""] += int(np.count_nonzero(roles & 1 << at))
        if requests:
            rows = np.concatenate(requests)
            measured = rows["step"].copy(), rows["lag_ns"].copy(), rows["latency_ns"].copy()
            self._report(BatchedOutcome("Produce", *measured, +changes, self._pass_number))
