"""What waits in connections: the tables of its rows, and the bytes of earlier windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Bytes, Int64s
from dissector.capture.tcp.tcp_rows import Counts
from dissector.capture.tcp.waiting_rows import (
    CARRY_OVER_BASE,
    DeadlineRow,
    Ring,
    RunRow,
    WaitingSegment,
    WaitRow,
)
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import RowArray, Rows, dtype_of, row_of

_FIRST_ROWS = 16
_NO_BYTES: Bytes = np.zeros(0, np.uint8)


@Kernel
def move_segments(
    waiting: Rows[WaitingSegment], order: I64, data: U8, carried: U8, target: U8, at: int
) -> int:
    """
    Copy bytes of waiting segments to the carry-over buffer; return the end of the last one.

    Args:
        waiting: All segments.
        order: Those to copy. `target` may be `carried` if they are ordered by position, and none is
            before `at`.
        data: The bytes of the window.
        carried: Bytes of earlier windows.
        target: Receives the bytes.
        at: Where in it.
    """
    for i in range(len(order)):
        segment = waiting[order[i]]
        if segment.start < CARRY_OVER_BASE:
            copy_bytes(target, at, data, segment.start, segment.captured)
        else:
            start = segment.start - CARRY_OVER_BASE
            copy_bytes(target, at, carried, start, segment.captured)
        segment.start = CARRY_OVER_BASE + at
        at += segment.captured
    return at


class WaitingTable:
    """
    What waits in connections.

    Attributes:
        waits: A `WaitRow` for each connection in which something waits.
        runs: A `RunRow` for each run of waiting segments.
        waiting: A `WaitingSegment` for each waiting segment.
        deadlines: A ring of `DeadlineRow`, see `StateArrays`.
        checks: Another one. There is room for more in all of them.
        carried: Bytes of segments of earlier windows.
    """

    def __init__(self, counts: RowArray) -> None:
        self._counts = counts
        self.waits: RowArray = np.zeros(_FIRST_ROWS, dtype_of(WaitRow))
        self.runs: RowArray = np.zeros(_FIRST_ROWS, dtype_of(RunRow))
        self.waiting: RowArray = np.zeros(_FIRST_ROWS, dtype_of(WaitingSegment))
        self.deadlines: RowArray = np.zeros(_FIRST_ROWS, dtype_of(DeadlineRow))
        self.checks: RowArray = np.zeros(_FIRST_ROWS, dtype_of(DeadlineRow))
        self.carried: Bytes = _NO_BYTES
        counts["waits_used"] = counts["runs_used"] = counts["segments_used"] = 1

    def __getstate__(self) -> dict[str, Any]:
        counts = row_of(self._counts, Counts)
        return {
            **self.__dict__,
            "waits": self.waits[: counts.waits_used + 1],
            "runs": self.runs[: counts.runs_used + 1],
            "waiting": self.waiting[: counts.segments_used + 1],
            "carried": self.carried[: counts.waiting_carried_bytes + 1],
        }

    def reserve(self) -> None:
        """Make the room that a kernel lacked."""
        counts = row_of(self._counts, Counts)
        segments = counts.segments_live + counts.needed_segments + 1
        self.waits = with_room(self.waits, counts.waits_used + 1)
        self.runs = with_room(self.runs, segments)
        self.waiting = with_room(self.waiting, segments)
        self.deadlines = _with_more(self.deadlines, counts.rings[0])
        self.checks = _with_more(self.checks, counts.rings[1])

    def retain(self, new_numbers: Int64s) -> None:
        """Drop the deadlines of connections without a new number."""
        rings = row_of(self._counts, Counts).rings
        self.deadlines = _renumbered(self.deadlines, rings[0], new_numbers)
        self.checks = _renumbered(self.checks, rings[1], new_numbers)

    def carry(self, data: Bytes) -> None:
        """Keep the bytes of the waiting segments, as their window ends."""
        counts = row_of(self._counts, Counts)
        if not counts.segments_live:
            counts.waiting_carried_bytes = 0
            self.carried = _NO_BYTES
            return
        used = self.waiting[: counts.segments_used]
        start, captured = used["start"], used["captured"]
        new = np.flatnonzero((captured > 0) & (start < CARRY_OVER_BASE))
        added, at = int(captured[new].sum()), counts.waiting_carried_bytes
        if at + added > len(self.carried):
            old = np.flatnonzero((captured > 0) & (start >= CARRY_OVER_BASE))
            total = added + int(captured[old].sum())
            target = self.carried
            if total > len(target):
                target = np.empty(total + total // 4, np.uint8)
            old = old[np.argsort(start[old])]
            at = move_segments(self.waiting, old, data, self.carried, target, 0)
            self.carried = target
        counts.waiting_carried_bytes = move_segments(
            self.waiting, new, data, self.carried, self.carried, at
        )


def _with_more(deadlines: RowArray, ring: Ring) -> RowArray:
    """Return a ring with room for one more deadline."""
    if ring.count < len(deadlines):
        return deadlines
    deadlines, ring.first = np.roll(deadlines, -ring.first), 0
    return with_room(deadlines, ring.count + 1)


def _renumbered(deadlines: RowArray, ring: Ring, new_numbers: Int64s) -> RowArray:
    """Return the deadlines of connections with a new number."""
    kept = np.roll(deadlines, -ring.first)[: ring.count]
    kept["connection"] = new_numbers[kept["connection"]]
    kept = kept[kept["connection"] >= 0]
    ring.first, ring.count = 0, len(kept)
    return with_room(kept, len(kept) + 1)


def with_room(table: RowArray, rows: int) -> RowArray:
    """Return a table with room for this many rows."""
    if rows <= len(table):
        return table
    larger = np.zeros(2 * rows, table.dtype)
    larger[: len(table)] = table
    return larger
