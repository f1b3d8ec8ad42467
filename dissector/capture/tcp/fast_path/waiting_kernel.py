"""
Device functions for segments out of order: they wait behind a hole, as in `Stream`.

The rows match `Stream` and `ReorderBuffer`, which also explain the reasons.
"""

from __future__ import annotations

from dissector.capture.columns import DATA, GAP, IN_CARRY_OVER, IN_WINDOW
from dissector.capture.tcp.both_paths.chunk_columns import LENGTH, ORIGIN
from dissector.capture.tcp.both_paths.chunk_columns import START as CHUNK_START
from dissector.capture.tcp.both_paths.connection_columns import (
    ACKED,
    ANCHORED,
    BYTES,
    CUT_BYTES,
    DATA_NS,
    FINISHED,
    GAP_BYTES,
    GAP_COUNT,
    HAS_ACKED,
    NEXT,
    RESENT,
    RETRANSMITTED_BYTES,
    RETRANSMITTED_SEGMENTS,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    WAITS,
)
from dissector.capture.tcp.both_paths.reassembly_limits import (
    FAR_BYTES,
    MAX_WAITING_BYTES,
    MAX_WAITING_SEGMENTS,
    UNACKED_WAIT_NS,
    WAIT_NS,
)
from dissector.capture.tcp.both_paths.tcp_arrays import (
    ChunkArrays,
    SegmentArrays,
    StateArrays,
)
from dissector.capture.tcp.both_paths.tcp_header import SEQ_MASK
from dissector.capture.tcp.both_paths.waiting_columns import (
    AFTER,
    CAPTURED,
    CARRIED_BYTES,
    COVERED_NS,
    END,
    FIRST,
    FORCED_GAPS,
    GAP_ROWS,
    LOSS_ROWS,
    MAX_TOTAL_BYTES,
    NEEDED_ROWS,
    OLDEST,
    PACKET,
    RELEASED,
    ROWS,
    SEGMENTS_LIVE,
    SEQ,
    START,
    TIME_NS,
    TOTAL_BYTES,
    WAIT_SIDE,
    WAITING_BYTES,
    WAITING_SEGMENTS,
    WAITS_USED,
)
from dissector.capture.tcp.both_paths.waiting_columns import CARRY_OVER_BASE as CARRIED
from dissector.capture.tcp.fast_path.connection_row import acknowledge
from dissector.capture.tcp.fast_path.loss_kernel import count_old, loss_row, remember_gap
from dissector.capture.tcp.fast_path.rows_kernel import emit_barriers, emit_row
from dissector.capture.tcp.fast_path.waiting_lists import (
    add_segment,
    cover,
    free_wait,
    new_wait,
    predecessor,
    remove_first,
)
from dissector.kernel import device_function
from dissector.kernel.memcpy import copy_bytes

PROCESSED, NEEDS_OBJECT, NEEDS_ROOM = range(3)
"""Results of processing a segment."""

MAX_PARTS = 80
"""An upper bound of the new parts of one segment, between waiting ones."""

_HALF = 1 << 31


@device_function
def process_out_of_order(
    segments: SegmentArrays, state: StateArrays, out: ChunkArrays, number: int, side: int, i: int
) -> int:
    """Process a segment without SYN, FIN or RST of a connection with possibly waiting data."""
    connections, waits = state.connections, state.waits
    flags = connections[number, SIDES + SIDE * side + SIDE_FLAGS]
    position = connections[number, SIDES + SIDE * side + NEXT]
    length = segments.length[i]
    if length != 0:
        if flags & (ANCHORED | FINISHED) != ANCHORED:
            return NEEDS_OBJECT
        ahead = ((segments.seq[i] - position + _HALF) & SEQ_MASK) - _HALF
        if ahead < -FAR_BYTES or ahead > FAR_BYTES:
            return NEEDS_OBJECT
        position += ahead
    wait = connections[number, WAITS]
    before = -1
    if length != 0 and wait != 0:
        before = predecessor(state, wait, side, position)
        if before < -1:
            return NEEDS_OBJECT
    if not has_room(state, out, wait):
        return NEEDS_ROOM
    packet, time_ns = segments.packet[i], segments.time_ns[i]
    acknowledge(connections, number, 1 - side, segments.ack[i], packet, time_ns)
    if wait != 0:
        advance(state, out, number, 1 - side, packet, time_ns)
    if length != 0:
        add(segments, state, out, number, side, i, position, before)
        wait = connections[number, WAITS]
    if wait != 0:
        advance(state, out, number, side, packet, time_ns)
        emit_barriers(state, out, number, packet, time_ns)
        if waits[wait, FIRST] < 0 and waits[wait, WAIT_SIDE + FIRST] < 0:
            free_wait(state, number)
    return PROCESSED


