"""Many lengths of time, of which percentiles are asked, in bounded memory."""

from __future__ import annotations

import numpy as np

from dissector.engine.tables.exchange_table import Ints

MAX_EXACT_VALUES = 1 << 16
"""So many are kept as they are; of more only how many fall into each of some ranges."""

_FINE_BITS = 11
_FINE = 1 << _FINE_BITS
"""
Lengths below this have a range each. From there on each doubling has half as many ranges, so that
none is wider than a thousandth of what it begins with.
"""


class Latencies:
    """
    Lengths of time in nanoseconds.

    Attributes:
        count: How many.
        min_ns: The shortest; of no meaning without any.
        max_ns: The longest, likewise.
    """

    def __init__(self) -> None:
        self.count = 0
        self.min_ns = 2**63 - 1
        self.max_ns = -(2**63)
        self._exact: list[Ints] = []
        self._ranges: Ints | None = None
        self._below = 0

    def add(self, values: Ints) -> None:
        """Add some."""
        if not len(values):
            return
        self.count += len(values)
        self.min_ns = min(self.min_ns, int(values.min()))
        self.max_ns = max(self.max_ns, int(values.max()))
        self._exact.append(values)
        if self._ranges is not None or self.count > MAX_EXACT_VALUES:
            self._count()

    def percentile(self, percent: int) -> int:
        """
        Return the value of the nearest rank.

        With more than `MAX_EXACT_VALUES` values it may be off by half a thousandth, other than the
        least and the most.
        """
        rank = max(1, -(-percent * self.count // 100))
        if self._ranges is None:
            values = np.sort(np.concatenate(self._exact))
            self._exact = [values]
            return int(values[rank - 1])
        if rank <= self._below:
            return self.min_ns
        place = int(np.searchsorted(np.cumsum(self._ranges), rank - self._below))
        return min(max(_middle(place), self.min_ns), self.max_ns)

    def _count(self) -> None:
        """Count what is kept by ranges; what ends before it began has none."""
        values = np.concatenate(self._exact)
        self._exact = []
        after = values[values >= 0]
        self._below += len(values) - len(after)
        places = np.bincount(_places(after))
        if self._ranges is None:
            self._ranges = np.zeros(0, np.int64)
        longer, shorter = sorted((self._ranges, places), key=len, reverse=True)
        longer = longer.astype(np.int64)
        longer[: len(shorter)] += shorter
        self._ranges = longer


def _places(values: Ints) -> Ints:
    """Return the range of each length of time."""
    # The exponent of a float is how often a length doubles beyond the fine ones.
    doubled = np.maximum(np.frexp(values.astype(np.float64))[1] - _FINE_BITS, 0).astype(np.int64)
    places: Ints = doubled * (_FINE // 2) + (values >> doubled)
    return places


def _middle(place: int) -> int:
    """Return the middle of a range."""
    if place < _FINE:
        return place
    doubled = place // (_FINE // 2) - 1
    begin = (place - doubled * (_FINE // 2)) << doubled
    return begin + (1 << doubled >> 1)
