"""Places in a range by time: records at which reading may begin, some megabytes apart."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import Int64s, Packets
from dissector.capture.formats.pcap import HEADER_BYTES
from pipeline.split.byte_ranges import RangeScan

MARK_BYTES = 8 << 20
"""Distance of two marks, in bytes of the (decompressed) file."""

POSITION, BEFORE, TIME = range(3)
"""
Columns of marks: the byte at which a record begins, the number of packets in the range before it,
and the latest time of a packet of the range up to it. The last row is the end of the range.
"""

COLUMNS = 3

BEGINNING = -(1 << 63)
"""A time before all packets."""


class TimeMarks:
    """
    Notes places while a range is read.

    There are none behind damage, where a record may depend on what was read before it.

    Attributes:
        damaged_ns: As in `RangeScan`.
    """

    def __init__(self) -> None:
        self.damaged_ns: int | None = None
        self._rows: list[Int64s] = []
        self._record_bytes = 0
        self._step = -1
        self._end: Int64s = np.array([0, 0, BEGINNING], np.int64)

    def add(self, packets: Packets, start: int) -> None:
        """Take the next window of a range, whose first record begins at this byte."""
        is_broken = bool(packets.problems) or packets.break_position is not None
        if is_broken and self.damaged_ns is None:
            self.damaged_ns = int(self._end[TIME])
        if not len(packets):
            return
        before, time_ns = self._end[BEFORE], self._end[TIME]
        times = np.maximum.accumulate(np.maximum(packets.time_ns, time_ns))
        if not self._rows:
            self._record_bytes = packets.position(0) - (start or HEADER_BYTES)
        positions = packets.base + packets.start - self._record_bytes
        if self.damaged_ns is None or not self._rows:
            steps = positions // MARK_BYTES
            rows = np.flatnonzero(np.diff(steps, prepend=self._step) > 0)
            rows = rows if self.damaged_ns is None else rows[:1]
            self._step = int(steps[-1])
            self._rows.append(np.stack([positions[rows], before + rows, times[rows]], axis=1))
        end = positions[-1] + self._record_bytes + packets.captured[-1]
        self._end = np.array([end, before + len(packets), times[-1]], np.int64)

    def serialised(self) -> bytes:
        """Return the marks, for `RangeScan`."""
        return np.concatenate([*self._rows, self._end[np.newaxis]]).tobytes()


def marks_of(scan: RangeScan) -> Int64s:
    """Return the marks of a range with packets; the first is its first record."""
    return np.frombuffer(scan.marks, np.int64).reshape(-1, COLUMNS)
