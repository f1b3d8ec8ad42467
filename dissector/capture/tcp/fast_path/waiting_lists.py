"""Device functions for the lists of waiting segments of a side."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.tcp.both_paths.reassembly_limits import MAX_STEPS
from dissector.capture.tcp.both_paths.tcp_rows import (
    NONE,
    ConnectionRow,
    StateArrays,
    StreamRow,
    WaitingSide,
    clear_waiting_side,
)
from dissector.kernel import device_function

TOO_FAR = -2
"""Instead of a segment: not found within `MAX_STEPS`."""


@device_function
def new_wait(state: StateArrays, connection: ConnectionRow) -> int:
    """Allocate a connection's row for waiting data; return it."""
    counts, wait = state.counts, state.counts.free_wait
    if wait != 0:
        counts.free_wait = state.waits[wait].next_free
    else:
        wait = counts.waits_used
        counts.waits_used = wait + 1
    clear_waiting_side(state.waits[wait].sides[0])
    clear_waiting_side(state.waits[wait].sides[1])
    connection.waits = wait
    return wait


@device_function
def free_wait(state: StateArrays, connection: ConnectionRow) -> None:
    """Free a connection's row for waiting data: none is left."""
    state.waits[connection.waits].next_free = state.counts.free_wait
    state.counts.free_wait = connection.waits
    connection.waits = 0


@device_function
def predecessor(state: StateArrays, waiting: WaitingSide, seq: int) -> int:
    """Return the last waiting segment that begins at or before `seq`; -1 without one."""
    segment = waiting.last
    for _ in range(MAX_STEPS):
        if segment < 0 or state.waiting[segment].seq <= seq:
            return segment
        segment = state.waiting[segment].before
    return TOO_FAR if segment >= 0 else -1


@device_function
def add_segment(
    state: StateArrays, stream: StreamRow, waiting: WaitingSide, before: int, seq: int, end: int
) -> int:
    """Add a segment after another one, or as the first, and as the newest; return it."""
    segments, counts = state.waiting, state.counts
    number = counts.free_segment
    if number >= 0:
        counts.free_segment = segments[number].after
    else:
        number = counts.segments_used
        counts.segments_used = number + 1
    counts.segments_live += 1
    segment = segments[number]
    segment.after = segments[before].after if before >= 0 else waiting.first
    segment.before, segment.later, segment.earlier = before, -1, waiting.newest
    segment.seq, segment.end = seq, end
    if before >= 0:
        segments[before].after = number
    else:
        waiting.first = number
    if segment.after >= 0:
        segments[segment.after].before = number
    else:
        waiting.last = number
    if waiting.newest >= 0:
        segments[waiting.newest].later = number
    else:
        waiting.oldest = number
    waiting.newest = number
    waiting.segments += 1
    waiting.bytes += end - seq
    counts.total_bytes += end - seq
    set_covered(state, stream, waiting, number)
    return number


@device_function
def set_covered(state: StateArrays, stream: StreamRow, waiting: WaitingSide, number: int) -> None:
    """Record whether data before a new segment is acknowledged."""
    segment = state.waiting[number]
    if stream.acked != NONE and segment.seq <= stream.acked:
        segment.covered_ns = stream.acked_ns
        return
    segment.covered_ns = NEVER
    if waiting.unacked < 0 or segment.seq < state.waiting[waiting.unacked].seq:
        waiting.unacked = number


@device_function
def cover(state: StateArrays, stream: StreamRow, waiting: WaitingSide) -> None:
    """Record the segments before which the newest acknowledgement covers all bytes."""
    if stream.acked != NONE:
        while waiting.unacked >= 0 and state.waiting[waiting.unacked].seq <= stream.acked:
            segment = state.waiting[waiting.unacked]
            segment.covered_ns = stream.acked_ns
            waiting.unacked = segment.after


@device_function
def remove_first(state: StateArrays, waiting: WaitingSide) -> None:
    """Remove the segment with the lowest sequence number."""
    segments, counts, number = state.waiting, state.counts, waiting.first
    segment = segments[number]
    waiting.first = segment.after
    if waiting.unacked == number:
        waiting.unacked = segment.after
    if segment.after >= 0:
        segments[segment.after].before = -1
    else:
        waiting.last = -1
    if segment.earlier >= 0:
        segments[segment.earlier].later = segment.later
    else:
        waiting.oldest = segment.later
    if segment.later >= 0:
        segments[segment.later].earlier = segment.earlier
    else:
        waiting.newest = segment.earlier
    waiting.segments -= 1
    waiting.bytes -= segment.end - segment.seq
    counts.total_bytes -= segment.end - segment.seq
    counts.segments_live -= 1
    segment.captured = 0
    segment.after = counts.free_segment
    counts.free_segment = number