@device_function
def has_room(state: StateArrays, out: ChunkArrays, wait: int) -> bool:
    """Return whether there is room for all that a segment may add; else record the action."""
    counts, rows = state.counts, 3 * MAX_PARTS
    if wait != 0:
        for column in (WAITING_SEGMENTS, WAIT_SIDE + WAITING_SEGMENTS):
            rows += 3 * state.waits[wait, column]
    counts[NEEDED_ROWS] = 2 * rows  # the next segments need more
    is_enough = (
        counts[ROWS] + rows <= len(out.barrier)
        and counts[SEGMENTS_LIVE] + MAX_PARTS < len(state.waiting)
        and counts[WAITS_USED] < len(state.waits)
        and counts[LOSS_ROWS] + 2 <= len(state.losses)
        and counts[GAP_ROWS] + 2 <= len(state.gaps)
    )
    if is_enough:
        counts[NEEDED_ROWS] = 0
    return is_enough


@device_function
def add(
    segments: SegmentArrays,
    state: StateArrays,
    out: ChunkArrays,
    number: int,
    side: int,
    i: int,
    seq: int,
    before: int,
) -> None:
    """Release the bytes of an expected segment, else queue its new bytes."""
    connections, own = state.connections, SIDES + SIDE * side
    end, position, old = seq + segments.length[i], connections[number, own + NEXT], 0
    if seq < position:
        count_old(state, number, side, seq, end)
        if end <= position:
            return
        old = position - seq
        seq = position
    wait = connections[number, WAITS]
    if seq == position and (wait == 0 or state.waits[wait, WAIT_SIDE * side + FIRST] < 0):
        set_segment(segments, state, RELEASED, i, old)
        state.waiting[RELEASED, END] = end
        emit_released(state, out, number, side, segments.packet[i])
        return
    if wait == 0:
        wait = new_wait(state, number)
    added = add_parts(segments, state, number, side, i, before, seq, old)
    if added < end - seq:
        row = loss_row(state, number, side)
        state.losses[row, RETRANSMITTED_SEGMENTS] += 1
        state.losses[row, RETRANSMITTED_BYTES] += end - seq - added
        connections[number, own + RESENT] += 1


@device_function
def add_parts(
    segments: SegmentArrays,
    state: StateArrays,
    number: int,
    side: int,
    i: int,
    before: int,
    seq: int,
    old: int,
) -> int:
    """
    Add the parts of a segment between waiting ones; return the number of their bytes.

    Args:
        segments: Of the window.
        state: Of all connections.
        number: The connection.
        side: The side that sent the segment.
        i: The segment.
        before: The last waiting segment that begins at or before it; -1 without one.
        seq: The sequence number of its first new byte.
        old: The number of bytes before that one.
    """
    waiting, added, at, wait = state.waiting, 0, seq, state.connections[number, WAITS]
    end = seq + segments.length[i] - old
    if before >= 0:
        at = max(at, waiting[before, END])
    while at < end:
        after = (
            waiting[before, AFTER] if before >= 0 else state.waits[wait, WAIT_SIDE * side + FIRST]
        )
        part_end = end if after < 0 else min(end, waiting[after, SEQ])
        if at < part_end:
            before = add_segment(state, number, side, before, at, part_end)
            set_segment(segments, state, before, i, old + at - seq)
            waiting[before, CAPTURED] = min(waiting[before, CAPTURED], part_end - at)
            added += part_end - at
        if after < 0:
            break
        at = max(part_end, waiting[after, END])
        before = after
    return added


@device_function
def set_segment(segments: SegmentArrays, state: StateArrays, at: int, i: int, skipped: int) -> None:
    """Fill a row of waiting segments from a segment, without its first bytes."""
    state.waiting[at, CAPTURED] = max(segments.captured[i] - skipped, 0)
    state.waiting[at, PACKET] = segments.packet[i]
    state.waiting[at, TIME_NS] = segments.time_ns[i]
    state.waiting[at, START] = segments.start[i] + skipped


@device_function
def advance(
    state: StateArrays, out: ChunkArrays, number: int, side: int, packet: int, now_ns: int
) -> None:
    """Release all ready data of a side, as `Stream.advance`."""
    wait = state.connections[number, WAITS]
    own = WAIT_SIDE * side
    waits, waiting, counts = state.waits, state.waiting, state.counts
    if waits[wait, own + FIRST] < 0:
        return
    cover(state, number, side)
    is_full = counts[TOTAL_BYTES] > counts[MAX_TOTAL_BYTES]
    if is_full:
        counts[FORCED_GAPS] += 1
    while waits[wait, own + FIRST] >= 0:
        first = waits[wait, own + FIRST]
        front = waiting[first, SEQ]
        if front > state.connections[number, SIDES + SIDE * side + NEXT]:
            if not is_full and not is_gap(state, number, side, front, now_ns):
                return
            emit_gap_before(state, out, number, side, first, packet)
        release_run(state, out, number, side, packet)


