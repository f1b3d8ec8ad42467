"""Requests that were answered as captured are reported many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from dissector.capture.columns import Int64s
from replay.fields.batch_rewriter import PRODUCER_ROLES
from replay.model.outcome import BatchedOutcome
from replay.templates.request_kernel import CHANGED, COUNT, LAG, LATENCY, PER_HOLE, STEP
from replay.templates.template import Stencil

GIVEN_UP = -1
"""How long the answer took to a request of which somebody else reports."""

_AT_ONCE = 1024


class Unreported:
    """
    What was not reported yet.

    Args:
        report: Takes it.
    """

    def __init__(self, report: Callable[[BatchedOutcome], None]) -> None:
        self._report = report
        self._told: list[Int64s] = []
        self._replaced: list[Int64s] = []
        self._count = 0
        self._changes: Counter[tuple[str, str]] = Counter()

    def add(self, told: Int64s, alike: int, stencil: Stencil) -> None:
        """
        Add requests that were sent by a stencil.

        Args:
            told: What is known of each, as `stamp` tells it.
            alike: How many of them are not given up.
            stencil: By which they were sent.
        """
        if alike < len(told):
            told = told[told[:, LATENCY] != GIVEN_UP]
        for change, times in stencil.changes.items():
            self._changes[change] += alike * times
        if stencil.replaced:
            self._replaced.append(told[:, CHANGED::PER_HOLE].ravel())
        self._told.append(told[:, :COUNT])
        self._count += alike
        if self._count >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Report all."""
        told, replaced, changes = self._told, self._replaced, self._changes
        self._told, self._replaced, self._changes, self._count = [], [], Counter(), 0
        if replaced:
            roles = np.concatenate(replaced)
            for at, role in enumerate(PRODUCER_ROLES):
                changes[role, ""] += int(np.count_nonzero(roles & 1 << at))
        if told:
            columns: Int64s = np.concatenate(told)
            steps, lags_ns, latencies_ns = (columns[:, at] for at in (STEP, LAG, LATENCY))
            self._report(BatchedOutcome("Produce", steps, lags_ns, latencies_ns, +changes))
