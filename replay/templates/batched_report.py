"""Batched report: reports responses that equal the captured ones, many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from cluster.conversion.change import Change
from cluster.fields.batch_rewriter import PRODUCER_ROLES
from dissector.capture.columns import Int64s
from dissector.kernel.named_rows import RowArray
from replay.model.outcome import BatchedOutcome
from replay.templates.request_writer import RequestRows
from replay.templates.template import RequestTemplate

ON_SLOW_PATH = -1
"""In place of the latency of a request that the slow path reports."""

FLUSH_COUNT = 1024


class _SingleSteps:
    """Steps that were matched by themselves: number, lag and latency; and changes."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.changes: Counter[tuple[str, str]] = Counter()


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
        self._known: dict[str, set[tuple[str, str]]] = {}
        self._single: dict[str, _SingleSteps] = {}

    def learn(self, api: str, changes: Iterable[Change]) -> None:
        """Note that the report has a step of an API, with these changes, as an example."""
        self._known.setdefault(api, set()).update((each.role, each.why) for each in changes)

    def knows(self, api: str, changes: Iterable[Change]) -> bool:
        """Return whether the report has an example of an API, and of each of these changes."""
        known = self._known.get(api)
        return known is not None and all((each.role, each.why) in known for each in changes)

    def add_one(
        self, api: str, step: int, times_ns: tuple[int, int], changes: Iterable[Change]
    ) -> None:
        """
        Add a step that was matched by itself.

        Args:
            api: The name of its API.
            step: Its number.
            times_ns: Its lag and its latency.
            changes: The changes of its request; the report knows examples of them.
        """
        steps = self._single.get(api)
        if steps is None:
            steps = self._single[api] = _SingleSteps()
        steps.rows.append((step, *times_ns))
        for each in changes:
            steps.changes[each.role, each.why] += 1
        if len(steps.rows) >= FLUSH_COUNT:
            self._flush_single(api)

    def _flush_single(self, api: str) -> None:
        steps = self._single.pop(api)
        numbers, lags, latencies = (each.copy() for each in np.array(steps.rows, np.int64).T)
        self._report(
            BatchedOutcome(api, numbers, lags, latencies, steps.changes, self._pass_number)
        )

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
        for api in list(self._single):
            self._flush_single(api)
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
