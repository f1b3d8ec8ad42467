"""The loss counters of streams in arrays; and as objects of materialised connections."""

from __future__ import annotations

from collections import deque

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.tcp.both_paths.connection_columns import COUNTS, GAPS, GAPS_REMEMBERED
from dissector.capture.tcp.both_paths.waiting_columns import GAP_ROWS, LOSS_ROWS
from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.objects.loss_counters import LossCounters

_FIRST_ROWS = 16


class LossCounterTable:
    """
    The loss counters of streams of connections that are not materialised.

    Attributes:
        counts: A row for each stream with any, see `connection_columns`; row 0 belongs to all
            others: zeros.
        gaps: The gaps that some of them remember; there is room for more in both. How many rows of
            both are in use is counted by `used`, see `waiting_columns`.
    """

    def __init__(self, used: Int64s) -> None:
        self._used = used
        self.counts: Int64s = np.zeros((_FIRST_ROWS, COUNTS), dtype=np.int64)
        self.gaps: Int64s = np.zeros((_FIRST_ROWS, 1 + 2 * GAPS_REMEMBERED), dtype=np.int64)
        used[LOSS_ROWS] = used[GAP_ROWS] = 1

    def reserve(self) -> None:
        """Make room for two rows more."""
        self.counts = _with_room(self.counts, int(self._used[LOSS_ROWS]) + 2)
        self.gaps = _with_room(self.gaps, int(self._used[GAP_ROWS]) + 2)

    def store(self, row: int, losses: LossCounters) -> int:
        """Store a stream's counters; return their row, a new one if needed, 0 if all are zero."""
        side = losses.side
        counts = (
            side.retransmitted_segments,
            side.retransmitted_bytes,
            side.gaps,
            side.gap_bytes,
            side.cut_bytes,
            side.late_bytes,
        )
        if not row:
            if not any(counts):
                return 0
            row = int(self._used[LOSS_ROWS])
            self.counts = _with_room(self.counts, row + 1)
            self._used[LOSS_ROWS] = row + 1
        self.counts[row, :GAPS] = counts
        if losses.gaps:
            self._remember(row, losses.gaps)
        return row

    def load(self, row: int, packets: int, number_of_bytes: int) -> LossCounters:
        """Return a stream's counters as an object."""
        losses = LossCounters(Side(packets, number_of_bytes))
        if row:
            *counts, ring = self.counts[row].tolist()
            losses = LossCounters(Side(packets, number_of_bytes, *counts))
            if ring:
                total, *ends = self.gaps[ring].tolist()
                gaps = list(zip(ends[::2], ends[1::2], strict=True))
                first = total % GAPS_REMEMBERED
                ordered = gaps[:total] if total <= len(gaps) else gaps[first:] + gaps[:first]
                losses.gaps = deque(ordered, GAPS_REMEMBERED)
        return losses

    def retain(self, rows: Int64s) -> Int64s:
        """Drop all rows but these; some may be 0; return their new numbers."""
        kept = np.unique(np.append(rows, 0))
        counts = self.counts[kept]
        rings, ring_numbers = np.unique(np.append(counts[:, GAPS], 0), return_inverse=True)
        counts[:, GAPS] = ring_numbers[:-1]
        self._used[LOSS_ROWS], self._used[GAP_ROWS] = len(kept), len(rings)
        self.counts = np.concatenate([counts, np.zeros_like(self.counts[:_FIRST_ROWS])])
        gaps = self.gaps[rings]
        self.gaps = np.concatenate([gaps, np.zeros_like(self.gaps[:_FIRST_ROWS])])
        numbers: Int64s = np.searchsorted(kept, rows)
        return numbers

    def _remember(self, row: int, gaps: deque[tuple[int, int]]) -> None:
        ring = int(self.counts[row, GAPS])
        if not ring:
            ring = int(self._used[GAP_ROWS])
            self.gaps = _with_room(self.gaps, ring + 1)
            self._used[GAP_ROWS] = ring + 1
            self.counts[row, GAPS] = ring
        self.gaps[ring, 0] = len(gaps)
        self.gaps[ring, 1 : 1 + 2 * len(gaps)] = [number for gap in gaps for number in gap]


def _with_room(table: Int64s, rows: int) -> Int64s:
    """Return a table with the given capacity."""
    if rows <= len(table):
        return table
    larger = np.zeros((2 * rows, table.shape[1]), dtype=np.int64)
    larger[: len(table)] = table
    return larger
