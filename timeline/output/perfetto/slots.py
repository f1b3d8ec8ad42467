"""
Slots: tracks for overlapping intervals, such as pipelined requests.

Perfetto draws overlapping slices of a track as caller and callee. Each interval thus gets a slot
that is free at its begin; the number of slots is that of concurrent intervals.
"""

from __future__ import annotations

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, I64Table

_UNUSED = -(2**62)
"""End of an unused slot."""


class Slots:
    """The slots of each group, with the end of the last interval in each."""

    def __init__(self) -> None:
        self._ends = np.full((16, 2), _UNUSED, np.int64)

    def assign(self, group: Ints, begin: Ints, end: Ints) -> Ints:
        """
        Return a slot for each interval, from 0.

        Args:
            group: Group number, from 0.
            begin: Begin of the interval.
            end: End of the interval. Intervals sorted by end need the fewest slots.
        """
        slot = np.zeros(len(group), np.int64)
        if len(group):
            self._grow(groups=int(group.max()) + 1)
        columns = [np.ascontiguousarray(each, np.int64) for each in (group, begin, end)]
        done = 0
        while done < len(group):
            done = assign_slots(*columns, slot, self._ends, self._ends.shape[1], done)
            if done < len(group):
                self._grow(slots=2 * self._ends.shape[1])
        return slot

    def _grow(self, groups: int = 0, slots: int = 0) -> None:
        rows, columns = self._ends.shape
        if groups > rows or slots > columns:
            larger = np.full((max(rows, 2 * groups), max(columns, slots)), _UNUSED, np.int64)
            larger[:rows, :columns] = self._ends
            self._ends = larger


@Kernel
def assign_slots(
    group: I64, begin: I64, end: I64, slot: I64, ends: I64Table, slots: int, first: int
) -> int:
    """Assign slots from a row on; return the first row without a free slot, or the row count."""
    row = first
    while row < len(group):
        best = -1
        for each in range(slots):
            if ends[group[row], each] <= begin[row] and (
                best < 0 or ends[group[row], each] > ends[group[row], best]
            ):
                best = each
        if best < 0:
            return row
        ends[group[row], best] = end[row]
        slot[row] = best
        row += 1
    return row
