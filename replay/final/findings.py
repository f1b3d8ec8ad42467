"""The result of an end check: differences, and logs that could not be checked."""

from __future__ import annotations

from dataclasses import dataclass, field

from replay.compare.log_balance import Balance, Finding, UnbalancedLog
from replay.model.outcome import Difference


@dataclass(slots=True)
class Findings:
    """
    What an end check found.

    Attributes:
        differences: The differences, each with the step where it began.
        unchecked: Logs, by captured names, about which the target did not answer, and why.
    """

    differences: list[Finding] = field(default_factory=list)
    unchecked: list[UnbalancedLog] = field(default_factory=list)

    def add(self, step: int, path: str, captured: str, replayed: str) -> None:
        """Add a difference of a step."""
        self.differences.append(Finding(step, Difference(path, captured, replayed)))

    def leave_open(self, topic: str, partition: int, why: str) -> None:
        """Add a log that the target did not answer for."""
        self.unchecked.append(UnbalancedLog(topic, partition, why))

    def added_to(self, balanced: Balance) -> Balance:
        """Return a balance with these differences, and each unchecked log once."""
        known = {(each.topic, each.partition): each for each in self.unchecked}
        known |= {(each.topic, each.partition): each for each in balanced.unbalanced}
        found = [*balanced.findings, *self.differences]
        return balanced._replace(findings=found, unbalanced=list(known.values()))
