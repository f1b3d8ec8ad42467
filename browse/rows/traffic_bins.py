"""Exchanges and errors over time, in bins that widen as the capture grows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from browse.rows.row_parts import RowParts
from dissector.engine.tables.column_types import Coded, Integers
from dissector.engine.tables.exchange_table import NONE, Ints

_BINS = 1024
_FIRST_NS = 1_000_000
"""Width of a bin at first; it doubles until the capture fits."""


class TrafficBins:
    """
    Numbers of exchanges and of those with errors, by the time of the request.

    Attributes:
        bin_ns: Width of a bin.
        end: Number of bins up to the last exchange.
        counts: Exchanges, and those with errors, by bin.
    """

    def __init__(self, parts: RowParts) -> None:
        self._parts = parts
        self._seen = 0
        self.bin_ns = _FIRST_NS
        self.end = 0
        self.counts = np.zeros((2, _BINS), np.int64)

    def update(self, begin_ns: int) -> bool:
        """Add new exchanges, with times from the first packet on; return whether there were any."""
        ends = len(self._parts.ends)
        if self._seen == ends:
            return False
        for part in range(self._seen, ends):
            self._add(part, begin_ns)
        self._seen = ends
        return True

    def resampled(self, count: int) -> tuple[Ints, Ints]:
        """Return exchanges and errors in a number of equal spans, up to the last exchange."""
        edges = np.arange(count + 1) * max(self.end, 1) / count
        sums = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(self.counts, axis=1)], axis=1)
        # A span narrower than a bin shows the bin that it begins in.
        low = np.minimum(edges[:-1].astype(np.int64), _BINS - 1)
        high = np.maximum(edges[1:].astype(np.int64), low + 1)
        found = sums[:, high] - sums[:, low]
        return found[0], found[1]

    def _add(self, part: int, begin_ns: int) -> None:
        times = self._times(part)
        places = np.maximum(times[times != NONE] - begin_ns, 0)
        if not len(places):
            return
        while int(places.max()) >= self.bin_ns * _BINS:
            self._widen()
        bins = places // self.bin_ns
        errors = self._has_errors(part)[times != NONE]
        self.counts[0] += np.bincount(bins, minlength=_BINS)
        self.counts[1] += np.bincount(bins[errors], minlength=_BINS)
        self.end = max(self.end, int(bins.max()) + 1)

    def _widen(self) -> None:
        pairs = self.counts.reshape(2, _BINS // 2, 2).sum(axis=2)
        self.counts = np.concatenate([pairs, np.zeros_like(pairs)], axis=1)
        self.bin_ns, self.end = 2 * self.bin_ns, (self.end + 1) // 2

    def _times(self, part: int) -> Ints:
        """Return the times of requests; of the response where the request is missing."""
        request, response = (
            self._parts.column(part, f"{side}_time_ns") for side in ("request", "response")
        )
        assert isinstance(request, Integers)
        assert isinstance(response, Integers)
        return np.where(request.values == NONE, response.values, request.values)

    def _has_errors(self, part: int) -> NDArray[np.bool_]:
        column = self._parts.column(part, "errors")
        assert isinstance(column, Coded)
        by_code = np.array([*map(bool, column.values), False], np.bool_)
        found: NDArray[np.bool_] = by_code[np.where(column.codes == NONE, -1, column.codes)]
        return found
