"""
Device functions for the data of one side of a connection: what waits, and when it is released.

Sequence numbers are unwrapped beyond 2^32, so they compare as numbers do. A stream without a
captured SYN has no `next` until it is *anchored*: its early segments wait, since the first one
captured need not be the lowest.

The first bytes captured win. A hole becomes a gap when the other side has acknowledged data after
it and `WAIT_NS` have passed, or when too much waits, or when the connection ends.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER, SEQ_MASK
from dissector.capture.tcp.chunk_kernel import count_old, count_repeated, emit_gap, emit_segment
from dissector.capture.tcp.round_trips import begin_timing, end_timing
from dissector.capture.tcp.tcp_rows import (
    NONE,
    ChunkArrays,
    ConnectionRow,
    SegmentRow,
    StateArrays,
    StreamRow,
)
from dissector.capture.tcp.waiting_rows import IN_HAND, WaitingSide, clear_waiting_side
from dissector.capture.tcp.waiting_runs import (
    add_bytes,
    end_wait,
    fill_segment,
    find_run,
    remove_run,
)
from dissector.kernel import device_function

WAIT_NS = 50_000_000
"""Maximum delay of a segment's capture after its successors on the wire."""

UNACKED_WAIT_NS = 10_000_000_000
"""Maximum age of a hole that no captured acknowledgement could confirm."""

START_WAIT_BYTES = 64 << 10
"""Limit of waiting data at the start of a stream without a captured SYN."""

MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 16 << 10
"""Limit of waiting data after a hole; beyond it the hole becomes a gap."""

FAR_BYTES = 64 << 20
"""Sequence numbers farther apart than this do not belong to one connection."""


_FULL, _HALF = 1 << 32, 1 << 31


@device_function
def is_near(number: int, reference: int) -> bool:
    """Return whether two sequence numbers can belong to one connection."""
    return -FAR_BYTES <= number - reference <= FAR_BYTES


@device_function
def near(raw: int, reference: int) -> int:
    """Return a sequence number of 32 bits unwrapped: the nearest one to another."""
    return reference + ((raw - reference + _HALF) & SEQ_MASK) - _HALF


@device_function
def first_waiting(state: StateArrays, connection: ConnectionRow, side: int) -> int:
    """Return the first run of a side that waits; 0 without any."""
    return 0 if connection.waits == 0 else state.waits[connection.waits].sides[side].first


@device_function
def expected(state: StateArrays, connection: ConnectionRow, side: int) -> int:
    """Return the next byte of a stream, or the lowest that waits before its begin; else `NONE`."""
    stream, run = connection.streams[side], first_waiting(state, connection, side)
    return state.runs[run].start if stream.next == NONE and run != 0 else stream.next


@device_function
def unwrap(state: StateArrays, connection: ConnectionRow, side: int, raw: int) -> int:
    """Return a sequence number of 32 bits unwrapped: the nearest one to the expected one."""
    reference = expected(state, connection, side)
    if reference == NONE:
        reference = connection.streams[side].acked
    return raw + _FULL if reference == NONE else near(raw, reference)


@device_function
def has_data(state: StateArrays, connection: ConnectionRow, side: int) -> bool:
    """Return whether any bytes of a stream were released or wait."""
    stream = connection.streams[side]
    return stream.next != stream.first or first_waiting(state, connection, side) != 0


@device_function
def is_pending(state: StateArrays, connection: ConnectionRow, side: int) -> bool:
    """Return whether the passage of time alone may release something."""
    stream = connection.streams[side]
    if stream.fin != NONE and not stream.finished:
        return True
    return first_waiting(state, connection, side) != 0


@device_function
def waiting_side(state: StateArrays, connection: ConnectionRow, side: int) -> WaitingSide:
    """Return what waits of a side, with a new row if needed."""
    if connection.waits == 0:
        counts, wait = state.counts, state.counts.free_wait
        if wait != 0:
            counts.free_wait = state.waits[wait].next_free
        else:
            wait = counts.waits_used
            counts.waits_used = wait + 1
        clear_waiting_side(state.waits[wait].sides[0])
        clear_waiting_side(state.waits[wait].sides[1])
        connection.waits = wait
    return state.waits[connection.waits].sides[side]


@device_function
def settle(state: StateArrays, connection: ConnectionRow) -> None:
    """Free the row of what waits in a connection if nothing does."""
    if connection.waits == 0:
        return
    wait = state.waits[connection.waits]
    for side in range(2):
        if wait.sides[side].barrier != NEVER or is_pending(state, connection, side):
            return
    wait.next_free = state.counts.free_wait
    state.counts.free_wait = connection.waits
    connection.waits = 0


