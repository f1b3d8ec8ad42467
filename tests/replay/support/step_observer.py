"""Whoever wants to see what becomes of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.mapping.id_map import IdMap
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Verdict


@dataclass
class StepObserver:
    """Takes all outcomes, and calls none the same, so that each step goes the general way."""

    each: Callable[[Outcome], None]

    def record(self, outcome: Outcome, ids: IdMap) -> Verdict:
        self.each(outcome)
        return Verdict.EQUIVALENT

    def record_batch(self, alike: BatchedOutcome) -> None:
        raise AssertionError(alike)

    def record_late_difference(self, number: int, copy: int, difference: Difference) -> None:
        """Nothing: what becomes of each step is all that is wanted."""

    def record_logs(
        self, number: int, unbalanced: Iterable[UnbalancedLog], shared: Iterable[SharedLog]
    ) -> None:
        """Nothing likewise."""
