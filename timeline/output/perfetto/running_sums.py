"""Counters as sums of changes: requests in flight, bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from timeline.output.perfetto.packets import counter_packets

MAX_WAITING = 1_000_000
"""Limit of changes held back; beyond it the older half is written, possibly out of order."""

_ROWS = 50_000
"""Points per encoded chunk."""


class RunningSums:
    """Sums changes in time order; they arrive at the ends of exchanges, out of order."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Start; `write` receives packets."""
        self._write = write
        self._waiting: list[tuple[Ints, Ints, Ints]] = []
        self._totals: dict[int, int] = {}

    def add(self, track: Ints, time_ns: Ints, change: Ints) -> None:
        """Add changes of counters at times."""
        self._waiting.append((track, time_ns, change))

    def write_before(self, limit_ns: int) -> None:
        """Write all points before a time; no earlier changes may follow."""
        if not self._waiting:
            return
        track, time_ns, change = map(np.concatenate, zip(*self._waiting, strict=True))
        if len(track) > MAX_WAITING:
            limit_ns = max(limit_ns, int(np.median(time_ns)) + 1)
        is_ready = time_ns < limit_ns
        self._waiting = [(track[~is_ready], time_ns[~is_ready], change[~is_ready])]
        track, time_ns, change = track[is_ready], time_ns[is_ready], change[is_ready]
        if not len(track):
            return
        order = np.lexsort((time_ns, track))
        track, time_ns, change = track[order], time_ns[order], change[order]
        sums = np.cumsum(change)
        starts = np.flatnonzero(np.diff(track, prepend=-1))
        before = sums[starts] - change[starts]
        known = [self._totals.get(each, 0) for each in track[starts].tolist()]
        counts = np.diff(starts, append=len(track))
        total = sums + np.repeat(np.array(known, np.int64) - before, counts)
        ends = starts + counts - 1
        self._totals.update(zip(track[ends].tolist(), total[ends].tolist(), strict=True))
        # Of several changes at one time, the last has the total.
        last = np.flatnonzero(np.append((np.diff(time_ns) != 0) | (np.diff(track) != 0), True))
        for first in range(0, len(last), _ROWS):
            at = last[first : first + _ROWS]
            self._write(counter_packets(track[at], time_ns[at], total[at]))
