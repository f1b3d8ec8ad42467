"""
Slices: files that overlap in time are divided by time, all of them together.

A slice has the packets that all its files captured in some time, merged by the time of each. So it
is like a range of one file: packets are numbered in order from slice to slice, and the two sides
of a connection meet, whichever files hold them. The slices of some files take the numbers of the
files' ranges, which are no more read; there are never more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int64s, unique
from pipeline.split.byte_ranges import BEYOND, Member, Range, RangeScan, TimeSlice
from pipeline.split.time_marks import BEGINNING, POSITION, TIME, marks_of

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Part:
    """
    A range of a file, with its times.

    Attributes:
        byte_range: The range, with its proven start.
        marks: As in `time_marks`; their times include what the file has before the range.
        clock_ns: The latest time of a packet of the file before it.
        damaged_ns: As in `RangeScan`.
    """

    byte_range: Range
    marks: Int64s
    clock_ns: int
    damaged_ns: int | None

    @property
    def first_ns(self) -> int:
        """The time of its first packet."""
        return int(self.marks[0, TIME])

    @property
    def end_ns(self) -> int:
        """The time of its last packet."""
        return int(self.marks[-1, TIME])

    def member(self, begin_ns: int) -> Member:
        """Return what a slice reads that begins at a time."""
        each, first_ns = self.byte_range, max(self.first_ns, begin_ns)
        row = int(np.searchsorted(self.marks[:-1, TIME], begin_ns)) - 1
        if row < 1 or not each.is_divisible:
            return Member(each, self.clock_ns, first_ns)
        start, before, clock_ns = self.marks[row].tolist()
        packets = None if each.packets is None else each.packets - before
        return Member(replace(each, start=start, packets=packets), clock_ns, first_ns)


def with_slices(ranges: Sequence[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """
    Return ranges with slices in place of those of files that overlap in time.

    A slice must then be scanned; see `numbered_ranges`.

    Args:
        ranges: All ranges of a collection, with their proven starts.
        scans: The scan of each range, by number.
    """
    out = list(ranges)
    for files in _overlapping(_files(ranges, scans)):
        parts = [part for file in files for part in file]
        slots = sorted(part.byte_range.number for part in parts)
        for slot, time_slice in zip_longest(slots, _slices(parts)):
            if time_slice is None:
                out[slot] = replace(out[slot], start=BEYOND, end=None)
            else:
                first = time_slice.members[0].byte_range
                out[slot] = Range(
                    slot, first.path, decode_as=first.decode_as, time_slice=time_slice
                )
    return out


def slices_among(ranges: Iterable[Range]) -> list[Range]:
    """Return those ranges that are slices."""
    return [each for each in ranges if each.time_slice is not None]


def _files(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> Iterator[list[_Part]]:
    """Yield files with packets, as their ranges with packets."""
    for _, of_file in groupby(ranges, lambda each: each.path):
        parts: list[_Part] = []
        clock_ns = BEGINNING
        for each in of_file:
            scan = scans[each.number]
            if not each.is_read or not scan.packets:
                continue
            marks = marks_of(scan).copy()
            marks[:, TIME] = np.maximum(marks[:, TIME], clock_ns)
            damaged_ns = None if scan.damaged_ns is None else max(scan.damaged_ns, clock_ns)
            parts.append(_Part(each, marks, clock_ns, damaged_ns))
            clock_ns = parts[-1].end_ns
        if parts:
            yield parts


def _overlapping(files: Iterable[list[_Part]]) -> Iterator[list[list[_Part]]]:
    """Yield chains of files, each of which begins before the end of one before it."""
    group: list[list[_Part]] = []
    end_ns = BEGINNING
    for file in sorted(files, key=lambda parts: parts[0].first_ns):
        if group and file[0].first_ns >= end_ns:
            if len(group) > 1:
                yield group
            group = []
        group.append(file)
        end_ns = max(end_ns, file[-1].end_ns)
    if len(group) > 1:
        yield group


def _slices(parts: Sequence[_Part]) -> list[TimeSlice]:
    """Return the slices of files that overlap; `parts` are in the order of the files."""
    cuts = _cuts(parts)
    begins: list[int] = [BEGINNING, *cuts]
    ends: list[int | None] = [*cuts, None]
    members: list[list[Member]] = [[] for _ in begins]
    for part in parts:
        times = [part.first_ns, part.end_ns]
        first, last = np.searchsorted(cuts, times, side="right").tolist()
        for number in range(first, last + 1):
            members[number].append(part.member(begins[number]))
    return [
        TimeSlice(tuple(mine), begin_ns, end_ns)
        for mine, begin_ns, end_ns in zip(members, begins, ends, strict=True)
        if mine
    ]


def _cuts(parts: Sequence[_Part]) -> list[int]:
    """Return the times at which files are cut, for no more slices than they have ranges."""
    places = _Places.of(parts)
    target = places.bytes_before[-1] / len(parts)
    cuts: list[int] = []
    at = 0
    while len(cuts) < len(parts) - 1 and (found := places.next_cut(at, target)) is not None:
        cuts.append(int(places.times[found]))
        at = found
    return cuts


@dataclass(frozen=True, slots=True)
class _Places:
    """
    Where files may be cut.

    Of a file that can't be divided a slice reads all bytes from its beginning on: so it is cut
    where that is least, and only where it is no more than the slice before the cut. Behind damage
    a file is not cut: damage is reported once.

    Attributes:
        times: The times of the places, in order.
        bytes_before: Bytes before them in all files.
        read_again: Bytes before them in files that go on and can't be divided.
        is_allowed: Whether they are cut at all.
    """

    times: Int64s
    bytes_before: Floats
    read_again: Floats
    is_allowed: NDArray[np.bool_]

    @classmethod
    def of(cls, parts: Sequence[_Part]) -> _Places:
        """Return the places in files: the marks, and the ends of ranges."""
        begins = [each.marks[:-1, TIME] for each in parts]
        # The times of packets may be as wrong as the clock of a host.
        behind = np.minimum([each.end_ns for each in parts], np.iinfo(np.int64).max - 1) + 1
        times = unique(np.concatenate([*begins, behind]))
        whole = [each for each in parts if not each.byte_range.is_divisible]
        damaged = [each for each in parts if each.damaged_ns is not None]
        damage = np.array([each.damaged_ns for each in damaged], np.int64)
        is_damaged = _sums_before(times, damage) - _sums_before(times, _ends(damaged))
        begun = _bytes_before(times, whole)
        ended = _sums_before(times, _ends(whole), _sizes(whole))
        return cls(
            times,
            _bytes_before(times, parts),
            begun - ended,
            is_damaged == 0,
        )

    def next_cut(self, at: int, target: float) -> int | None:
        """Return the next place for a cut, about this many bytes further; None without."""
        bytes_before, total = self.bytes_before, self.bytes_before[-1]
        done = bytes_before[at]
        first = max(int(np.searchsorted(bytes_before, done + target)), at + 1)
        end = max(int(np.searchsorted(bytes_before, done + 2 * target, "right")), first + 1)
        while first < len(self.times):
            before, again = bytes_before[first:end], self.read_again[first:end]
            is_good = self.is_allowed[first:end] & (again <= before - done)
            is_good &= before <= total - target / 2
            if is_good.any():
                return first + int(np.argmin(np.where(is_good, again, np.inf)))
            first, end = end, end + 2 * (end - first)
        return None


def _ends(parts: Sequence[_Part]) -> Int64s:
    return np.array([each.end_ns for each in parts], np.int64)


def _sizes(parts: Sequence[_Part]) -> Floats:
    sizes = [each.marks[-1, POSITION] - each.marks[0, POSITION] for each in parts]
    return np.array(sizes, np.float64)


def _bytes_before(times: Int64s, parts: Sequence[_Part]) -> Floats:
    """Return the bytes of files before times, about as many in equal times between marks."""
    if not parts:
        return np.zeros(len(times))
    begins = np.concatenate([each.marks[:-1, TIME] for each in parts])
    ends = np.concatenate([each.marks[1:, TIME] for each in parts])
    sizes = np.concatenate([np.diff(each.marks[:, POSITION]) for each in parts])
    durations = ends.astype(np.float64) - begins
    rates: Floats = sizes / np.maximum(durations, 1)
    zero_ns = float(times[0])
    offsets: Floats = rates * (begins - zero_ns)
    found = _sums_before(times, ends, sizes.astype(np.float64))
    for at, sign in ((begins, 1), (ends, -1)):
        total: Floats = _sums_before(times, at, rates) * (times - zero_ns)
        found += sign * (total - _sums_before(times, at, offsets))
    # Wrong clocks give wrong sums, and so slices of unequal sizes.
    return np.maximum.accumulate(found)


def _sums_before(times: Int64s, at: Int64s, values: Floats | None = None) -> Floats:
    """Return the sum of the values, by default ones, at times before each of the times."""
    order = np.argsort(at)
    ordered = np.ones(len(at)) if values is None else values[order]
    sums: Floats = np.cumsum(np.concatenate([[0.0], ordered]))
    found: Floats = sums[np.searchsorted(at[order], times)]
    return found
