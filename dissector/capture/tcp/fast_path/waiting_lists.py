"""Device functions for the lists of waiting segments of a side."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.tcp.both_paths.connection_columns import (
    ACKED,
    ACKED_NS,
    HAS_ACKED,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    WAITS,
)
from dissector.capture.tcp.both_paths.reassembly_limits import (
    MAX_STEPS,
)
from dissector.capture.tcp.both_paths.tcp_arrays import StateArrays
from dissector.capture.tcp.both_paths.waiting_columns import (
    AFTER,
    BARRIER,
    BEFORE,
    CAPTURED,
    COVERED_NS,
    EARLIER,
    END,
    FIRST,
    FREE_SEGMENT,
    FREE_WAIT,
    LAST,
    LATER,
    NEWEST,
    NEXT_FREE,
    OLDEST,
    SEGMENTS_LIVE,
    SEGMENTS_USED,
    SEQ,
    TOTAL_BYTES,
    UNACKED,
    WAIT_SIDE,
    WAIT_WIDTH,
    WAITING_BYTES,
    WAITING_SEGMENTS,
    WAITS_USED,
)
from dissector.kernel import device_function

TOO_FAR = -2
"""Instead of a segment: not found within `MAX_STEPS`."""


@device_function
def new_wait(state: StateArrays, number: int) -> int:
    """Allocate a connection's row for waiting data; return it."""
    waits, counts = state.waits, state.counts
    wait = counts[FREE_WAIT]
    if wait != 0:
        counts[FREE_WAIT] = waits[wait, NEXT_FREE]
    else:
        wait = counts[WAITS_USED]
        counts[WAITS_USED] = wait + 1
    for column in range(WAIT_WIDTH):
        waits[wait, column] = 0
    for own in (0, WAIT_SIDE):
        for column in (FIRST, LAST, OLDEST, NEWEST, UNACKED):
            waits[wait, own + column] = -1
        waits[wait, own + BARRIER] = NEVER
    state.connections[number, WAITS] = wait
    return int(wait)


@device_function
def free_wait(state: StateArrays, number: int) -> None:
    """Free a connection's row for waiting data: none is left."""
    wait = state.connections[number, WAITS]
    state.waits[wait, NEXT_FREE] = state.counts[FREE_WAIT]
    state.counts[FREE_WAIT] = wait
    state.connections[number, WAITS] = 0


@device_function
def predecessor(state: StateArrays, wait: int, side: int, seq: int) -> int:
    """Return the last waiting segment that begins at or before `seq`; -1 without one."""
    segment = state.waits[wait, WAIT_SIDE * side + LAST]
    for _ in range(MAX_STEPS):
        if segment < 0 or state.waiting[segment, SEQ] <= seq:
            return int(segment)
        segment = state.waiting[segment, BEFORE]
    return TOO_FAR if segment >= 0 else -1


@device_function
def add_segment(state: StateArrays, number: int, side: int, before: int, seq: int, end: int) -> int:
    """Add a segment after another one, or as the first, and as the newest; return it."""
    waits, waiting, counts = state.waits, state.waiting, state.counts
    wait = state.connections[number, WAITS]
    segment = counts[FREE_SEGMENT]
    if segment >= 0:
        counts[FREE_SEGMENT] = waiting[segment, AFTER]
    else:
        segment = counts[SEGMENTS_USED]
        counts[SEGMENTS_USED] = segment + 1
    counts[SEGMENTS_LIVE] += 1
    own = WAIT_SIDE * side
    after = waiting[before, AFTER] if before >= 0 else waits[wait, own + FIRST]
    newest = waits[wait, own + NEWEST]
    waiting[segment, AFTER], waiting[segment, BEFORE] = after, before
    waiting[segment, LATER], waiting[segment, EARLIER] = -1, newest
    waiting[segment, SEQ], waiting[segment, END] = seq, end
    if before >= 0:
        waiting[before, AFTER] = segment
    else:
        waits[wait, own + FIRST] = segment
    if after >= 0:
        waiting[after, BEFORE] = segment
    else:
        waits[wait, own + LAST] = segment
    if newest >= 0:
        waiting[newest, LATER] = segment
    else:
        waits[wait, own + OLDEST] = segment
    waits[wait, own + NEWEST] = segment
    waits[wait, own + WAITING_SEGMENTS] += 1
    waits[wait, own + WAITING_BYTES] += end - seq
    counts[TOTAL_BYTES] += end - seq
    set_covered(state, number, side, segment)
    return int(segment)


@device_function
def set_covered(state: StateArrays, number: int, side: int, segment: int) -> None:
    """Record whether data before a new segment is acknowledged."""
    connections, waits, waiting = state.connections, state.waits, state.waiting
    at, unacked_at = SIDES + SIDE * side, WAIT_SIDE * side + UNACKED
    wait, seq = connections[number, WAITS], waiting[segment, SEQ]
    if connections[number, at + SIDE_FLAGS] & HAS_ACKED and seq <= connections[number, at + ACKED]:
        waiting[segment, COVERED_NS] = connections[number, at + ACKED_NS]
        return
    waiting[segment, COVERED_NS] = NEVER
    unacked = waits[wait, unacked_at]
    if unacked < 0 or seq < waiting[unacked, SEQ]:
        waits[wait, unacked_at] = segment


@device_function
def cover(state: StateArrays, number: int, side: int) -> None:
    """Record the segments before which the newest acknowledgement covers all bytes."""
    connections, waits, waiting = state.connections, state.waits, state.waiting
    at, unacked_at = SIDES + SIDE * side, WAIT_SIDE * side + UNACKED
    if connections[number, at + SIDE_FLAGS] & HAS_ACKED:
        wait, acked = connections[number, WAITS], connections[number, at + ACKED]
        segment = waits[wait, unacked_at]
        while segment >= 0 and waiting[segment, SEQ] <= acked:
            waiting[segment, COVERED_NS] = connections[number, at + ACKED_NS]
            segment = waiting[segment, AFTER]
        waits[wait, unacked_at] = segment


@device_function
def remove_first(state: StateArrays, wait: int, side: int) -> None:
    """Remove the segment with the lowest sequence number."""
    waits, waiting, counts = state.waits, state.waiting, state.counts
    own = WAIT_SIDE * side
    segment = waits[wait, own + FIRST]
    after, later, earlier = (
        waiting[segment, AFTER],
        waiting[segment, LATER],
        waiting[segment, EARLIER],
    )
    waits[wait, own + FIRST] = after
    if waits[wait, own + UNACKED] == segment:
        waits[wait, own + UNACKED] = after
    if after >= 0:
        waiting[after, BEFORE] = -1
    else:
        waits[wait, own + LAST] = -1
    if earlier >= 0:
        waiting[earlier, LATER] = later
    else:
        waits[wait, own + OLDEST] = later
    if later >= 0:
        waiting[later, EARLIER] = earlier
    else:
        waits[wait, own + NEWEST] = earlier
    size = waiting[segment, END] - waiting[segment, SEQ]
    waits[wait, own + WAITING_SEGMENTS] -= 1
    waits[wait, own + WAITING_BYTES] -= size
    counts[TOTAL_BYTES] -= size
    counts[SEGMENTS_LIVE] -= 1
    waiting[segment, CAPTURED] = 0
    waiting[segment, AFTER] = counts[FREE_SEGMENT]
    counts[FREE_SEGMENT] = segment
