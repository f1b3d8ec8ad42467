"""
Device functions for segments out of order: they wait behind a hole, as in `Stream`.

The rows match `Stream` and `ReorderBuffer`, which also explain the reasons.
"""

from __future__ import annotations

from dissector.capture.columns import DATA, GAP, IN_CARRY_OVER, IN_WINDOW
from dissector.capture.tcp.both_paths.reassembly_limits import (
    FAR_BYTES,
    MAX_WAITING_BYTES,
    MAX_WAITING_SEGMENTS,
    UNACKED_WAIT_NS,
    WAIT_NS,
)
from dissector.capture.tcp.both_paths.tcp_header import SEQ_MASK
from dissector.capture.tcp.both_paths.tcp_rows import (
    CARRY_OVER_BASE,
    GAPS_REMEMBERED,
    NONE,
    RELEASED,
    ChunkArrays,
    SegmentArrays,
    StateArrays,
    StreamRow,
    WaitingSide,
)
from dissector.capture.tcp.fast_path.connection_row import acknowledge
from dissector.capture.tcp.fast_path.loss_kernel import count_old, losses_of, remember_gap
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
    connection = state.connections[number]
    stream, peer = connection.streams[side], connection.streams[1 - side]
    position, length, before = stream.next, segments.length[i], -1
    if length != 0:
        if position == NONE or stream.finished:
            return NEEDS_OBJECT
        ahead = ((segments.seq[i] - position + _HALF) & SEQ_MASK) - _HALF
        if ahead < -FAR_BYTES or ahead > FAR_BYTES:
            return NEEDS_OBJECT
        position += ahead
        if connection.waits != 0:
            before = predecessor(state, state.waits[connection.waits].sides[side], position)
            if before < -1:
                return NEEDS_OBJECT
    if not has_room(state, out, connection.waits):
        return NEEDS_ROOM
    packet, time_ns = segments.packet[i], segments.time_ns[i]
    acknowledge(peer, segments.ack[i], packet, time_ns)
    if connection.waits != 0:
        advance(state, out, number, 1 - side, packet, time_ns)
    if length != 0:
        add(segments, state, out, number, side, i, position, before)
    if connection.waits != 0:
        advance(state, out, number, side, packet, time_ns)
        emit_barriers(state, out, number, packet, time_ns)
        wait = state.waits[connection.waits]
        if wait.sides[0].first < 0 and wait.sides[1].first < 0:
            free_wait(state, connection)
    return PROCESSED


@device_function
def has_room(state: StateArrays, out: ChunkArrays, waits: int) -> bool:
    """Return whether there is room for all that a segment may add; else record the action."""
    counts, rows = state.counts, 3 * MAX_PARTS
    if waits != 0:
        wait = state.waits[waits]
        rows += 3 * (wait.sides[0].segments + wait.sides[1].segments)
    counts.needed_rows = 2 * rows  # the next segments need more
    is_enough = (
        counts.rows + rows <= len(out.barrier)
        and counts.segments_live + MAX_PARTS < len(state.waiting)
        and counts.waits_used < len(state.waits)
        and counts.loss_rows + 2 <= len(state.losses)
        and counts.gap_rows + 2 * GAPS_REMEMBERED <= len(state.gaps)
    )
    if is_enough:
        counts.needed_rows = 0
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
    connection = state.connections[number]
    stream = connection.streams[side]
    end, position, old = seq + segments.length[i], stream.next, 0
    if seq < position:
        count_old(state, stream, seq, end)
        if end <= position:
            return
        old = position - seq
        seq = position
    wait = connection.waits
    if seq == position and (wait == 0 or state.waits[wait].sides[side].first < 0):
        set_segment(segments, state, RELEASED, i, old)
        state.waiting[RELEASED].end = end
        emit_released(state, out, number, side, segments.packet[i])
        return
    if wait == 0:
        wait = new_wait(state, connection)
    added = add_parts(segments, state, number, side, i, before, seq, old)
    if added < end - seq:
        losses = losses_of(state, stream)
        losses.retransmitted_segments += 1
        losses.retransmitted_bytes += end - seq - added
        stream.resent += 1


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
    connection = state.connections[number]
    waiting = state.waits[connection.waits].sides[side]
    added, at, end = 0, seq, seq + segments.length[i] - old
    if before >= 0:
        at = max(at, state.waiting[before].end)
    while at < end:
        after = state.waiting[before].after if before >= 0 else waiting.first
        part_end = end if after < 0 else min(end, state.waiting[after].seq)
        if at < part_end:
            before = add_segment(state, connection.streams[side], waiting, before, at, part_end)
            set_segment(segments, state, before, i, old + at - seq)
            state.waiting[before].captured = min(state.waiting[before].captured, part_end - at)
            added += part_end - at
        if after < 0:
            break
        at = max(part_end, state.waiting[after].end)
        before = after
    return added


