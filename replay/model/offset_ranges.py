"""Sets of offsets, stored as ranges: consecutive offsets cost two numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Range(NamedTuple):
    """Offsets from `start` up to, but not including, `end`."""

    start: int
    end: int

    def __str__(self) -> str:
        return str(self.start) if self.size == 1 else f"{self.start} to {self.end - 1}"

    def __bool__(self) -> bool:
        return self.start < self.end

    @property
    def size(self) -> int:
        """The number of offsets; as a length it would be the size of a list to unpack a range."""
        return self.end - self.start


class Ranges:
    """
    A set of offsets.

    Args:
        ranges: The initial contents.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for each in ranges:
            self.add(*each)

    def __iter__(self) -> Iterator[Range]:
        return map(Range, self._starts, self._ends)

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def start(self) -> int:
        """The first offset; there must be one."""
        return self._starts[0]

    @property
    def end(self) -> int:
        """Behind the last offset; there must be one."""
        return self._ends[-1]

    def add(self, start: int, end: int) -> None:
        """Add the offsets from `start` up to `end`, exclusive."""
        if start >= end:
            return
        if self._ends and start >= self._starts[-1]:
            if start > self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)
            else:
                self._ends[-1] = max(self._ends[-1], end)
            return
        # All ranges that touch the new one become one with it.
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]

    def remove(self, start: int, end: int) -> None:
        """Remove the offsets from `start` up to `end`, exclusive."""
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        if start >= end or first >= last:
            return
        ends = Range(self._starts[first], start), Range(end, self._ends[last - 1])
        remaining = [each for each in ends if each.start < each.end]
        self._starts[first:last] = [each.start for each in remaining]
        self._ends[first:last] = [each.end for each in remaining]

    def within(self, start: int, end: int) -> Iterator[Range]:
        """Yield the parts of a range in the set; empty if `end` is before `start`."""
        if start >= end:
            return
        for at in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            yield Range(max(start, self._starts[at]), min(end, self._ends[at]))

    def missing(self, start: int, end: int) -> Iterator[Range]:
        """Yield the parts of a range that are not in the set."""
        for each in self.within(start, end):
            if start < each.start:
                yield Range(start, each.start)
            start = each.end
        if start < end:
            yield Range(start, end)

    def without(self, other: Ranges) -> Ranges:
        """Return the offsets in this set but not in another."""
        return Ranges(part for each in self for part in other.missing(*each))

    def thin_out(self, max_ranges: int) -> None:
        """Fill the smallest gaps until at most `max_ranges` ranges are left."""
        if len(self) <= max_ranges:
            return
        gaps = [after - end for end, after in zip(self._ends, self._starts[1:], strict=False)]
        wide_gaps = sorted(sorted(range(len(gaps)), key=gaps.__getitem__)[len(self) - max_ranges :])
        self._ends = [*(self._ends[at] for at in wide_gaps), self._ends[-1]]
        self._starts = [self._starts[0], *(self._starts[at + 1] for at in wide_gaps)]

    @property
    def size(self) -> int:
        """Number of offsets in the range."""
        return sum(self._ends) - sum(self._starts)
