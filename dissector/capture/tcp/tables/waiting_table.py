"""The segments that wait behind holes, in arrays; and as objects of materialised connections."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Bytes, Int64s
from dissector.capture.tcp.both_paths.tcp_arrays import StateArrays
from dissector.capture.tcp.both_paths.waiting_columns import (
    BARRIER,
    CAPTURED,
    CARRY_OVER_BASE,
    COVERED_NS,
    END,
    FIRST,
    FREE_SEGMENT,
    LATER,
    OLDEST,
    PACKET,
    RELEASED,
    SEGMENT_WIDTH,
    SEGMENTS_LIVE,
    SEGMENTS_USED,
    SEQ,
    START,
    TIME_NS,
    TOTAL_BYTES,
    WAIT_SIDE,
    WAIT_WIDTH,
    WAITING_CARRIED_BYTES,
    WAITS_USED,
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
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.kernel.memcpy import copy_bytes

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


@Kernel
def move_segments(waiting: I64Table, order: I64, data: U8, carried: U8, target: U8, at: int) -> int:
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
        start, captured = waiting[order[i], START], waiting[order[i], CAPTURED]
        if start < CARRY_OVER_BASE:
            copy_bytes(target, at, data, start, captured)
        else:
            copy_bytes(target, at, carried, start - CARRY_OVER_BASE, captured)
        waiting[order[i], START] = CARRY_OVER_BASE + at
        at += captured
    return at


class WaitingTable:
    """
    Waiting data of connections that are not materialised.

    Attributes:
        waits: A row for each connection with waiting segments, see `waiting_columns`.
        waiting: A row for each waiting segment; there is room for more in both.
        carried: Bytes of segments of earlier windows.
    """

    def __init__(self, counts: Int64s) -> None:
        self._counts = counts
        self.waits: Int64s = np.zeros((2, WAIT_WIDTH), np.int64)
        self.waiting: Int64s = np.zeros((2 * MAX_PARTS, SEGMENT_WIDTH), np.int64)
        self.carried: Bytes = _NO_BYTES
        counts[WAITS_USED], counts[FREE_SEGMENT] = 1, -1
        counts[SEGMENTS_USED] = RELEASED + 1

    def __getstate__(self) -> dict[str, Any]:
        waits, waiting = int(self._counts[WAITS_USED]), int(self._counts[SEGMENTS_USED])
        return {
            **self.__dict__,
            "waits": self.waits[: waits + 1],
            "waiting": self.waiting[: waiting + MAX_PARTS],
            "carried": self.carried[: int(self._counts[WAITING_CARRIED_BYTES]) + 1],
        }

    def reserve(self, segments: int = MAX_PARTS) -> None:
        """Make room for segments of a connection; by default for all that one may add."""
        if self._counts[WAITS_USED] == len(self.waits):
            self.waits = _with_rows(self.waits, 2 * len(self.waits))
        if self._counts[SEGMENTS_LIVE] + segments >= len(self.waiting):
            self.waiting = _with_rows(self.waiting, 2 * len(self.waiting) + segments)

    def carry(self, data: Bytes) -> None:
        """Keep the bytes of the waiting segments, as their window ends."""
        counts = self._counts
        if not counts[SEGMENTS_LIVE]:
            counts[WAITING_CARRIED_BYTES] = 0
            self.carried = _NO_BYTES
            return
        start, captured = self.waiting[: int(counts[SEGMENTS_USED]), [START, CAPTURED]].T
        new = np.flatnonzero((captured > 0) & (start < CARRY_OVER_BASE))
        added, at = int(captured[new].sum()), int(counts[WAITING_CARRIED_BYTES])
        if at + added > len(self.carried):
            old = np.flatnonzero((captured > 0) & (start >= CARRY_OVER_BASE))
            total = added + int(captured[old].sum())
            target = self.carried
            if total > len(target):
                target = np.empty(total + total // 4, np.uint8)
            old = old[np.argsort(start[old])]
            at = move_segments(self.waiting, old, data, self.carried, target, 0)
            self.carried = target
        counts[WAITING_CARRIED_BYTES] = move_segments(
            self.waiting, new, data, self.carried, self.carried, at
        )

    def load(self, wait: int, reorder: ReorderState, streams: tuple[Stream, Stream]) -> None:
        """Convert waiting data to objects of streams; the rows stay unchanged."""
        for side, stream in enumerate(streams):
            row = self.waits[wait, WAIT_SIDE * side : WAIT_SIDE * (side + 1)].tolist()
            if row[FIRST] < 0:
                continue
            buffer = ReorderBuffer()
            at = row[OLDEST]
            while at >= 0:
                segment = self.waiting[at].tolist()
                buffer.add(self._segment(segment), segment[COVERED_NS])
                at = segment[LATER]
            stream.restore_waiting(buffer)
        first, second = self.waits[wait, BARRIER::WAIT_SIDE].tolist()
        reorder.emitted = first, second

    def store(
        self, state: StateArrays, number: int, reorder: ReorderState, streams: tuple[Stream, Stream]
    ) -> None:
        """Convert waiting data of streams to rows; the total of bytes stays unchanged."""
        total = state.counts[TOTAL_BYTES]
        wait = new_wait(state, number)
        for side, stream in enumerate(streams):
            if stream.buffer is not None:
                covered_ns = stream.buffer.covered_ns()
                for segment in stream.buffer.arrivals():
                    before = predecessor(state, wait, side, segment.seq)
                    at = add_segment(state, number, side, before, segment.seq, segment.end)
                    state.waiting[at, CAPTURED] = segment.captured
                    state.waiting[at, PACKET] = segment.packet
                    state.waiting[at, TIME_NS] = segment.time_ns
                    state.waiting[at, START] = self._start(segment)
                    if segment.seq in covered_ns:
                        state.waiting[at, COVERED_NS] = covered_ns[segment.seq]
            state.waits[wait, WAIT_SIDE * side + BARRIER] = reorder.emitted[side]
        state.counts[TOTAL_BYTES] = total

    def remove(self, state: StateArrays, number: int, wait: int) -> None:
        """Drop waiting data of a connection; the total of bytes stays unchanged."""
        total = state.counts[TOTAL_BYTES]
        for side in (0, 1):
            while state.waits[wait, WAIT_SIDE * side + FIRST] >= 0:
                remove_first(state, wait, side)
        free_wait(state, number)
        state.counts[TOTAL_BYTES] = total

    def _segment(self, row: list[int]) -> SegmentBytes:
        start, copied = row[START], None
        if start >= CARRY_OVER_BASE:
            start -= CARRY_OVER_BASE
            copied = self.carried[start : start + row[CAPTURED]].tobytes()
        return SegmentBytes(
            row[SEQ], row[END], row[CAPTURED], row[PACKET], row[TIME_NS], start, copied
        )

    def _start(self, segment: SegmentBytes) -> int:
        """Return the place of a segment's bytes; bytes of earlier windows are copied again."""
        if segment.copied is None:
            return segment.start
        at = int(self._counts[WAITING_CARRIED_BYTES])
        end = at + segment.captured
        if end > len(self.carried):
            wider: Bytes = np.empty(2 * end, np.uint8)
            wider[:at] = self.carried[:at]
            self.carried = wider
        self.carried[at:end] = np.frombuffer(segment.copied, np.uint8)
        self._counts[WAITING_CARRIED_BYTES] = end
        return CARRY_OVER_BASE + at


def _with_rows(table: Int64s, rows: int) -> Int64s:
    larger = np.zeros((rows, table.shape[1]), np.int64)
    larger[: len(table)] = table
    return larger