@device_function
def is_gap(state: StateArrays, number: int, side: int, front: int, now_ns: int) -> bool:
    """Return whether the data missing before `front` is lost."""
    connections, waits = state.connections, state.waits
    wait, own = connections[number, WAITS], WAIT_SIDE * side
    if (
        waits[wait, own + WAITING_BYTES] > MAX_WAITING_BYTES
        or waits[wait, own + WAITING_SEGMENTS] > MAX_WAITING_SEGMENTS
    ):
        return True
    at = SIDES + SIDE * side
    if not connections[number, at + SIDE_FLAGS] & HAS_ACKED:
        oldest_ns = state.waiting[waits[wait, own + OLDEST], TIME_NS]
        return bool(now_ns - oldest_ns >= UNACKED_WAIT_NS)
    if connections[number, at + ACKED] < front:
        return False
    covered_ns = state.waiting[waits[wait, own + FIRST], COVERED_NS]
    return bool(now_ns - covered_ns >= WAIT_NS)


@device_function
def release_run(state: StateArrays, out: ChunkArrays, number: int, side: int, release: int) -> None:
    """Emit the waiting segments that follow one another from the next byte on."""
    connections, waiting, own = state.connections, state.waiting, SIDES + SIDE * side
    wait = connections[number, WAITS]
    first = state.waits[wait, WAIT_SIDE * side + FIRST]
    while first >= 0 and waiting[first, SEQ] == connections[number, own + NEXT]:
        for column in (END, START, CAPTURED, PACKET, TIME_NS):
            waiting[RELEASED, column] = waiting[first, column]
        remove_first(state, wait, side)
        emit_released(state, out, number, side, release)
        first = state.waits[wait, WAIT_SIDE * side + FIRST]


@device_function
def emit_released(
    state: StateArrays, out: ChunkArrays, number: int, side: int, release: int
) -> None:
    """Emit the segment in row `RELEASED`, and the bytes that the capture cut off."""
    connections, own = state.connections, SIDES + SIDE * side
    end, start, captured = (
        state.waiting[RELEASED, END],
        state.waiting[RELEASED, START],
        state.waiting[RELEASED, CAPTURED],
    )
    packet, time_ns = state.waiting[RELEASED, PACKET], state.waiting[RELEASED, TIME_NS]
    state.waiting[RELEASED, CAPTURED] = 0
    cut = end - connections[number, own + NEXT] - captured
    connections[number, own + NEXT] = end
    connections[number, own + BYTES] += captured
    connections[number, own + DATA_NS] = time_ns
    if captured != 0:
        origin = IN_WINDOW
        if start >= CARRIED:
            origin, at = IN_CARRY_OVER, state.counts[CARRIED_BYTES]
            copy_bytes(out.carry_over, at, state.carried, start - CARRIED, captured)
            state.counts[CARRIED_BYTES] += captured
            start = at
        row = emit_row(state, out, number, side, DATA, packet, time_ns, release)
        out.narrow[ORIGIN, row] = origin
        out.wide[CHUNK_START, row] = start
        out.wide[LENGTH, row] = captured
    if cut != 0:
        state.losses[loss_row(state, number, side), CUT_BYTES] += cut
        remember_gap(state, number, side, end - cut, end)
        row = emit_row(state, out, number, side, GAP, packet, time_ns, release)
        out.wide[CHUNK_START, row] = time_ns
        out.wide[LENGTH, row] = cut


@device_function
def emit_gap(
    state: StateArrays,
    out: ChunkArrays,
    number: int,
    side: int,
    end: int,
    packet: int,
    time_ns: int,
    release: int,
) -> None:
    """Emit the bytes of a side up to `end` as missing."""
    connections, own = state.connections, SIDES + SIDE * side
    start = connections[number, own + NEXT]
    losses = loss_row(state, number, side)
    state.losses[losses, GAP_COUNT] += 1
    state.losses[losses, GAP_BYTES] += end - start
    remember_gap(state, number, side, start, end)
    connections[number, own + NEXT] = end
    row = emit_row(state, out, number, side, GAP, packet, time_ns, release)
    out.wide[CHUNK_START, row] = connections[number, own + DATA_NS]
    out.wide[LENGTH, row] = end - start


@device_function
def emit_gap_before(
    state: StateArrays, out: ChunkArrays, number: int, side: int, first: int, release: int
) -> None:
    """Emit a gap before a waiting segment."""
    packet, time_ns = state.waiting[first, PACKET], state.waiting[first, TIME_NS]
    emit_gap(state, out, number, side, state.waiting[first, SEQ], packet, time_ns, release)
