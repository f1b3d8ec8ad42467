"""The segments that wait behind holes, in arrays; and as objects of materialised connections."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.tcp.both_paths.tcp_rows import (
    CARRY_OVER_BASE,
    RELEASED,
    ConnectionRow,
    Counts,
    StateArrays,
    WaitingSegment,
    WaitRow,
)
from dissector.capture.tcp.fast_path.waiting_kernel import MAX_PARTS
from dissector.capture.tcp.fast_path.waiting_lists import (
    add_segment,
    free_wait,
    new_wait,
    predecessor,
    remove_first,
)
from dissector.capture.tcp.objects.chunk_builder import ReorderState
from dissector.capture.tcp.objects.reorder_buffer import ReorderBuffer, SegmentBytes
from dissector.capture.tcp.objects.stream_reassembler import Stream
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import RowArray, Rows, dtype_of, row_of, rows_of

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


@Kernel
def move_segments(
    waiting: Rows[WaitingSegment], order: I64, data: U8, carried: U8, target: U8, at: int
) -> int:
    """
    Copy bytes of waiting segments to the carry-over buffer; return the end of the last one.

    Args:
        waiting: All segments.
        order: Those to copy. `target` may be `carried` if they are ordered by position, and none is
            before `at`.
        data: The bytes of the window.
        carried: Bytes of earlier windows.
        target: Receives the bytes.
        at: Where in it.
    """
    for i in range(len(order)):
        segment = waiting[order[i]]
        if segment.start < CARRY_OVER_BASE:
            copy_bytes(target, at, data, segment.start, segment.captured)
        else:
            start = segment.start - CARRY_OVER_BASE
            copy_bytes(target, at, carried, start, segment.captured)
        segment.start = CARRY_OVER_BASE + at
        at += segment.captured
    return at


class WaitingTable:
    """
    Waiting data of connections that are not materialised.

    Attributes:
        waits: A `WaitRow` for each connection with waiting segments.
        waiting: A row for each waiting segment; there is room for more in both.
        carried: Bytes of segments of earlier windows.
    """

    def __init__(self, counts: RowArray) -> None:
        self._counts = counts
        self.waits: RowArray = np.zeros(2, dtype_of(WaitRow))
        self.waiting: RowArray = np.zeros(2 * MAX_PARTS, dtype_of(WaitingSegment))
        self.carried: Bytes = _NO_BYTES
        counts["waits_used"], counts["free_segment"] = 1, -1
        counts["segments_used"] = RELEASED + 1

    def __getstate__(self) -> dict[str, Any]:
        counts = row_of(self._counts, Counts)
        return {
            **self.__dict__,
            "waits": self.waits[: counts.waits_used + 1],
            "waiting": self.waiting[: counts.segments_used + MAX_PARTS],
            "carried": self.carried[: counts.waiting_carried_bytes + 1],
        }

    def reserve(self, segments: int = MAX_PARTS) -> None:
        """Make room for segments of a connection; by default for all that one may add."""
        if self._counts["waits_used"] == len(self.waits):
            self.waits = _with_rows(self.waits, 2 * len(self.waits))
        if self._counts["segments_live"] + segments >= len(self.waiting):
            self.waiting = _with_rows(self.waiting, 2 * len(self.waiting) + segments)

    def carry(self, data: Bytes) -> None:
        """Keep the bytes of the waiting segments, as their window ends."""
        counts = row_of(self._counts, Counts)
        if not counts.segments_live:
            counts.waiting_carried_bytes = 0
            self.carried = _NO_BYTES
            return
        used = self.waiting[: counts.segments_used]
        start, captured = used["start"], used["captured"]
        new = np.flatnonzero((captured > 0) & (start < CARRY_OVER_BASE))
        added, at = int(captured[new].sum()), counts.waiting_carried_bytes
        if at + added > len(self.carried):
            old = np.flatnonzero((captured > 0) & (start >= CARRY_OVER_BASE))
            total = added + int(captured[old].sum())
            target = self.carried
            if total > len(target):
                target = np.empty(total + total // 4, np.uint8)
            old = old[np.argsort(start[old])]
            at = move_segments(self.waiting, old, data, self.carried, target, 0)
            self.carried = target
        counts.waiting_carried_bytes = move_segments(
            self.waiting, new, data, self.carried, self.carried, at
        )

    def load(self, wait: int, reorder: ReorderState, streams: tuple[Stream, Stream]) -> None:
        """Convert waiting data to objects of streams; the rows stay unchanged."""
        segments = rows_of(self.waiting, WaitingSegment)
        sides = rows_of(self.waits, WaitRow)[wait].sides
        for side, stream in enumerate(streams):
            at = sides[side].oldest
            if at < 0:
                continue
            buffer = ReorderBuffer()
            while at >= 0:
                buffer.add(self._segment(segments[at]), segments[at].covered_ns)
                at = segments[at].later
            stream.restore_waiting(buffer)
        reorder.emitted = sides[0].barrier, sides[1].barrier

    def store(
        self,
        state: StateArrays,
        connection: ConnectionRow,
        reorder: ReorderState,
        streams: tuple[Stream, Stream],
    ) -> None:
        """Convert waiting data of streams to rows; the total of bytes stays unchanged."""
        total = state.counts.total_bytes
        wait = state.waits[new_wait(state, connection)]
        for side, stream in enumerate(streams):
            waiting, row = wait.sides[side], connection.streams[side]
            if stream.buffer is not None:
                covered_ns = stream.buffer.covered_ns()
                for segment in stream.buffer.arrivals():
                    before = predecessor(state, waiting, segment.seq)
                    at = add_segment(state, row, waiting, before, segment.seq, segment.end)
                    added = state.waiting[at]
                    added.captured = segment.captured
                    added.packet = segment.packet
                    added.time_ns = segment.time_ns
                    added.start = self._start(segment)
                    added.covered_ns = covered_ns.get(segment.seq, added.covered_ns)
            waiting.barrier = reorder.emitted[side]
        state.counts.total_bytes = total

    def remove(self, state: StateArrays, connection: ConnectionRow) -> None:
        """Drop waiting data of a connection; the total of bytes stays unchanged."""
        total = state.counts.total_bytes
        for side in (0, 1):
            waiting = state.waits[connection.waits].sides[side]
            while waiting.first >= 0:
                remove_first(state, waiting)
        free_wait(state, connection)
        state.counts.total_bytes = total

    def _segment(self, row: WaitingSegment) -> SegmentBytes:
        start, copied = row.start, None
        if start >= CARRY_OVER_BASE:
            start -= CARRY_OVER_BASE
            copied = self.carried[start : start + row.captured].tobytes()
        return SegmentBytes(row.seq, row.end, row.captured, row.packet, row.time_ns, start, copied)

    def _start(self, segment: SegmentBytes) -> int:
        """Return the place of a segment's bytes; bytes of earlier windows are copied again."""
        if segment.copied is None:
            return segment.start
        at = int(self._counts["waiting_carried_bytes"])
        end = at + segment.captured
        if end > len(self.carried):
            wider: Bytes = np.empty(2 * end, np.uint8)
            wider[:at] = self.carried[:at]
            self.carried = wider
        self.carried[at:end] = np.frombuffer(segment.copied, np.uint8)
        self._counts["waiting_carried_bytes"] = end
        return CARRY_OVER_BASE + at


def _with_rows(table: RowArray, rows: int) -> RowArray:
    larger = np.zeros(rows, table.dtype)
    larger[: len(table)] = table
    return larger
