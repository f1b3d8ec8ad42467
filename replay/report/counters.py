"""What is counted of a replay, in bounded memory: lengths of time, verdicts, what was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.engine.reading.percentiles import Latencies
from replay.model.outcome import Verdict
from replay.model.row import Row

PERCENTILES = (50, 95, 99, 100)

_AT_ONCE = 1024


class Times:
    """Lengths of time."""

    def __init__(self) -> None:
        self._latencies = Latencies()
        self._new: list[int] = []

    def add_all(self, lengths_ns: NDArray[np.int64]) -> None:
        """Add many."""
        self._latencies.add(lengths_ns)

    def add(self, length_ns: int) -> None:
        """Add one."""
        self._new.append(length_ns)
        if len(self._new) >= _AT_ONCE:
            self._flush()

    def __len__(self) -> int:
        return self._latencies.count + len(self._new)

    def ms(self, percent: int) -> float | None:
        """Return a percentile in milliseconds; None without any."""
        self._flush()
        return self._latencies.percentile(percent) / 1e6 if len(self) else None

    def row(self, what: str) -> Row:
        """Return the percentiles that are told, by names that begin so."""
        names = (f"{what}_{'max' if p == 100 else f'p{p}'}_ms" for p in PERCENTILES)
        return dict(zip(names, map(self.ms, PERCENTILES), strict=True))

    def _flush(self) -> None:
        self._latencies.add(np.array(self._new, np.int64))
        self._new.clear()


@dataclass(slots=True)
class OfApi:
    """What became of the steps of one API."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    captured: Times = field(default_factory=Times)
    replayed: Times = field(default_factory=Times)


EXAMPLES = 2
"""Of each kind of difference."""


_MOST_REASONS = 1000
"""That are told apart."""

OTHER = "other reasons"


class Reasons(Mapping[str, int]):
    """Reasons with how often each was given, in all and for each API; their number is bounded."""

    def __init__(self) -> None:
        self._found: dict[str, Counter[str]] = {}

    def add(self, reason: str, api: str) -> None:
        """Count a reason."""
        is_told = reason in self._found or len(self._found) < _MOST_REASONS
        self._found.setdefault(reason if is_told else OTHER, Counter())[api] += 1

    def remove(self, reason: str, api: str) -> None:
        """Take one back that was counted."""
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
class Seen:
    """How often something was seen, and how it looked the first times."""

    count: int = 0
    examples: list[Row] = field(default_factory=list)

    def add(self, example: Callable[[], Row]) -> None:
        """Count it."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example())

    @property
    def first(self) -> Row:
        """How it looked the first time."""
        return self.examples[0]
