"""Observers of the outcome of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.mapping.id_map import IdMap
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Verdict


@dataclass
class StepObserver:
    """Records all outcomes; takes none as equal in advance, to have each step compared in full."""

    each: Callable[[Outcome], None]

    def record(self, outcome: Outcome, ids: IdMap) -> Verdict:
        self.each(outcome)
        return Verdict.EQUIVALENT

    def record_batch(self, alike: BatchedOutcome) -> None:
        raise AssertionError(alike)

    def record_late_difference(self, number: int, copy: int, difference: Difference) -> None:
        """Ignored."""

    def record_logs(
        self, number: int, unbalanced: Iterable[UnbalancedLog], shared: Iterable[SharedLog]
    ) -> None:
        """Ignored."""
