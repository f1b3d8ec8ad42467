"""Percentiles of many durations in bounded memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.engine.tables.exchange_table import Ints

MAX_EXACT_VALUES = 1 << 16
"""Up to this many values are stored; beyond, only counts per bucket."""

_FINE_BITS = 11
_FINE = 1 << _FINE_BITS
"""
Durations below this have a bucket each. From there on each doubling has half as many buckets, so
that no bucket is wider than a thousandth of its start.
"""


class Histogram(NamedTuple):
    """
    Counts of durations; they can be added to those of other processes.

    Attributes:
        min_ns: The shortest.
        max_ns: The longest.
        below: The number of negative ones.
        buckets: Numbers of the buckets that are not empty.
        counts: The number of durations in each of these.
    """

    min_ns: int
    max_ns: int
    below: int
    buckets: list[int]
    counts: list[int]


class Latencies:
    """
    Durations in nanoseconds.

    Attributes:
        count: Number of latencies.
        sum_ns: Of all that were added one by one.
        min_ns: The shortest; undefined without any.
        max_ns: The longest one.
        exact_values: Durations that are not in buckets yet.
        buckets: Numbers of durations in ranges; None while all are exact.
    """

    def __init__(self) -> None:
        self.count = self.sum_ns = 0
        self.min_ns = 2**63 - 1
        self.max_ns = -(2**63)
        self.exact_values: list[Ints] = []
        self.buckets: Ints | None = None
        self._below = 0

    def add(self, values: Ints) -> None:
        """Add durations."""
        if not len(values):
            return
        self.count += len(values)
        self.sum_ns += int(values.sum())
        self.min_ns = min(self.min_ns, int(values.min()))
        self.max_ns = max(self.max_ns, int(values.max()))
        self.exact_values.append(values)
        if self.buckets is not None or self.count > MAX_EXACT_VALUES:
            self._count()

    def percentile(self, percent: int) -> int:
        """
        Return the value of the nearest rank.

        With more than `MAX_EXACT_VALUES` values it may be off by half a thousandth, except for the
        minimum and the maximum.
        """
        rank = max(1, -(-percent * self.count // 100))
        if self.buckets is None:
            values = np.sort(np.concatenate(self.exact_values))
            self.exact_values = [values]
            return int(values[rank - 1])
        if rank <= self._below:
            return self.min_ns
        if rank == self.count:
            return self.max_ns
        bucket = int(np.searchsorted(np.cumsum(self.buckets), rank - self._below))
        return min(max(_middle(bucket), self.min_ns), self.max_ns)

    def histogram(self) -> Histogram | None:
        """Return all durations as counts per bucket; None without any."""
        if not self.count:
            return None
        counted = Latencies()
        counted._below = self._below
        counted.buckets = np.zeros(0, np.int64) if self.buckets is None else self.buckets
        counted.exact_values = list(self.exact_values)
        counted._count()
        used = np.flatnonzero(counted.buckets)
        counts: list[int] = counted.buckets[used].tolist()
        return Histogram(self.min_ns, self.max_ns, counted._below, used.tolist(), counts)

    def add_histogram(self, other: Histogram) -> None:
        """Add the durations of a histogram, each as the middle of its bucket."""
        counts = np.zeros(max(other.buckets, default=-1) + 1, np.int64)
        counts[other.buckets] = other.counts
        self._count()
        self.count += other.below + int(counts.sum())
        self.min_ns, self.max_ns = min(self.min_ns, other.min_ns), max(self.max_ns, other.max_ns)
        self._below += other.below
        self._add_counts(counts)

    def _count(self) -> None:
        """Count the stored values per bucket; negative ones have none."""
        values = np.concatenate(self.exact_values) if self.exact_values else np.zeros(0, np.int64)
        self.exact_values = []
        non_negative = values[values >= 0]
        self._below += len(values) - len(non_negative)
        self._add_counts(np.bincount(_buckets_of(non_negative)))

    def _add_counts(self, counts: Ints) -> None:
        if self.buckets is None:
            self.buckets = np.zeros(0, np.int64)
        longer, shorter = sorted((self.buckets, counts), key=len, reverse=True)
        longer = longer.astype(np.int64)
        longer[: len(shorter)] += shorter
        self.buckets = longer


def _buckets_of(values: Ints) -> Ints:
    """Return the bucket of each duration."""
    # The exponent of a float is the number of doublings beyond the fine ones.
    doublings = np.maximum(np.frexp(values.astype(np.float64))[1] - _FINE_BITS, 0).astype(np.int64)
    buckets: Ints = doublings * (_FINE // 2) + (values >> doublings)
    return buckets


def _middle(bucket: int) -> int:
    """Return the middle of a bucket."""
    if bucket < _FINE:
        return bucket
    doublings = bucket // (_FINE // 2) - 1
    begin = (bucket - doublings * (_FINE // 2)) << doublings
    return begin + (1 << doublings >> 1)
