"""A range becomes windows of packets, and tells where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from dissector.capture.columns import Packets
from dissector.capture.formats.capture_reader import WINDOW_BYTES, read_packets
from dissector.capture.formats.pcap import HEADER_BYTES, PcapReader, is_pcap
from dissector.errors import CaptureError, Problem, ReadError
from pipeline.split.byte_ranges import UNKNOWN, Range, RangeScan
from pipeline.split.record_sync import sync_to_record
from pipeline.storage.filesystems import FileSection, ReadablePrefix, open_file
from pipeline.storage.task_attempts import will_be_retried

_GUESS_BYTES = 1 << 20
"""How much of a range is looked at for its first record at a time."""

_ALL = 1 << 62
"""More packets than there are."""


class RangeReader:
    """
    Reads one range.

    Attributes:
        scan: How it was found to be, once all windows were given.
    """

    def __init__(self, each: Range, window_bytes: int = WINDOW_BYTES) -> None:
        self._range = each
        self._window_bytes = window_bytes
        start = each.start if each.proven else UNKNOWN
        self.scan = RangeScan(each.number, start, each.end or 0, 0, damaged=False)

    def windows(self) -> Iterator[Packets]:
        """
        Yield the packets of the range; what can't be read is told as a problem.

        Raises:
            ReadError: A file can't be read now, and Spark will try again.
        """
        each = self._range
        if each.is_empty:
            return
        try:
            yield from self._counted()
            if each.problem:
                raise CaptureError(each.path, each.problem.what, each.problem.position)
        except CaptureError as error:
            if isinstance(error, ReadError):
                if will_be_retried():
                    raise
                stop = UNKNOWN if error.position is None else error.position
                self.scan = replace(self.scan, problem=error.what, end=stop)
            self.scan = replace(self.scan, damaged=True)
            yield _no_packets(each, self.scan.packets, Problem(error.what, position=error.position))

    def _counted(self) -> Iterator[Packets]:
        """Yield the packets that are to be read, also where there are more by now."""
        each = self._range
        left = _ALL if each.packets is None else each.packets
        if not left:
            return
        for window in self._whole() if each.start == 0 else self._section():
            count = min(len(window), left)
            left -= count
            problems = [(each.path, problem) for _, problem in window.problems]
            self.scan = replace(self.scan, packets=self.scan.packets + count)
            yield _first(window, count, problems)
            if not left:
                return
            del window

    def _whole(self) -> Iterator[Packets]:
        each = self._range
        with open_file(each.path) as file:
            yield from self._packets(file)

    def _packets(self, file: BinaryIO) -> Iterator[Packets]:
        """Yield all packets up to where the file can't be read."""
        readable = ReadablePrefix(file, is_last_try=not will_be_retried())
        windows = read_packets(["-"], window_bytes=self._window_bytes, stdin=readable)  # type: ignore[arg-type]
        try:
            for window in windows:
                problems = [] if readable.failure else window.problems
                first = window.first + self._range.first_packet
                yield replace(window, first=first, problems=problems)
                del window
        except CaptureError:
            if readable.failure is None:
                raise
        # It is no end that a capture has: it is not told as one.
        if readable.failure is not None:
            raise readable.failure

    def _section(self) -> Iterator[Packets]:
        """Yield the records that begin in the range."""
        each = self._range
        with open_file(each.path) as file:
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES or not is_pcap(header):
                raise CaptureError(each.path, "has changed while it was read")
            start = each.start if each.proven else _guessed(file, header, each)
        self.scan = replace(self.scan, start=start)
        if start == UNKNOWN:
            return
        record_bytes = PcapReader(header).needed_bytes
        at = start
        end = 1 << 62 if each.end is None else each.end
        with FileSection(each.path, header, start, each.end) as section:
            for window in self._packets(section):  # type: ignore[arg-type]
                begins = at + np.cumsum(window.captured + record_bytes)
                begins -= window.captured + record_bytes
                count = int(np.searchsorted(begins, end))
                mine, damaged = _mine(window.problems, start - HEADER_BYTES, end)
                past = count < len(window)
                at = int(begins[count]) if past else at + _bytes_of(window, record_bytes)
                self.scan = replace(self.scan, end=at, damaged=damaged)
                if count or mine:
                    yield _first(window, count, mine)
                if past or at >= end:
                    return
                del window


def _guessed(file: BinaryIO, header: bytes, each: Range) -> int:
    """Return where a range seems to begin, in what can be read of it."""
    readable = ReadablePrefix(file, is_last_try=not will_be_retried())
    start = sync_to_record(readable, header, each, _GUESS_BYTES)  # type: ignore[arg-type]
    if start == UNKNOWN and readable.failure is not None:
        raise readable.failure
    return start


def _bytes_of(window: Packets, record_bytes: int) -> int:
    return int(window.captured.sum()) + record_bytes * len(window)


def _mine(
    problems: list[tuple[str, Problem]], shift: int, end: int
) -> tuple[list[tuple[str, Problem]], bool]:
    """Return the problems before the end of the range, with their places in the file."""
    placed = [
        (name, replace(each, position=None if each.position is None else each.position + shift))
        for name, each in problems
    ]
    mine = [each for each in placed if each[1].position is None or each[1].position < end]
    return mine, bool(mine)


def _first(window: Packets, count: int, problems: list[tuple[str, Problem]]) -> Packets:
    """Return the first packets of a window."""
    return Packets(
        data=window.data,
        first=window.first,
        time_ns=window.time_ns[:count],
        start=window.start[:count],
        captured=window.captured[:count],
        original=window.original[:count],
        link=window.link[:count],
        file=window.file[:count],
        problems=problems,
    )


def _no_packets(each: Range, packets: int, problem: Problem) -> Packets:
    none, small = np.zeros(0, np.int64), np.zeros(0, np.int32)
    data = np.zeros(0, np.uint8)
    first = each.first_packet + packets
    problems = [(each.path, problem)]
    return Packets(data, first, none, none, none, none, small, small, problems)