@device_function
def anchor(state: StateArrays, connection: ConnectionRow, side: int, number: int) -> None:
    """Start a stream at a sequence number."""
    stream = connection.streams[side]
    stream.next = stream.first = number
    if stream.acked != NONE and not is_near(stream.acked, number):
        forget_acks(state, connection, side)


@device_function
def open_stream(state: StateArrays, connection: ConnectionRow, side: int, isn: int) -> None:
    """Start a stream after the sequence number of its SYN."""
    stream = connection.streams[side]
    stream.has_isn = True
    anchor(state, connection, side, isn + 1)
    if stream.acked != NONE and stream.acked <= isn:
        forget_acks(state, connection, side)


@device_function
def forget_acks(state: StateArrays, connection: ConnectionRow, side: int) -> None:
    """Forget acknowledgements that can't be of this stream."""
    connection.streams[side].acked = NONE
    run = first_waiting(state, connection, side)
    while run != 0:
        state.runs[run].covered_ns = NEVER
        run = state.runs[run].after


@device_function
def acknowledge(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> None:
    """Process an acknowledgement of a side's data."""
    stream = connection.streams[side]
    if stream.acked != NONE:
        number = stream.acked + ((segment.ack - stream.acked) & SEQ_MASK)
        if number == stream.acked or number - stream.acked > FAR_BYTES:
            return
    else:
        number = unwrap(state, connection, side, segment.ack)
        if stream.next != NONE and not is_near(number, stream.next):
            return
        stream.first_acked = number
    stream.acked = number
    stream.acked_ns = segment.time_ns
    stream.acked_packet = segment.packet
    stream.resent = 0
    if stream.timed != NONE and number >= stream.timed:
        end_timing(connection, side, segment)
    if connection.waits != 0:
        runs = state.runs
        run = find_run(state, state.waits[connection.waits].sides[side], number)
        while run != 0 and runs[run].covered_ns == NEVER:
            runs[run].covered_ns = segment.time_ns
            run = runs[run].before


@device_function
def receive_bytes(
    state: StateArrays, out: ChunkArrays, number: int, side: int, seq: int, segment: SegmentRow
) -> None:
    """Release the payload of a segment if it is next, else let its new bytes wait."""
    connection, end, old = state.connections[number], seq + segment.length, 0
    stream, run = connection.streams[side], first_waiting(state, connection, side)
    if stream.next == NONE and run == 0:
        anchor_by_ack(state, connection, side, seq, end)
    if stream.next != NONE and seq < stream.next:
        count_old(state, stream, seq, end)
        if end <= stream.next:
            return
        old = stream.next - seq
        seq = stream.next
    if run == 0 and seq == stream.next:
        fill_segment(state, IN_HAND, segment, old, seq, end)
        emit_segment(state, out, number, side, state.waiting[IN_HAND])
        state.waiting[IN_HAND].captured = 0
        if old == 0:
            begin_timing(stream, segment)
        return
    waiting = waiting_side(state, connection, side)
    added = add_bytes(state, stream, waiting, seq, end, segment, old)
    count_repeated(state, stream, end - seq - added)


@device_function
def anchor_by_ack(
    state: StateArrays, connection: ConnectionRow, side: int, seq: int, end: int
) -> None:
    """
    Anchor a stream at its first segment if the other side has acknowledged something near it.

    Data between the acknowledgement and the segment was sent and is missing. A segment before the
    acknowledgement is a retransmission, and as good a start, unless it is a keep-alive with a dummy
    byte.
    """
    acked = connection.streams[side].acked
    if acked != NONE and is_near(seq, acked):
        is_keep_alive = end <= acked and end - seq == 1
        anchor(state, connection, side, acked if is_keep_alive else min(seq, acked))


@device_function
def close_stream(
    state: StateArrays, connection: ConnectionRow, side: int, fin: int, segment: SegmentRow
) -> None:
    """Process the sequence number of a FIN; the first one counts."""
    stream = connection.streams[side]
    if stream.next == NONE and first_waiting(state, connection, side) == 0:
        is_acked_near = stream.acked != NONE and is_near(stream.acked, fin)
        anchor(state, connection, side, min(stream.acked, fin) if is_acked_near else fin)
    if stream.fin == NONE:
        stream.fin, stream.fin_packet, stream.fin_ns = fin, segment.packet, segment.time_ns
        waiting_side(state, connection, side)


@device_function
def advance(state: StateArrays, out: ChunkArrays, number: int, side: int, now_ns: int) -> None:
    """Release all data of a side that is ready at a time."""
    connection, counts = state.connections[number], state.counts
    if connection.waits == 0 or not is_pending(state, connection, side):
        return
    stream, waiting = connection.streams[side], state.waits[connection.waits].sides[side]
    is_full = counts.total_bytes > counts.max_total_bytes
    if is_full:
        counts.forced_gaps += 1
    if stream.next == NONE and waiting.first != 0:
        if not is_full and not may_anchor(state, stream, waiting, now_ns):
            return
        anchor_at_front(state, connection, side)
    while waiting.first != 0:
        run = state.runs[waiting.first]
        if run.start > stream.next:
            covered_ns = run.covered_ns
            if not is_full and not is_gap(state, stream, waiting, run.start, covered_ns, now_ns):
                return
        release_run(state, out, number, side)
    if stream.fin == NONE or stream.finished:
        return
    if stream.next < stream.fin:
        if not is_gap(state, stream, waiting, stream.fin, stream.acked_ns, now_ns):
            return
        emit_gap(state, out, number, side, stream.fin, stream.fin_packet, stream.fin_ns)
    pass_fin(stream)


@device_function
def pass_fin(stream: StreamRow) -> None:
    """Pass a FIN: all bytes before it are released."""
    if not stream.finished:
        stream.finished = True
        if stream.next == stream.fin:
            stream.next += 1


@device_function
def may_anchor(state: StateArrays, stream: StreamRow, waiting: WaitingSide, now_ns: int) -> bool:
    """Return whether the lowest byte that waits may be the begin of a stream."""
    if stream.acked != NONE and is_near(stream.acked, state.runs[waiting.first].start):
        return True
    if now_ns - state.waiting[waiting.oldest].time_ns >= WAIT_NS:
        return True
    return waiting.bytes > START_WAIT_BYTES or waiting.segments > MAX_WAITING_SEGMENTS


@device_function
def anchor_at_front(state: StateArrays, connection: ConnectionRow, side: int) -> None:
    """Start a stream at the lowest byte that waits, or at bytes acknowledged before it."""
    front = state.runs[first_waiting(state, connection, side)].start
    acked = connection.streams[side].acked
    is_acked_near = acked != NONE and is_near(acked, front)
    anchor(state, connection, side, min(front, acked) if is_acked_near else front)


@device_function
def is_gap(
    state: StateArrays,
    stream: StreamRow,
    waiting: WaitingSide,
    front: int,
    covered_ns: int,
    now_ns: int,
) -> bool:
    """Return whether the bytes missing before `front` are lost."""
    if waiting.bytes > MAX_WAITING_BYTES or waiting.segments > MAX_WAITING_SEGMENTS:
        return True
    if stream.acked == NONE:
        oldest = waiting.oldest
        since_ns = stream.fin_ns if oldest == 0 else state.waiting[oldest].time_ns
        return now_ns - since_ns >= UNACKED_WAIT_NS
    return stream.acked >= front and now_ns - covered_ns >= WAIT_NS


@device_function
def release_run(state: StateArrays, out: ChunkArrays, number: int, side: int) -> None:
    """Release the first run of a side, and a gap for the hole before it."""
    connection, segments = state.connections[number], state.waiting
    stream, waiting = connection.streams[side], state.waits[connection.waits].sides[side]
    at = state.runs[waiting.first].first
    remove_run(state, waiting, waiting.first)
    emit_gap(state, out, number, side, segments[at].seq, segments[at].packet, segments[at].time_ns)
    while at != 0:
        segment, this = segments[at], at
        at = segment.after
        end_wait(state, waiting, segment)
        if segment.end > stream.next:
            skipped = max(stream.next - segment.seq, 0)
            segment.start += skipped
            segment.captured = max(segment.captured - skipped, 0)
            emit_segment(state, out, number, side, segment)
        segment.captured = 0
        segment.after = state.counts.free_segment
        state.counts.free_segment = this


@device_function
def flush(state: StateArrays, out: ChunkArrays, number: int, side: int) -> None:
    """Release all that waits of a side, with gaps for the holes, at the end."""
    connection = state.connections[number]
    stream = connection.streams[side]
    if stream.next == NONE and first_waiting(state, connection, side) != 0:
        anchor_at_front(state, connection, side)
    while first_waiting(state, connection, side) != 0:
        release_run(state, out, number, side)
    if stream.next == NONE:
        return
    if stream.fin != NONE:
        emit_gap(state, out, number, side, stream.fin, stream.fin_packet, stream.fin_ns)
        pass_fin(stream)
    elif stream.acked != NONE and stream.acked - stream.next > 1:
        # One acknowledged number more may be a FIN that was not captured.
        emit_gap(state, out, number, side, stream.acked, stream.acked_packet, stream.acked_ns)