@device_function
def set_segment(segments: SegmentArrays, state: StateArrays, at: int, i: int, skipped: int) -> None:
    """Fill a row of waiting segments from a segment, without its first bytes."""
    segment = state.waiting[at]
    segment.captured = max(segments.captured[i] - skipped, 0)
    segment.packet = segments.packet[i]
    segment.time_ns = segments.time_ns[i]
    segment.start = segments.start[i] + skipped


@device_function
def advance(
    state: StateArrays, out: ChunkArrays, number: int, side: int, packet: int, now_ns: int
) -> None:
    """Release all ready data of a side, as `Stream.advance`."""
    connection, counts = state.connections[number], state.counts
    stream, waiting = connection.streams[side], state.waits[connection.waits].sides[side]
    if waiting.first < 0:
        return
    cover(state, stream, waiting)
    is_full = counts.total_bytes > counts.max_total_bytes
    if is_full:
        counts.forced_gaps += 1
    while waiting.first >= 0:
        if state.waiting[waiting.first].seq > stream.next:
            if not is_full and not is_gap(state, stream, waiting, now_ns):
                return
            emit_gap_before(state, out, number, side, waiting.first, packet)
        release_run(state, out, number, side, packet)


@device_function
def is_gap(state: StateArrays, stream: StreamRow, waiting: WaitingSide, now_ns: int) -> bool:
    """Return whether the data missing before the first waiting segment is lost."""
    if waiting.bytes > MAX_WAITING_BYTES or waiting.segments > MAX_WAITING_SEGMENTS:
        return True
    if stream.acked == NONE:
        return bool(now_ns - state.waiting[waiting.oldest].time_ns >= UNACKED_WAIT_NS)
    first = state.waiting[waiting.first]
    return bool(stream.acked >= first.seq and now_ns - first.covered_ns >= WAIT_NS)


@device_function
def release_run(state: StateArrays, out: ChunkArrays, number: int, side: int, release: int) -> None:
    """Emit the waiting segments that follow one another from the next byte on."""
    connection, released = state.connections[number], state.waiting[RELEASED]
    stream, waiting = connection.streams[side], state.waits[connection.waits].sides[side]
    while waiting.first >= 0 and state.waiting[waiting.first].seq == stream.next:
        segment = state.waiting[waiting.first]
        released.end, released.start = segment.end, segment.start
        released.captured = segment.captured
        released.packet, released.time_ns = segment.packet, segment.time_ns
        remove_first(state, waiting)
        emit_released(state, out, number, side, release)


@device_function
def emit_released(
    state: StateArrays, out: ChunkArrays, number: int, side: int, release: int
) -> None:
    """Emit the segment in row `RELEASED`, and the bytes that the capture cut off."""
    stream, released = state.connections[number].streams[side], state.waiting[RELEASED]
    end, start, captured = released.end, released.start, released.captured
    packet, time_ns = released.packet, released.time_ns
    released.captured = 0
    cut = end - stream.next - captured
    stream.next = end
    stream.bytes += captured
    stream.data_ns = time_ns
    if captured != 0:
        origin = IN_WINDOW
        if start >= CARRY_OVER_BASE:
            origin, at = IN_CARRY_OVER, state.counts.carried_bytes
            copy_bytes(out.carry_over, at, state.carried, start - CARRY_OVER_BASE, captured)
            state.counts.carried_bytes += captured
            start = at
        row = emit_row(state, out, number, side, DATA, packet, time_ns, release)
        out.origin[row] = origin
        out.start[row] = start
        out.length[row] = captured
    if cut != 0:
        losses = losses_of(state, stream)
        losses.cut_bytes += cut
        remember_gap(state, losses, end - cut, end)
        row = emit_row(state, out, number, side, GAP, packet, time_ns, release)
        out.start[row] = time_ns
        out.length[row] = cut


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
    stream = state.connections[number].streams[side]
    start = stream.next
    losses = losses_of(state, stream)
    losses.gaps += 1
    losses.gap_bytes += end - start
    remember_gap(state, losses, start, end)
    stream.next = end
    row = emit_row(state, out, number, side, GAP, packet, time_ns, release)
    out.start[row] = stream.data_ns
    out.length[row] = end - start


@device_function
def emit_gap_before(
    state: StateArrays, out: ChunkArrays, number: int, side: int, first: int, release: int
) -> None:
    """Emit a gap before a waiting segment."""
    segment = state.waiting[first]
    end, packet, time_ns = segment.seq, segment.packet, segment.time_ns
    emit_gap(state, out, number, side, end, packet, time_ns, release)
