"""Reads a slice: its members, merged by the same means as the files of one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import groupby

import numpy as np

from dissector.capture.columns import Packets
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.formats.conversions import Converted
from dissector.capture.formats.file_merge import FileMerge, part_of_window
from dissector.capture.formats.file_order import FileBegin
from pipeline.split.byte_ranges import Member, Range, RangeScan, TimeSlice
from pipeline.split.range_reader import RangeReader


class SliceReader:
    """
    Reads one slice of several files; as `RangeReader`.

    Attributes:
        scan: Result of reading the slice, after all windows were yielded.
        logs: None: a request log is read alone.
    """

    def __init__(self, byte_range: Range, window_bytes: int = WINDOW_BYTES) -> None:
        assert byte_range.time_slice is not None
        self._slice: TimeSlice = byte_range.time_slice
        self._first_packet = byte_range.first_packet
        self._window_bytes = window_bytes
        self.scan = RangeScan(byte_range.number, 0, 0, 0, damaged=False)
        numbered = list(enumerate(self._slice.members))
        self._files = [
            list(of_file) for _, of_file in groupby(numbered, lambda each: each[1].byte_range.path)
        ]
        self._readers: dict[int, RangeReader] = {}
        self.logs: dict[str, Converted] = {}

    @property
    def unread_files(self) -> dict[str, str]:
        """Files of which no packet could be read, with the reasons."""
        found = {}
        for of_file in self._files:
            said = [self._readers[number].unread for number, _ in of_file]
            if all(said):
                found[of_file[0][1].byte_range.path] = said[0]
        return found

    def windows(self) -> Generator[Packets, None, None]:
        """
        Yield the packets of the slice, in the order of their times.

        Raises:
            ReadError: A file can't be read now, and Spark will retry the task.
        """
        begins = [
            FileBegin(number, of_file[0][1].first_ns) for number, of_file in enumerate(self._files)
        ]
        packets = 0
        with closing(FileMerge(begins, self._windows_of).windows()) as windows:
            for window in windows:
                window.first = self._first_packet + packets
                packets += len(window)
                yield window
                del window
        scans = tuple(
            self._readers[number].scan for of_file in self._files for number, _ in of_file
        )
        self.scan = replace(self.scan, packets=packets, members=scans)

    def _windows_of(self, file: int, merge: FileMerge) -> Generator[Packets, None, None]:
        """Yield the windows of a file, from one part of it to the next."""
        for number, member in self._files[file]:
            reader = RangeReader(member.byte_range, merge.window_bytes(self._window_bytes))
            self._readers[number] = reader
            with closing(reader.windows()) as windows:
                yield from _within(windows, file, member, self._slice)


def _within(
    windows: Iterator[Packets], file: int, member: Member, limits: TimeSlice
) -> Iterator[Packets]:
    """Yield the packets of a member in the slice."""
    before_ns = member.clock_ns
    for window in windows:
        if not len(window):
            yield window
            continue
        times = np.maximum.accumulate(np.maximum(window.time_ns, before_ns))
        before_ns = int(times[-1])
        first, end = int(np.searchsorted(times, limits.begin_ns)), len(window)
        if limits.end_ns is not None:
            end = int(np.searchsorted(times, limits.end_ns))
        is_last = end < len(window)
        if first < end:
            yield _of_file(part_of_window(window, first, end), file)
        del window, times
        if is_last:
            return


def _of_file(window: Packets, file: int) -> Packets:
    """Return a window as one of a file with this number."""
    return replace(window, path_index=file, file=np.full(len(window), file, np.int32))


def reader_of(byte_range: Range, window_bytes: int = WINDOW_BYTES) -> RangeReader | SliceReader:
    """Return the reader of a range or slice."""
    if byte_range.time_slice is None:
        return RangeReader(byte_range, window_bytes)
    return SliceReader(byte_range, window_bytes)
