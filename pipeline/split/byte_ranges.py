"""
The units of reading: whole files, and byte ranges of large pcap files.

In a pcap file only the previous record marks the beginning of a record. The start of a range is
found by record sync, a chain of plausible headers, and proven by the end of the range before it:
where the two differ, the range is read again from the proven byte. Behind an unreadable place the
result of record sync is accepted: a failing disk or network affects only one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from dissector.capture.formats.pcap import HEADER_BYTES
from dissector.errors import Problem
from pipeline.split.collection import Collection, File
from pipeline.storage.filesystems import is_uri, working_folder

RANGE_BYTES = 128 << 20

UNKNOWN = -1
"""The beginning of a range without a recognised record."""

BEYOND = 1 << 62
"""The start of a range that is never reached, because its file is damaged before it."""

START_UNKNOWN = "the start of its packets is unknown: the bytes before them could not be read"
"""The problem of a range without a chain of headers and without a proven start."""


@dataclass(frozen=True, slots=True)
class Range:
    """
    A part of a collection that is read on its own.

    Attributes:
        number: Its position in the collection.
        path: The file, as given.
        start: The first byte to read; 0: the whole file is read, with its header.
        end: Records that begin before this byte belong to the range; None: up to the file's end.
        proven: Whether a record is known to begin at `start`.
        first_packet: The number of its first packet in the collection, once that is known.
        problem: The reason for unreadable bytes, and the first of them; None if it can.
        packets: Maximum number of packets read before that; None for no limit.
        reassembled: The segments of datagrams that its fragments complete, as a serialised shard;
            see `split_fragments`.
        clock_ns: The latest time of a segment before it, once that is known.
        folder: The driver's working folder, if the path is relative: workers have others.
        decode_as: Tunnels on other ports; as in `Options`.
        timezone: Zone of times without one in request logs.
        is_divisible: Whether reading can begin at any record of the file.
        time_slice: What is read in its place: files that overlap in time; None for a part of one
            file.
        joined: The files that are read in its place, as in one process; empty for a part of one.
        connections: Number of connections of which it has packets, if nothing else in it makes
            rows; -1: unknown.
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
    folder: str = ""
    decode_as: tuple[str, ...] = ()
    timezone: str = "UTC"
    is_divisible: bool = False
    time_slice: TimeSlice | None = None
    joined: tuple[str, ...] = ()
    connections: int = -1

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files, as given, in the order in which `TimeSlice` reads them."""
        if self.time_slice is None:
            return self.joined or (self.path,)
        return tuple(dict.fromkeys(each.byte_range.path for each in self.time_slice.members))

    @property
    def location(self) -> str:
        """The file, for any process."""
        return self.location_of(self.path)

    def location_of(self, path: str) -> str:
        """Return one of its files, for any process."""
        return str(Path(self.folder, path)) if self.folder and not is_uri(path) else path

    @property
    def is_empty(self) -> bool:
        """Whether no record can begin in it."""
        return self.start >= BEYOND or (self.end is not None and self.start >= self.end)

    @property
    def is_read(self) -> bool:
        """Whether records are looked for in it."""
        return not self.is_empty and self.packets != 0


@dataclass(frozen=True, slots=True)
class Member:
    """
    A part of a file in a slice.

    Attributes:
        byte_range: Its bytes, with some before the slice.
        clock_ns: The latest time of a packet of the file before them.
        first_ns: A time up to that of its first packet in the slice.
    """

    byte_range: Range
    clock_ns: int
    first_ns: int


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """
    The packets of some time, of files that overlap; see `time_slices`.

    The time of a packet is here the latest of its file up to it.

    Attributes:
        members: The parts of files, in the order of the files.
        begin_ns: Its first time.
        end_ns: The first time after it; None: it has all that follow.
    """

    members: tuple[Member, ...]
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class RangeScan:
    """
    Result of reading a range.

    Attributes:
        number: Number of the range.
        start: Byte at which its first record begins; `UNKNOWN` if none was found.
        end: Byte at which the next range's first record begins, or at which reading failed.
        packets: Number of its packets.
        damaged: Whether the file is unreadable at `end`, or damaged, or has the header of another
            file in the range.
        split_fragments: Its IP fragments of datagrams that cross ranges, serialised; see
            `split_fragments`.
        problem: Why reading must stop at `end` from now on, even if more becomes readable; empty:
            no reason.
        latest_ns: The latest time of a segment.
        times: The first and last time of a packet; None without any.
        reached_end: Whether the range was read up to the end of the file.
        marks: Places in the range by time, serialised; see `time_marks`.
        damaged_ns: The latest time of a packet some way before its first damage; None if undamaged.
        members: The scans of the members of a slice.
        connections: As in `Range`.
    """

    number: int
    start: int
    end: int
    packets: int
    damaged: bool
    split_fragments: bytes = b""
    problem: str = ""
    latest_ns: int = 0
    times: tuple[int, int] | None = None
    reached_end: bool = False
    marks: bytes = b""
    damaged_ns: int | None = None
    members: tuple[RangeScan, ...] = ()
    connections: int = -1

    @property
    def is_whole(self) -> bool:
        """Whether reading on, up to the end of the file, would add nothing."""
        return not self.damaged or bool(self.problem) or self.reached_end


def ranges_of(
    collection: Collection,
    range_bytes: int = RANGE_BYTES,
    decode_as: tuple[str, ...] = (),
    timezone: str = "UTC",
) -> list[Range]:
    """
    Divide a collection into ranges of about this many bytes.

    With a request log all files are one range: what a log makes of a connection depends on the logs
    before it, and its columns on the whole log.

    `decode_as` and `timezone` are as in `Options`.
    """
    ranges: list[Range] = []
    files = collection.files
    if any(file.is_log and not file.problem for file in files):
        joined = tuple(file.path for file in files if not file.problem)
        ranges.append(
            Range(
                *(0, joined[0]),
                folder=next(filter(None, map(working_folder, joined)), ""),
                decode_as=decode_as,
                timezone=timezone,
                joined=joined,
            )
        )
        files = tuple(file for file in files if file.problem)
    for file in files:
        folder = working_folder(file.path)
        for start, end in _bounds(file, max(range_bytes, HEADER_BYTES)):
            proven = start <= HEADER_BYTES
            each = Range(
                len(ranges),
                file.path,
                start,
                end,
                proven,
                folder=folder,
                decode_as=decode_as,
                timezone=timezone,
                is_divisible=file.divisible,
            )
            if file.problem:
                each = unreadable(each, Problem(file.problem, position=file.position))
            ranges.append(each)
    return ranges


def unreadable(byte_range: Range, problem: Problem) -> Range:
    """Return a range that is not read."""
    return replace(byte_range, problem=problem, packets=0)


def limited_to_scan(byte_range: Range, scan: RangeScan) -> Range:
    """Return a range limited to the bytes read when its packets were counted."""
    if byte_range.time_slice is not None:
        both = zip(byte_range.time_slice.members, scan.members, strict=True)
        members = tuple(
            replace(member, byte_range=limited_to_scan(member.byte_range, each))
            for member, each in both
        )
        return replace(byte_range, time_slice=replace(byte_range.time_slice, members=members))
    if not scan.problem:
        return byte_range
    position = None if scan.end == UNKNOWN else scan.end
    return replace(
        byte_range, problem=Problem(scan.problem, position=position), packets=scan.packets
    )


def _bounds(file: File, range_bytes: int) -> Iterator[tuple[int, int | None]]:
    if not file.divisible or file.size <= range_bytes:
        yield 0, None
        return
    starts = [HEADER_BYTES, *range(range_bytes, file.size, range_bytes)]
    starts = sorted(set(starts))
    yield from zip(starts, [*starts[1:], None], strict=True)


def misplaced(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """
    Return the ranges to read again, with proven starts.

    They did not begin at the end of their predecessor, or are damaged and reach to the end of the
    file. They must be scanned again; then this function is called again, until it returns none.

    Args:
        ranges: All ranges of the collection.
        scans: The scan of each range, by number.
    """
    return [
        each
        for each in _chain(ranges, scans)
        if each.is_read
        and (
            scans[each.number].start != each.start
            or (each.end is None and not scans[each.number].is_whole)
        )
    ]


def placed_ranges(ranges: Sequence[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """Return all ranges with their starts and the numbers of their first packets."""
    return numbered_ranges(_chain(ranges, scans), scans)


def numbered_ranges(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """Return ranges with proven starts with the numbers of their first packets."""
    out: list[Range] = []
    packets = 0
    for each in ranges:
        placed = replace(each, first_packet=packets)
        if each.is_read:
            placed = replace(
                limited_to_scan(placed, scans[each.number]),
                connections=scans[each.number].connections,
            )
            packets += scans[each.number].packets
        out.append(placed)
    return out


def _chain(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> Iterator[Range]:
    """Yield the ranges, each from the proven end of its predecessor."""
    for _, of_file in groupby(ranges, lambda each: each.path):
        start: int | None = None
        for each in of_file:
            scan = scans[each.number]
            if start is None:
                placed = _without_predecessor(each, scan)
            else:
                placed = replace(each, start=start, proven=True)
            if scan.damaged and not scan.problem and placed.start == scan.start:
                placed = replace(placed, end=None)
            yield placed
            if placed.is_empty:
                start = placed.start
            elif placed.problem or scan.problem:
                start = None
            else:
                # The range with the damage includes the rest of the file.
                start = BEYOND if scan.damaged else scan.end


def _without_predecessor(byte_range: Range, scan: RangeScan) -> Range:
    """Return a range without a start proven by its predecessor: its own scan is accepted."""
    if byte_range.proven:
        return byte_range
    if scan.start == UNKNOWN:
        return unreadable(
            byte_range, Problem(scan.problem or START_UNKNOWN, position=byte_range.start)
        )
    return replace(byte_range, start=scan.start, proven=True)
