"""Results of each copy of a capture: verdicts and latencies, by the names it uses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.pass_criteria import Criteria
from replay.report.counters import Durations


@dataclass(slots=True)
class CopyCounters:
    """
    The verdicts and latencies of one copy, in all its passes.

    Attributes:
        prefix: The prefix of its names on the target, in its first pass.
        starts_after_s: Delay of its start after that of the first copy.
        verdicts: Its verdicts.
        replayed: Latencies of its requests.
        lags: Delays of its requests against the plan.
        not_balanced: The number of its logs that could not be balanced.
    """

    prefix: str = ""
    starts_after_s: float = 0.0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    replayed: Durations = field(default_factory=Durations)
    lags: Durations = field(default_factory=Durations)
    not_balanced: int = 0

    def passed(self, criteria: Criteria) -> bool:
        """Return whether its responses and logs meet the criteria; limits are for all copies."""
        fails = any(self.verdicts[verdict] for verdict in criteria.verdicts)
        return not fails and not (criteria.wants_balance and self.not_balanced)

    def row(self, criteria: Criteria) -> Row:
        """Return the row for reports."""
        return {
            "copy": self.prefix,
            "starts_after_s": self.starts_after_s,
            "passed": self.passed(criteria),
            "sent": self.verdicts.total() - self.verdicts[Verdict.LEFT_OUT],
            **{verdict.value: self.verdicts[verdict] for verdict in Verdict},
            "not_balanced": self.not_balanced,
            **self.replayed.row("replayed"),
            **self.lags.row("lag"),
        }
