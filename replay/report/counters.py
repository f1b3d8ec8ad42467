"""Counters of a replay in bounded memory: durations, verdicts, reasons, examples, copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.summary.percentiles import Histogram, Latencies
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.pass_criteria import Criteria

PERCENTILES = (50, 95, 99, 100)

_BUFFERED_COUNT = 1024


class Durations:
    """Collects durations, and gives their percentiles."""

    def __init__(self) -> None:
        self._latencies = Latencies()
        self._new: list[int] = []

    def add_all(self, durations_ns: NDArray[np.int64]) -> None:
        """Add several durations."""
        self._latencies.add(durations_ns)

    def add(self, duration_ns: int) -> None:
        """Add a duration."""
        self._new.append(duration_ns)
        if len(self._new) >= _BUFFERED_COUNT:
            self._flush()

    def __len__(self) -> int:
        return self._latencies.count + len(self._new)

    def ms(self, percent: int) -> float | None:
        """Return a percentile in milliseconds; None without durations."""
        self._flush()
        return self._latencies.percentile(percent) / 1e6 if len(self) else None

    def row(self, prefix: str) -> Row:
        """Return the reported percentiles; their names begin with the prefix."""
        names = (f"{prefix}_{'max' if p == 100 else f'p{p}'}_ms" for p in PERCENTILES)
        return dict(zip(names, map(self.ms, PERCENTILES), strict=True))

    def histogram(self) -> Row | None:
        """Return the counts of durations as a row for `absorb`; None without durations."""
        self._flush()
        found = self._latencies.histogram()
        return None if found is None else found._asdict()

    def absorb(self, histogram: Row) -> None:
        """Add the durations that another report has counted."""
        self._flush()
        fields = {name: histogram[name] for name in Histogram._fields}
        self._latencies.add_histogram(Histogram(**fields))

    def _flush(self) -> None:
        self._latencies.add(np.array(self._new, np.int64))
        self._new.clear()


@dataclass(slots=True)
class ApiCounters:
    """The verdicts and latencies of one API."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    captured: Durations = field(default_factory=Durations)
    replayed: Durations = field(default_factory=Durations)


MAX_EXAMPLES = 2
"""Maximum number of examples of each kind of difference."""


_MAX_REASONS = 1000
"""Maximum number of distinct reasons; all others count as `OTHER`."""

OTHER = "other reasons"


class ReasonCounter(Mapping[str, int]):
    """Counts each reason, in total and for each API; the number of reasons is bounded."""

    def __init__(self) -> None:
        self._found: dict[str, Counter[str]] = {}

    def add(self, reason: str, api: str, times: int = 1) -> None:
        """Count a reason."""
        is_listed = reason in self._found or len(self._found) < _MAX_REASONS
        self._found.setdefault(reason if is_listed else OTHER, Counter())[api] += times

    def absorb(self, rows: Iterable[Row]) -> None:
        """Add the counts in `rows` of another report."""
        for row in rows:
            for api, count in row["apis"].items():
                self.add(row["reason"], api, count)

    def remove(self, reason: str, api: str) -> None:
        """Subtract a reason that was counted before."""
        found = self._found[reason if api in self._found.get(reason, ()) else OTHER]
        found -= Counter([api])
        self._found = {each: apis for each, apis in self._found.items() if apis}

    def __getitem__(self, reason: str) -> int:
        return self._found[reason].total()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def rows(self) -> list[Row]:
        """Return the reasons, the most frequent first."""
        found = sorted(self._found.items(), key=lambda item: -item[1].total())
        return [
            {"reason": reason, "count": apis.total(), "apis": dict(apis.most_common())}
            for reason, apis in found
        ]


@dataclass(slots=True)
class ExampleCounter:
    """Counts equal events, and keeps the first ones as examples."""

    count: int = 0
    examples: list[Row] = field(default_factory=list)

    def add(self, example: Callable[[], Row]) -> None:
        """Count an event; `example` creates its row for the first ones."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example())

    @property
    def first(self) -> Row:
        """The first example."""
        return self.examples[0]


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
