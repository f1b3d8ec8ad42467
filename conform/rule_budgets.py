"""
Budgets of rules: the processor time and the memory that one rule may take.

The rules need some milliseconds for a megabyte of messages, and retain little, so the budgets are
far above the needs of any capture. They bound the harm of a fault in a rule: the rule is not judged
any further, and all others are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from time import process_time

from conform.evidence.bounded_memory import RuleStates
from conform.registry.verdict import Tally


@dataclass(frozen=True, slots=True)
class RuleBudget:
    """
    The budget of one rule.

    Attributes:
        seconds: Processor time, for any capture.
        seconds_per_mib: Additional processor time for each MiB of judged messages.
        state_bytes: Memory of one state class of rules, on all connections together.
        bytes_between: Bytes of judged messages between two measurements of memory.
    """

    seconds: float = 60.0
    seconds_per_mib: float = 2.0
    state_bytes: int = 512 << 20
    bytes_between: int = 16 << 20


class RuleBudgets:
    """Watches the budgets of the rules of a capture."""

    def __init__(self, budget: RuleBudget) -> None:
        self._budget = budget
        self._judged_bytes = self._measured_at = 0
        self._begun_s = process_time()
        self.allowed_s = budget.seconds
        """Time that each rule may have taken so far."""

    def add_messages(self, size: int) -> None:
        """Add the bytes of messages that are about to be judged."""
        self._judged_bytes += size
        share = self._judged_bytes / (1 << 20)
        self.allowed_s = self._budget.seconds + self._budget.seconds_per_mib * share

    def time_reason(self, tally: Tally) -> str:
        """
        Return why a rule that took more than `allowed_s` is stopped; empty: it is not.

        The time of rules is measured by the clock, which costs least. On a busy machine that is
        more than the processor time, so that of the process has to be above the limit too.
        """
        if tally.seconds <= self.allowed_s or process_time() - self._begun_s <= self.allowed_s:
            return ""
        return _reason(f"{self.allowed_s:,.0f} s of processor time")

    def exhausted_states(self, states: Collection[RuleStates]) -> dict[type, str]:
        """Return the classes whose instances together reached their budget, with the reason."""
        if self._judged_bytes - self._measured_at < self._budget.bytes_between:
            return {}
        self._measured_at = self._judged_bytes
        sizes = Counter[type]()
        for each in states:
            for kind, size in each.sizes():
                sizes[kind] += size
        limit = self._budget.state_bytes
        reason = _reason(f"{limit >> 20:,} MiB of memory")
        return {kind: reason for kind, size in sizes.items() if size > limit}


def _reason(budget: str) -> str:
    return f"not judged any further: the rule reached its budget of {budget}"
