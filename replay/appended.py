"""What the target says it appended to a partition: balanced against the captured log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from replay.ranges import Range

MOST_STRETCHES = 1 << 16
"""Of a partition; the older half is forgotten when there are more."""


class Stretch(NamedTuple):
    """
    Records that requests appended in a row, on both sides.

    Attributes:
        captured: Offset of the first in the capture.
        live: On the target.
        records: How many.
        step: The step that appended the first.
    """

    captured: int
    live: int
    records: int
    step: int

    @property
    def end(self) -> int:
        """Behind the last captured offset."""
        return self.captured + self.records

    @property
    def live_end(self) -> int:
        """Behind the last offset on the target."""
        return self.live + self.records


class Fault(NamedTuple):
    """
    What can't be with a log that keeps what it acknowledges.

    Attributes:
        step: Where it shows.
        field: Of the answer or of the request.
        captured: How it was.
        replayed: How it is.
    """

    step: int
    field: str
    captured: str
    replayed: str


class Extra(NamedTuple):
    """
    More than the capture has between records.

    Ends of transactions may be among it, as they are written when they are.

    Attributes:
        behind: What comes behind it.
        live: Offsets on the target.
        expected: How many the captured log has there.
    """

    behind: Stretch
    live: Range
    expected: int


class Appended:
    """
    The records of one partition that Produce requests of the replay appended, as it was answered.

    Attributes:
        unsure: How many records may have been appended beside, with no answer that says so.
    """

    def __init__(self) -> None:
        self.unsure = 0
        self._is_thinned = False
        self._starts: list[int] = []
        self._stretches: list[Stretch] = []

    def add(self, captured: int, live: int, count: int, step: int) -> None:
        """Take over that so many records were appended here there and there here."""
        if count <= 0:
            return
        at = bisect_right(self._starts, captured)
        before = self._stretches[at - 1] if at else None
        if (
            before is not None
            and live - before.live == captured - before.captured <= before.records
        ):
            count = max(before.records, captured - before.captured + count)
            self._stretches[at - 1] = before._replace(records=count)
            return
        self._starts.insert(at, captured)
        self._stretches.insert(at, Stretch(captured, live, count, step))
        if len(self._starts) > MOST_STRETCHES:
            half = MOST_STRETCHES // 2
            self._is_thinned = True
            del self._starts[:half], self._stretches[:half]

    def __iter__(self) -> Iterator[Stretch]:
        """Yield stretches in the order of the captured log."""
        return iter(self._stretches)

    def __bool__(self) -> bool:
        return bool(self._stretches)

    @property
    def live_end(self) -> int:
        """Behind the last record on the target; there must be one."""
        return max(each.live_end for each in self._stretches)

    @property
    def newest(self) -> Stretch:
        """The stretch with the last record on the target; there must be one."""
        return max(self._stretches, key=lambda each: each.live_end)

    def live_at(self, captured: int) -> int | None:
        """Return where the record with a captured offset was appended; None where nobody did."""
        at = bisect_right(self._starts, captured) - 1
        if at < 0 or captured >= self._stretches[at].end:
            return None
        return self._stretches[at].live + captured - self._starts[at]

    def is_unwritten(self, start: int, end: int) -> bool:
        """
        Return whether the replay can not have appended any record of a captured range.

        Such lie between those that it appended, or where the log of the target has no room before:
        their writer was not captured, or left out.
        """
        if not self._starts or self.unsure:
            return False
        if end <= self._starts[0]:
            return self._stretches[0].live < self._starts[0] - start and not self._is_thinned
        if start < self._starts[0]:
            return False
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        return first == last and start >= self._stretches[first].end

    def faults(self) -> Iterator[Fault]:
        """Yield stretches that can't both be there, or not in this order."""
        for one, other in pairwise(self._stretches):
            if one.end > other.captured:
                continue  # the capture has the same twice
            # A write waits for those before it, so that an earlier step comes first in both logs.
            if other.live < one.live and one.step < other.step:
                captured = f"{other.captured}, behind {one.captured}"
                yield Fault(other.step, "base_offset", captured, "before it")
        by_live = sorted(self._stretches, key=lambda each: (each.live, each.captured))
        for one, other in pairwise(by_live):
            over = one.live_end - other.live
            if over > 0 and (one.end <= other.captured or other.end <= one.captured):
                later = max(one, other, key=lambda each: each.step)
                records = f"{min(over, later.records):,} records of its own"
                replayed = f"at offset {later.live} of the target, which others were given"
                yield Fault(later.step, "records", records, replayed)

    def extra(self) -> Iterator[Extra]:
        """Yield where the target has more between stretches than the captured log."""
        by_live = sorted(self._stretches, key=lambda each: (each.live, each.captured))
        for one, other in pairwise(by_live):
            expected = max(other.captured - one.end, 0)
            if other.live - one.live_end > expected:
                yield Extra(other, Range(one.live_end, other.live), expected)
