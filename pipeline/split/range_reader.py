"""Reads a range as windows of packets, and records where it ended."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from socket import gethostname
from typing import BinaryIO

import numpy as np

from dissector.capture.columns import Packets
from dissector.capture.formats.capture_reader import WINDOW_BYTES, read_packets
from dissector.capture.formats.conversions import Conversions, Converted
from dissector.capture.formats.inputs import BytesInput, Input
from dissector.capture.formats.pcap import HEADER_BYTES, PcapReader, is_pcap
from dissector.errors import CaptureError, Problem, ReadError
from pipeline.split.byte_ranges import UNKNOWN, Range, RangeScan
from pipeline.split.record_sync import sync_to_record
from pipeline.storage.filesystems import FileSection, ReadablePrefix, open_file
from pipeline.storage.stored_file import StoredFile, failure_of
from pipeline.storage.task_attempts import will_be_retried

_SYNC_BYTES = 1 << 20
"""Bytes per step of the search for the first record of a range."""

EMPTY_PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
"""A capture without packets."""

_NO_LIMIT = 1 << 62
"""More than any number of packets."""


class RangeReader:
    """
    Reads one range.

    Attributes:
        scan: Result of reading the range, after all windows were yielded.
        logs: The request logs by their names, from the first window on.
        unread: Why none of its packets could be read, with the name of a file; empty if any was.
    """

    def __init__(self, byte_range: Range, window_bytes: int = WINDOW_BYTES) -> None:
        self._range = byte_range
        self._window_bytes = window_bytes
        start = byte_range.start if byte_range.proven else UNKNOWN
        self.scan = RangeScan(
            byte_range.number,
            start,
            byte_range.end or 0,
            0,
            damaged=False,
            reached_end=byte_range.end is None,
        )
        self.logs: dict[str, Converted] = {}
        self.unread = ""
        self._unread_joined: dict[str, str] = {}

    @property
    def unread_files(self) -> dict[str, str]:
        """The files with `unread`, if none of its packets could be read."""
        unread = dict.fromkeys(self._range.paths, self.unread) if self.unread else {}
        return unread | self._unread_joined

    def windows(self) -> Generator[Packets, None, None]:
        """
        Yield the packets of the range; unreadable bytes are reported as a problem.

        Raises:
            ReadError: A file can't be read now, and Spark will retry the task.
        """
        byte_range = self._range
        if byte_range.is_empty:
            return
        try:
            yield from self._limited_windows()
            if byte_range.problem:
                raise CaptureError(
                    byte_range.path, byte_range.problem.what, byte_range.problem.position
                )
        except CaptureError as error:
            if isinstance(error, ReadError):
                if will_be_retried():
                    raise
                stop = UNKNOWN if error.position is None else error.position
                self.scan = replace(self.scan, problem=error.what, end=stop)
            self.scan = replace(self.scan, damaged=True)
            path = error.file if error.file in byte_range.joined else byte_range.path
            if not self.scan.packets:
                where = "" if byte_range.problem else f" (on {gethostname()})"
                self.unread = f"{CaptureError(path, error.what, error.position)}{where}"
            problem = Problem(error.what, position=error.position)
            yield _problem_window(path, byte_range.first_packet + self.scan.packets, problem)

    def _limited_windows(self) -> Iterator[Packets]:
        """Yield the packets up to the counted number, even if more are readable by now."""
        byte_range = self._range
        remaining = _NO_LIMIT if byte_range.packets is None else byte_range.packets
        if not remaining:
            return
        if byte_range.joined:
            windows = self._joined()
        else:
            windows = self._whole() if byte_range.start == 0 else self._section()
        for window in windows:
            count = min(len(window), remaining)
            remaining -= count
            problems = window.problems
            if not byte_range.joined:
                problems = [(byte_range.path, problem) for _, problem in problems]
            self.scan = replace(self.scan, packets=self.scan.packets + count)
            yield _first_packets(window, count, problems)
            if not remaining:
                return
            del window

    def _joined(self) -> Iterator[Packets]:
        """Yield the packets of all files, in the order of one process."""
        byte_range, lost = self._range, dict[str, CaptureError]()
        files: dict[str, Input] = {
            path: StoredFile(path, byte_range.location_of(path)) for path in byte_range.joined
        }
        while True:
            try:
                for window in self._windows_of(files, lost):
                    yield window
                    del window
                break
            except CaptureError as error:
                # Raised before the first window.
                if error.file in lost or error.file not in files:
                    raise
                lost[error.file] = each = failure_of(files[error.file]) or error
                self._unread_joined[error.file] = f"{each} (on {gethostname()})"
                files[error.file] = BytesInput(EMPTY_PCAP)
        for path, each in lost.items():
            if isinstance(each, ReadError) and will_be_retried():
                raise each
            problem = Problem(each.what, position=each.position)
            yield _problem_window(path, byte_range.first_packet + self.scan.packets, problem)

    def _windows_of(
        self, files: Mapping[str, Input], lost: dict[str, CaptureError]
    ) -> Iterator[Packets]:
        """Yield the windows of files; add those that were not read to their ends."""
        conversions = Conversions(self._range.timezone)
        for window in read_packets(
            list(files), window_bytes=self._window_bytes, inputs=files, conversions=conversions
        ):
            self.logs.update(conversions.found)
            # As in `_readable_windows`.
            problems = [each for each in window.problems if failure_of(files[each[0]]) is None]
            first = window.first + self._range.first_packet
            yield replace(window, first=first, problems=problems)
            del window
        for path, file in files.items():
            failure = failure_of(file)
            if failure is not None:
                lost[path] = failure

    def _whole(self) -> Iterator[Packets]:
        each = self._range
        with open_file(each.location) as file:
            yield from self._readable_windows(file)

    def _readable_windows(self, file: BinaryIO) -> Iterator[Packets]:
        """Yield all packets before the first unreadable byte."""
        readable = ReadablePrefix(file, is_last_try=not will_be_retried())
        windows = read_packets(
            ["-"],
            window_bytes=self._window_bytes,
            stdin=readable,  # type: ignore[arg-type]
        )
        try:
            for window in windows:
                problems = [] if readable.failure else window.problems
                first = window.first + self._range.first_packet
                base = window.base + max(self.scan.start - HEADER_BYTES, 0)
                yield replace(window, first=first, base=base, problems=problems)
                del window
        except CaptureError:
            if readable.failure is None:
                raise
        # The unreadable place is not the end of the capture, so that problem is not reported.
        if readable.failure is not None:
            raise readable.failure

    def _section(self) -> Iterator[Packets]:
        """Yield the records that begin in the range."""
        byte_range = self._range
        with open_file(byte_range.location) as file:
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES or not is_pcap(header):
                raise CaptureError(byte_range.path, "has changed while it was read")
            start = (
                byte_range.start if byte_range.proven else _synced_start(file, header, byte_range)
            )
        self.scan = replace(self.scan, start=start)
        if start == UNKNOWN:
            return
        record_bytes = PcapReader(header).needed_bytes
        at = start
        end = 1 << 62 if byte_range.end is None else byte_range.end
        with FileSection(byte_range.location, header, start, byte_range.end) as section:
            for window in self._readable_windows(section):  # type: ignore[arg-type]
                starts = at + np.cumsum(window.captured + record_bytes)
                starts -= window.captured + record_bytes
                count = int(np.searchsorted(starts, end))
                shift = start - HEADER_BYTES
                problems = _problems_before(window.problems, shift, end)
                is_broken = window.break_position is not None
                damaged = is_broken and int(window.break_position or 0) + shift < end
                # No other range has the record that the end of the file cuts off.
                damaged |= bool(problems)
                is_past_end = count < len(window)
                at = (
                    int(starts[count]) if is_past_end else at + _records_bytes(window, record_bytes)
                )
                self.scan = replace(self.scan, end=at, damaged=self.scan.damaged or damaged)
                if not damaged:
                    window.break_position = None  # of a later range
                if count or problems:
                    yield _first_packets(window, count, problems)
                if is_past_end or at >= end or (damaged and byte_range.end is not None):
                    return  # a damaged range is read again, up to the end of the file
                del window


def _synced_start(file: BinaryIO, header: bytes, byte_range: Range) -> int:
    """Return where record sync finds the start of a range, in its readable part."""
    readable = ReadablePrefix(file, is_last_try=not will_be_retried())
    start = sync_to_record(readable, header, byte_range, _SYNC_BYTES)  # type: ignore[arg-type]
    if start == UNKNOWN and readable.failure is not None:
        raise readable.failure
    return start


def _records_bytes(window: Packets, record_bytes: int) -> int:
    return int(window.captured.sum()) + record_bytes * len(window)


def _problems_before(
    problems: list[tuple[str, Problem]], shift: int, end: int
) -> list[tuple[str, Problem]]:
    """Return the problems before the end of the range, with their positions in the file."""
    placed = [
        (name, replace(each, position=None if each.position is None else each.position + shift))
        for name, each in problems
    ]
    return [each for each in placed if each[1].position is None or each[1].position < end]


def _first_packets(window: Packets, count: int, problems: list[tuple[str, Problem]]) -> Packets:
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
        path_index=window.path_index,
        base=window.base,
        break_position=window.break_position,
    )


def _problem_window(path: str, first: int, problem: Problem) -> Packets:
    none, small = np.zeros(0, np.int64), np.zeros(0, np.int32)
    data = np.zeros(0, np.uint8)
    return Packets(data, first, none, none, none, none, small, small, [(path, problem)])
