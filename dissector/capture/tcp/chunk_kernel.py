"""Device functions that write rows of `Chunks`, and count what is lost or repeated."""

from __future__ import annotations

from dissector.capture.columns import DATA, GAP, IN_CARRY_OVER, IN_WINDOW, NEVER
from dissector.capture.tcp.tcp_rows import (
    GAPS_REMEMBERED,
    NONE,
    ChunkArrays,
    LossRow,
    StateArrays,
    StreamRow,
)
from dissector.capture.tcp.waiting_rows import CARRY_OVER_BASE, WaitingSegment, WaitingSide
from dissector.kernel import device_function
from dissector.kernel.memcpy import copy_bytes


@device_function
def emit_row(
    state: StateArrays,
    out: ChunkArrays,
    number: int,
    side: int,
    kind: int,
    packet: int,
    time_ns: int,
) -> int:
    """Write a row without bytes, and the barriers of its connection; return it."""
    row = state.counts.rows
    state.counts.rows = row + 1
    out.connection[row] = number
    out.start[row] = 0
    out.length[row] = 0
    out.packet[row] = packet
    out.time_ns[row] = time_ns
    out.release[row] = state.counts.packet
    out.side[row] = side
    out.kind[row] = kind
    out.origin[row] = IN_WINDOW
    connection = state.connections[number]
    other, wait = connection.streams[1 - side], connection.waits
    out.rtt_ns[row] = other.least_ns
    out.resent_ns[row] = other.resent_ns
    for each in range(2):
        barrier = NEVER
        if wait != 0:
            waiting = state.waits[wait].sides[each]
            barrier = waiting.barrier = oldest_packet(state, waiting)
        out.barrier[row, each] = barrier
    return row


@device_function
def oldest_packet(state: StateArrays, waiting: WaitingSide) -> int:
    """Return the lowest packet with waiting bytes of a side."""
    return NEVER if waiting.oldest == 0 else state.waiting[waiting.oldest].packet


@device_function
def emit_barriers(state: StateArrays, out: ChunkArrays, number: int, time_ns: int) -> None:
    """Write a row without bytes for each barrier that has risen since the newest row."""
    wait, packet = state.waits[state.connections[number].waits], state.counts.packet
    for side in range(2):
        if oldest_packet(state, wait.sides[side]) > wait.sides[side].barrier:
            emit_row(state, out, number, side, DATA, packet, time_ns)


@device_function
def emit_segment(
    state: StateArrays, out: ChunkArrays, number: int, side: int, segment: WaitingSegment
) -> None:
    """Write bytes of a segment that are next in a stream, and those that the capture cut off."""
    stream, start = state.connections[number].streams[side], segment.start
    packet, time_ns, captured = segment.packet, segment.time_ns, segment.captured
    cut = segment.end - stream.next - captured
    stream.next = segment.end
    stream.bytes += captured
    stream.data_ns = time_ns
    if captured != 0:
        row = emit_row(state, out, number, side, DATA, packet, time_ns)
        if start >= CARRY_OVER_BASE:
            at = state.counts.carried_bytes
            copy_bytes(out.carry_over, at, state.carried, start - CARRY_OVER_BASE, captured)
            state.counts.carried_bytes += captured
            out.origin[row] = IN_CARRY_OVER
            start = at
        out.start[row] = start
        out.length[row] = captured
    if cut != 0:
        losses = losses_of(state, stream)
        losses.cut_bytes += cut
        remember_gap(state, losses, segment.end - cut, segment.end)
        row = emit_row(state, out, number, side, GAP, packet, time_ns)
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
) -> None:
    """Write the bytes of a side up to `end` as missing, if there are any."""
    stream = state.connections[number].streams[side]
    start = stream.next
    if start >= end:
        return
    losses = losses_of(state, stream)
    losses.gaps += 1
    losses.gap_bytes += end - start
    count_unacked(stream, losses, start, end)
    stream.timed = NONE
    remember_gap(state, losses, start, end)
    stream.next = end
    row = emit_row(state, out, number, side, GAP, packet, time_ns)
    out.start[row] = stream.data_ns
    out.length[row] = end - start


@device_function
def count_unacked(stream: StreamRow, losses: LossRow, start: int, end: int) -> None:
    """Count those bytes of a gap that are not acknowledged so far."""
    if stream.acked >= losses.unacked_end:
        losses.unacked_gap_bytes = 0
    unacked = end - max(start, min(stream.acked, end))
    if unacked > 0:
        losses.unacked_gap_bytes += unacked
        losses.unacked_end = end


@device_function
def losses_of(state: StateArrays, stream: StreamRow) -> LossRow:
    """Return the loss counters of a stream, new ones if needed."""
    if stream.losses == 0:
        stream.losses = state.counts.loss_rows
        state.counts.loss_rows += 1
        losses = state.losses[stream.losses]
        losses.retransmitted_segments = losses.retransmitted_bytes = losses.late_bytes = 0
        losses.gaps = losses.gap_bytes = losses.cut_bytes = 0
        losses.newest_gap = losses.remembered = 0
        losses.zero_window_ns = losses.unacked_gap_bytes = 0
        losses.unacked_end = NONE
    return state.losses[stream.losses]


@device_function
def remember_gap(state: StateArrays, losses: LossRow, start: int, end: int) -> None:
    """Record a gap of a stream; if there are too many, it replaces the oldest."""
    gaps, counts, newest = state.gaps, state.counts, losses.newest_gap
    if losses.remembered == GAPS_REMEMBERED:
        row = gaps[newest].following
    else:
        row = counts.free_gap
        if row != 0:
            counts.free_gap = gaps[row].following
        else:
            row = counts.gap_rows
            counts.gap_rows = row + 1
        losses.remembered += 1
        if newest == 0:
            gaps[row].following = row
        else:
            gaps[row].following = gaps[newest].following
            gaps[newest].following = row
    gaps[row].start, gaps[row].end = start, end
    losses.newest_gap = row


@device_function
def count_old(state: StateArrays, stream: StreamRow, start: int, end: int) -> None:
    """Count those bytes of a segment that lie before the next one as late or retransmitted."""
    if end - start == 1 and end == stream.next:
        return  # a keep-alive
    end = min(end, stream.next)
    losses = losses_of(state, stream)
    late, row = max(min(end, stream.first) - start, 0), losses.newest_gap
    for _ in range(losses.remembered):
        gap = state.gaps[row]
        late += max(min(end, gap.end) - max(start, gap.start), 0)
        row = gap.following
    losses.late_bytes += late
    count_repeated(state, stream, end - start - late)


@device_function
def count_repeated(state: StateArrays, stream: StreamRow, number: int) -> None:
    """Count the bytes of a segment that wait already."""
    if number > 0:
        losses = losses_of(state, stream)
        losses.retransmitted_segments += 1
        losses.retransmitted_bytes += number
        stream.resent += 1
        stream.resent_ns = state.segment.time_ns
        stream.timed = NONE  # it is unknown which of both an acknowledgement is for
