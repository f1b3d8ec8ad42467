"""Merged ranges of the streams of connections."""

from __future__ import annotations

import numpy as np

from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints

_SIZE_BYTES = 4
_MERGED_FROM = 1 << 16
"""Number of ranges before adjacent ones are merged: usually they do."""

_CONNECTION, _SIDE, _START, _END = range(4)


class StreamRanges:
    """The ranges of chosen messages: connection, side, start and end in the stream."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self._count = 0
        self._limit = _MERGED_FROM

    def add(self, table: Exchanges) -> None:
        """Add the requests and responses of exchanges."""
        for frames, side in ((table.request, table.client), (table.response, 1 - table.client)):
            self.add_frames(table.connection, side.astype(np.int64), frames)
        if self._count > self._limit:
            merged = _merge(np.concatenate(self._parts, axis=1))
            self._parts, self._count = [merged], merged.shape[1]
            self._limit = max(_MERGED_FROM, 2 * self._count)

    def extend(self, other: StreamRanges) -> None:
        """Add the ranges of another."""
        self._parts += other._parts
        self._count += other._count

    def columns(self) -> Ints:
        """Return connections, sides, starts and ends of disjoint ranges, sorted."""
        return _merge(np.concatenate([np.zeros((4, 0), np.int64), *self._parts], axis=1))

    def add_frames(self, connection: Ints, side: Ints, frames: Frames) -> None:
        """Add the frames that some sides of connections have sent."""
        has_frame = frames.offset != NONE
        start = frames.offset[has_frame]
        end = start + _SIZE_BYTES + frames.size[has_frame]
        self._parts.append(np.stack((connection[has_frame], side[has_frame], start, end)))
        self._count += len(start)


def _merge(ranges: Ints) -> Ints:
    order = np.lexsort((ranges[_START], ranges[_SIDE], ranges[_CONNECTION]))
    ranges = ranges[:, order]
    if not ranges.shape[1]:
        return ranges
    same = (np.diff(ranges[_CONNECTION]) == 0) & (np.diff(ranges[_SIDE]) == 0)
    ends = ranges[_END].copy()
    # Frames of a stream do not overlap, so the end before is the furthest.
    is_first = np.append(True, ~same | (ranges[_START, 1:] > ends[:-1]))
    last = np.append(np.flatnonzero(is_first)[1:], len(ends)) - 1
    merged = ranges[:, is_first]
    merged[_END] = ends[last]
    return merged
