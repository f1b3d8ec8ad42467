"""Records that the target acknowledged for a partition, balanced against the captured log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from replay.model.offset_ranges import Range

MAX_STRETCHES = 1 << 16
"""Limit for a partition; beyond it, the older half is dropped."""

MAX_OFFSET = (1 << 63) - 1


class Stretch(NamedTuple):
    """
    Records that requests appended contiguously on both sides.

    Attributes:
        captured: Captured offset of the first record.
        live: Its offset on the target.
        records: The number of records.
        step: The step that appended the first record.
    """

    captured: int
    live: int
    records: int
    step: int

    @property
    def end(self) -> int:
        """The offset after the last captured one."""
        return self.captured + self.records

    @property
    def live_end(self) -> int:
        """The offset after the last one on the target."""
        return self.live + self.records


class Fault(NamedTuple):
    """
    A contradiction to a log that retains acknowledged records.

    Attributes:
        step: The step at which the fault is detected.
        field: The field of the response or of the request.
        captured: The captured side, as text.
        replayed: The side of the target, as text.
    """

    step: int
    field: str
    captured: str
    replayed: str


class ExcessRange(NamedTuple):
    """
    More offsets between records than in the capture.

    Transaction markers may be among them, as the time of their writing varies.

    Attributes:
        stretch: The reported stretch of the excess: the one after it, or the newest.
        live: The offsets on the target.
        expected: The number of offsets in the captured log there.
    """

    stretch: Stretch
    live: Range
    expected: int


class UnconfirmedRecords:
    """
    Records that may have been appended, as an allowance for extra ones in a log.

    Args:
        below: An offset of the target, and the number of records that may lie below it; ascending.
    """

    def __init__(self, below: list[tuple[int, int]]) -> None:
        self._below = below

    def __bool__(self) -> bool:
        return any(count for _, count in self._below)

    @property
    def total(self) -> int:
        """Number of these records."""
        return sum(count for _, count in self._below)

    def take(self, live: Range, count: int) -> int:
        """Use the allowance for extra records in a range; return the number it does not explain."""
        for at, (limit, allowed) in enumerate(self._below):
            if live.end <= limit:
                used = min(allowed, count)
                self._below[at] = limit, allowed - used
                count -= used
        return count


class AppendedRecords:
    """The records of one partition that Produce responses of the replay acknowledged."""

    def __init__(self) -> None:
        self._unconfirmed: dict[int, int] = {}
        self._unconfirmed_below: list[tuple[int, int]] = []
        self._is_thinned = False
        self._starts: list[int] = []
        self._stretches: list[Stretch] = []

    def add(self, captured: int, live: int, count: int, step: int) -> None:
        """Add records that a step appended, by their first captured and live offsets."""
        if count <= 0:
            return
        if step in self._unconfirmed:
            # A retry follows the response to the attempt before it, so in the log too.
            self._unconfirmed_below.append((live, self._unconfirmed.pop(step)))
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
        if len(self._starts) > MAX_STRETCHES:
            half = MAX_STRETCHES // 2
            self._is_thinned = True
            del self._starts[:half], self._stretches[:half]

    def add_unconfirmed(self, count: int, step: int) -> None:
        """Add records a step may have appended, as its response lacks their offsets."""
        if count > 0:
            self._unconfirmed[step] = self._unconfirmed.get(step, 0) + count

    @property
    def unconfirmed(self) -> UnconfirmedRecords:
        """Possibly appended records, and the target offset after them."""
        anywhere = sum(self._unconfirmed.values())
        return UnconfirmedRecords([*sorted(self._unconfirmed_below), (MAX_OFFSET, anywhere)])

    def __iter__(self) -> Iterator[Stretch]:
        """Return the stretches in the order of the captured log."""
        return iter(self._stretches)

    def __bool__(self) -> bool:
        return bool(self._stretches)

    @property
    def live_end(self) -> int:
        """The offset after the last record on the target; there must be one."""
        return max(each.live_end for each in self._stretches)

    @property
    def live_start(self) -> int:
        """The first offset of a record on the target; there must be one."""
        return min(each.live for each in self._stretches)

    @property
    def newest(self) -> Stretch:
        """The stretch with the last record on the target; there must be one."""
        return max(self._stretches, key=lambda each: each.live_end)

    def live_at(self, captured: int) -> int | None:
        """Return the live offset for a captured offset; None if the replay did not append it."""
        at = bisect_right(self._starts, captured) - 1
        if at < 0 or captured >= self._stretches[at].end:
            return None
        return self._stretches[at].live + captured - self._starts[at]

    def is_unwritten(self, start: int, end: int) -> bool:
        """
        Return whether the replay can't have appended any record of a captured range.

        Such a range lies between appended records, or before them where the log of the target has
        no room: its producer was not captured, or left out. An attempt before a retry that was
        acknowledged wrote the records of the retry, whose captured offsets are known.
        """
        if not self._starts or self._unconfirmed:
            return False
        if end <= self._starts[0]:
            return self._stretches[0].live < self._starts[0] - start and not self._is_thinned
        if start < self._starts[0]:
            return False
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        return first == last and start >= self._stretches[first].end

    def faults(self) -> Iterator[Fault]:
        """Yield stretches that overlap on the target or are in the wrong order."""
        for one, other in pairwise(self._stretches):
            if one.end > other.captured:
                continue  # the capture has the same records twice
            # A write waits for earlier ones, so an earlier step comes first in both logs.
            if other.live < one.live and one.step < other.step:
                captured = f"{other.captured}, after {one.captured}"
                yield Fault(other.step, "base_offset", captured, "before it")
        by_live = sorted(self._stretches, key=lambda each: (each.live, each.captured))
        for one, other in pairwise(by_live):
            over = one.live_end - other.live
            if over > 0 and (one.end <= other.captured or other.end <= one.captured):
                later = max(one, other, key=lambda each: each.step)
                records = f"{min(over, later.records):,} records of its own"
                replayed = f"at offset {later.live} of the target, assigned to other records too"
                yield Fault(later.step, "records", records, replayed)

    def excess(self) -> Iterator[ExcessRange]:
        """Yield the gaps between stretches that are larger on the target than in the capture."""
        by_live = sorted(self._stretches, key=lambda each: (each.live, each.captured))
        for one, other in pairwise(by_live):
            expected = max(other.captured - one.end, 0)
            if other.live - one.live_end > expected:
                yield ExcessRange(other, Range(one.live_end, other.live), expected)
