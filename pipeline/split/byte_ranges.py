"""
Which bytes of a collection are read together: whole files, and ranges of large pcap files.

Nothing in a pcap file says where a record begins, but for the record before it. Where a range
begins is guessed, by a chain of headers that can be believed, and proven by where the range before
it ended: where the two differ, the range is read again from the proven byte. Behind what could not
be read the guess is believed: a disk or a network that fails costs the range that it fails in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dissector.capture.formats.pcap import HEADER_BYTES
from dissector.errors import Problem
from pipeline.split.collection import Collection, File

RANGE_BYTES = 128 << 20

UNKNOWN = -1
"""The start of a range in which no record was found."""

BEYOND = 1 << 62
"""The start of a range that is never reached: its file is damaged before it."""

START_UNKNOWN = "where its packets begin is not known: what is before them could not be read"
"""What is told of a range in which no chain is found, and which nobody can prove."""


@dataclass(frozen=True, slots=True)
class Range:
    """
    A part of a collection that is read alone.

    Attributes:
        number: Its place in the collection.
        path: Of the file.
        start: The byte from which on it is read; 0: the whole file is read, header and all.
        end: The records that begin before this byte belong to it; None: all up to the file's end.
        proven: Whether a record is known to begin at `start`.
        first_packet: The number of its first packet in the collection, once that is known.
        problem: Why not all of it can be read, and from which byte on; None where it can.
        packets: How many are read before that; None: all that it has.
        reassembled: The segments that fragments from before it make whole in it, packed; see
            `split_fragments`.
        clock_ns: The latest time of a segment before it, once that is known.
    """

    number: int
    path: str
    start: int = 0
    end: int | None = None
    proven: bool = True
    first_packet: int = 0
    problem: Problem | None = None
    packets: int | None = None
    reassembled: bytes = b""
    clock_ns: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no record can begin in it."""
        return self.start >= BEYOND or (self.end is not None and self.start >= self.end)

    @property
    def is_read(self) -> bool:
        """Whether records are looked for in it."""
        return not self.is_empty and self.packets != 0


@dataclass(frozen=True, slots=True)
class RangeScan:
    """
    How a range was found to be when it was read.

    Attributes:
        number: Of the range.
        start: The byte at which its first record begins; `UNKNOWN` where none was found.
        end: The byte at which the first record behind it begins, or at which reading failed.
        packets: How many it has.
        damaged: Whether the file can't be read further.
        split_fragments: The fragments of which others lie elsewhere, packed; see `split_fragments`.
        problem: Why no more of it is to be read, also where it could be later; empty: all is.
        latest_ns: The latest time of a segment.
    """

    number: int
    start: int
    end: int
    packets: int
    damaged: bool
    split_fragments: bytes = b""
    problem: str = ""
    latest_ns: int = 0


def ranges_of(collection: Collection, range_bytes: int = RANGE_BYTES) -> list[Range]:
    """Divide a collection into ranges of about so many bytes."""
    ranges: list[Range] = []
    for file in collection.files:
        for start, end in _bounds(file, max(range_bytes, HEADER_BYTES)):
            proven = start <= HEADER_BYTES
            each = Range(len(ranges), file.path, start, end, proven)
            ranges.append(unreadable(each, Problem(file.problem)) if file.problem else each)
    return ranges


def unreadable(each: Range, problem: Problem) -> Range:
    """Return a range of which nothing is read."""
    return replace(each, problem=problem, packets=0)


def limited_to_scan(each: Range, found: RangeScan) -> Range:
    """Return a range of which no more is read than what was found when its packets were counted."""
    if not found.problem:
        return each
    position = None if found.end == UNKNOWN else found.end
    return replace(each, problem=Problem(found.problem, position=position), packets=found.packets)


def _bounds(file: File, range_bytes: int) -> Iterator[tuple[int, int | None]]:
    if not file.divisible or file.size <= range_bytes:
        yield 0, None
        return
    starts = [HEADER_BYTES, *range(range_bytes, file.size, range_bytes)]
    starts = sorted(set(starts))
    yield from zip(starts, [*starts[1:], None], strict=True)


def misplaced(ranges: Iterable[Range], seen: Mapping[int, RangeScan]) -> list[Range]:
    """
    Return the ranges that did not begin where the ones before them ended, with their proven starts.

    They are to be read again; then this is to be asked again, until nothing is left.

    Args:
        ranges: All ranges of the collection.
        seen: How each was found to be, by number.
    """
    return [
        each
        for each in _placed(ranges, seen)
        if each.is_read and seen[each.number].start != each.start
    ]


def placed_ranges(ranges: Sequence[Range], seen: Mapping[int, RangeScan]) -> list[Range]:
    """Return all ranges with their starts and the numbers of their first packets."""
    out: list[Range] = []
    packets = 0
    for each in _placed(ranges, seen):
        placed = replace(each, first_packet=packets)
        if each.is_read:
            placed = limited_to_scan(placed, seen[each.number])
            packets += seen[each.number].packets
        out.append(placed)
    return out


def _placed(ranges: Iterable[Range], seen: Mapping[int, RangeScan]) -> Iterator[Range]:
    """Yield the ranges, each from where the one before it was found to end."""
    for _, of_file in groupby(ranges, lambda each: each.path):
        start: int | None = None
        for each in of_file:
            found = seen[each.number]
            if start is None:
                placed = _by_itself(each, found)
            else:
                placed = replace(each, start=start, proven=True)
            yield placed
            if placed.is_empty:
                start = placed.start
            elif placed.problem or found.problem:
                start = None
            else:
                # What is behind damage is never read.
                start = BEYOND if found.damaged else found.end


def _by_itself(each: Range, found: RangeScan) -> Range:
    """Return a range before which nothing is known: it is believed to begin where it seems to."""
    if each.proven:
        return each
    if found.start == UNKNOWN:
        return unreadable(each, Problem(found.problem or START_UNKNOWN, position=each.start))
    return replace(each, start=found.start, proven=True)
