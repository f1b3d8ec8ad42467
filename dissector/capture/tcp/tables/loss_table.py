"""The loss counters of streams in arrays; and as objects of materialised connections."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.tcp.both_paths.tcp_rows import GAPS_REMEMBERED, Counts, GapRow, LossRow
from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.fast_path.loss_kernel import add_gap
from dissector.capture.tcp.objects.loss_counters import LossCounters
from dissector.kernel.named_rows import RowArray, dtype_of, row_of, rows_of

_FIRST_ROWS = 16


class LossCounterTable:
    """
    The loss counters of streams of connections that are not materialised.

    Attributes:
        losses: A `LossRow` for each stream with any; row 0 belongs to all others: zeros.
        gaps: A `GapRow` for each gap that one of them remembers; there is room for more in both.
            How many rows of both are in use is counted by `counts`.
    """

    def __init__(self, counts: RowArray) -> None:
        self._counts = counts
        self.losses: RowArray = np.zeros(_FIRST_ROWS, dtype_of(LossRow))
        self.gaps: RowArray = np.zeros(_FIRST_ROWS, dtype_of(GapRow))
        counts["loss_rows"] = counts["gap_rows"] = 1

    def reserve(self) -> None:
        """Make room for the losses of one connection more."""
        self.losses = _with_room(self.losses, int(self._counts["loss_rows"]) + 2)
        self.gaps = _with_room(self.gaps, int(self._counts["gap_rows"]) + 2 * GAPS_REMEMBERED)

    def store(self, row: int, counters: LossCounters) -> int:
        """Store a stream's counters; return their row, a new one if needed, 0 if all are zero."""
        side = counters.side
        if not row:
            lost = side.gaps, side.cut_bytes, side.late_bytes, side.retransmitted_segments
            if not any(lost):
                return 0
            row = int(self._counts["loss_rows"])
            self.losses = _with_room(self.losses, row + 1)
            self._counts["loss_rows"] = row + 1
            self.losses[row] = 0
        losses = rows_of(self.losses, LossRow)[row]
        losses.retransmitted_segments = side.retransmitted_segments
        losses.retransmitted_bytes = side.retransmitted_bytes
        losses.gaps, losses.gap_bytes = side.gaps, side.gap_bytes
        losses.cut_bytes, losses.late_bytes = side.cut_bytes, side.late_bytes
        if counters.gaps:
            self._remember(losses, counters.gaps)
        return row

    def load(self, row: int, packets: int, number_of_bytes: int) -> LossCounters:
        """Return a stream's counters as an object."""
        if not row:
            return LossCounters(Side(packets, number_of_bytes))
        losses = rows_of(self.losses, LossRow)[row]
        side = Side(
            packets,
            number_of_bytes,
            losses.retransmitted_segments,
            losses.retransmitted_bytes,
            losses.gaps,
            losses.gap_bytes,
            losses.cut_bytes,
            losses.late_bytes,
        )
        counters = LossCounters(side)
        if losses.remembered:
            gaps = ((gap.start, gap.end) for gap in self._ring(losses))
            counters.gaps = deque(gaps, GAPS_REMEMBERED)
        return counters

    def retain(self, rows: Int64s) -> Int64s:
        """Drop all rows but these; some may be 0; return their new numbers."""
        kept = np.unique(np.append(rows, 0))
        all_losses, used = rows_of(self.losses, LossRow), int(self._counts["loss_rows"])
        for row in np.setdiff1d(np.arange(used), kept).tolist():
            self._free_gaps(all_losses[row])
        self._counts["loss_rows"] = len(kept)
        self.losses = _with_room(self.losses[kept], len(kept) + 1)
        numbers: Int64s = np.searchsorted(kept, rows)
        return numbers

    def _ring(self, losses: LossRow) -> Iterator[GapRow]:
        """Yield the gaps that a stream remembers, the oldest first."""
        gaps, row = rows_of(self.gaps, GapRow), losses.newest_gap
        for _ in range(losses.remembered):
            row = gaps[row].following
            yield gaps[row]

    def _remember(self, losses: LossRow, gaps: deque[tuple[int, int]]) -> None:
        self._free_gaps(losses)
        needed = int(self._counts["gap_rows"]) + len(gaps)
        self.gaps = _with_room(self.gaps, needed)
        table, counts = rows_of(self.gaps, GapRow), row_of(self._counts, Counts)
        for start, end in gaps:
            add_gap(table, counts, losses, start, end)

    def _free_gaps(self, losses: LossRow) -> None:
        """Forget the gaps of a stream: the next ones use their rows."""
        if losses.remembered:
            newest = rows_of(self.gaps, GapRow)[losses.newest_gap]
            oldest, newest.following = newest.following, int(self._counts["free_gap"])
            self._counts["free_gap"] = oldest
        losses.newest_gap = losses.remembered = 0


def _with_room(table: RowArray, rows: int) -> RowArray:
    """Return a table with the given capacity."""
    if rows <= len(table):
        return table
    larger = np.zeros(2 * rows, table.dtype)
    larger[: len(table)] = table
    return larger
