"""Counters of bytes of a stream that are missing, retransmitted or late."""

from __future__ import annotations

from collections import deque

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.tcp.connection_columns import COUNTS, GAPS, GAPS_REMEMBERED
from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.waiting_columns import GAP_ROWS, LOSS_ROWS

_FIRST_ROWS = 16


class LossCounters:
    """
    Counters of one stream's losses.

    It remembers the newest gaps, to distinguish late bytes, which fill one, from retransmitted
    bytes.
    """

    __slots__ = ("gaps", "side")

    def __init__(self, side: Side) -> None:
        self.side = side
        self.gaps: deque[tuple[int, int]] | None = None

    def count_gap(self, start: int, end: int) -> None:
        """Count bytes that are not in the capture."""
        self.side.gaps += 1
        self.side.gap_bytes += end - start
        self._remember(start, end)

    def count_cut(self, start: int, end: int) -> None:
        """Count bytes that the capture cut off their packet."""
        self.side.cut_bytes += end - start
        self._remember(start, end)

    def count_retransmitted(self, number: int) -> None:
        """Count the repeated bytes of a segment; 0 has no effect."""
        if number > 0:
            self.side.retransmitted_segments += 1
            self.side.retransmitted_bytes += number

    def count_old(self, start: int, end: int, first: int, next_seq: int) -> None:
        """Count bytes before `next_seq` as late or retransmitted; the stream starts at `first`."""
        if end - start == 1 and end == next_seq:
            return  # a keep-alive
        end = min(end, next_seq)
        late = max(min(end, first) - start, 0)
        for gap_start, gap_end in self.gaps or ():
            late += max(min(end, gap_end) - max(start, gap_start), 0)
        self.side.late_bytes += late
        self.count_retransmitted(end - start - late)

    def _remember(self, start: int, end: int) -> None:
        if self.gaps is None:
            self.gaps = deque(maxlen=GAPS_REMEMBERED)
        self.gaps.append((start, end))


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
    """Return a table with room for so many rows."""
    if rows <= len(table):
        return table
    larger = np.zeros((2 * rows, table.shape[1]), dtype=np.int64)
    larger[: len(table)] = table
    return larger
