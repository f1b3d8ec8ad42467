"""Device functions for the life of a connection: what its handshake, FIN and RST mean."""

from __future__ import annotations

from dissector.capture.columns import ACK, CLOSED_WINDOW, END, FIN, RST, SEQ_MASK, SYN
from dissector.capture.tcp.chunk_kernel import emit_barriers, emit_row, losses_of
from dissector.capture.tcp.round_trips import begin_timing
from dissector.capture.tcp.stream_kernel import (
    START_WAIT_BYTES,
    WAIT_NS,
    acknowledge,
    advance,
    close_stream,
    expected,
    first_waiting,
    flush,
    has_data,
    is_near,
    is_pending,
    near,
    open_stream,
    receive_bytes,
    settle,
    unwrap,
)
from dissector.capture.tcp.tcp_rows import (
    NONE,
    ChunkArrays,
    ConnectionRow,
    EndRow,
    SegmentRow,
    StateArrays,
    StreamRow,
    clear_stream,
)
from dissector.capture.tcp.waiting_rows import DeadlineRow, Ring
from dissector.kernel import device_function
from dissector.kernel.named_rows import Rows

CHECK_NS = 1_000_000_000
"""Interval in which holes are checked for that age: how late one may become a gap."""

RESET_WINDOW_BYTES = 1 << 20
"""Distance from the next expected byte within which a RST is accepted."""

REPLY_WINDOW_BYTES = 1 << 20
"""Maximum distance of a segment from the acknowledgements of the other direction."""


ENDED_BY_FIN, ENDED_BY_RST, ENDED_BY_REUSE = 1, 2, 3
"""Indexes into `END_REASONS`."""


@device_function
def start_connection(connection: ConnectionRow, segment: SegmentRow, side: int) -> None:
    """Initialise the row of a connection; its first segment is sent by `side`."""
    copy_end(connection.ends[side], segment.ends[0])
    copy_end(connection.ends[1 - side], segment.ends[1])
    connection.network = segment.network
    connection.first_packet = segment.packet
    connection.first_ns = connection.last_ns = segment.time_ns
    connection.ended = connection.waits = connection.woken = 0
    connection.oriented = segment.flags & SYN != 0
    connection.syn_seen = connection.is_checked = False
    clear_stream(connection.streams[0])
    clear_stream(connection.streams[1])


@device_function
def copy_end(to: EndRow, end: EndRow) -> None:
    """Copy an endpoint."""
    to.high, to.low, to.port = end.high, end.low, end.port


@device_function
def swap_sides(connection: ConnectionRow) -> None:
    """Exchange the sides of a connection without data."""
    a, b = connection.ends[0], connection.ends[1]
    a.high, b.high = b.high, a.high
    a.low, b.low = b.low, a.low
    a.port, b.port = b.port, a.port
    swap_streams(connection.streams[0], connection.streams[1])


@device_function
def swap_streams(a: StreamRow, b: StreamRow) -> None:
    """Exchange two streams."""
    a.next, b.next = b.next, a.next
    a.first, b.first = b.first, a.first
    a.acked, b.acked = b.acked, a.acked
    a.first_acked, b.first_acked = b.first_acked, a.first_acked
    a.acked_ns, b.acked_ns = b.acked_ns, a.acked_ns
    a.acked_packet, b.acked_packet = b.acked_packet, a.acked_packet
    a.packets, b.packets = b.packets, a.packets
    a.bytes, b.bytes = b.bytes, a.bytes
    a.data_ns, b.data_ns = b.data_ns, a.data_ns
    a.resent, b.resent = b.resent, a.resent
    a.has_isn, b.has_isn = b.has_isn, a.has_isn
    a.fin, b.fin = b.fin, a.fin
    a.fin_packet, b.fin_packet = b.fin_packet, a.fin_packet
    a.fin_ns, b.fin_ns = b.fin_ns, a.fin_ns
    a.finished, b.finished = b.finished, a.finished
    a.losses, b.losses = b.losses, a.losses
    a.timed, b.timed = b.timed, a.timed
    a.timed_ns, b.timed_ns = b.timed_ns, a.timed_ns
    a.handshake_ns, b.handshake_ns = b.handshake_ns, a.handshake_ns
    a.srtt_ns, b.srtt_ns = b.srtt_ns, a.srtt_ns
    a.least_ns, b.least_ns = b.least_ns, a.least_ns
    a.least_at, b.least_at = b.least_at, a.least_at
    a.resent_ns, b.resent_ns = b.resent_ns, a.resent_ns
    a.closed_ns, b.closed_ns = b.closed_ns, a.closed_ns
    a.first_bytes, b.first_bytes = b.first_bytes, a.first_bytes


@device_function
def is_closed(connection: ConnectionRow) -> bool:
    """Return whether a side has closed or reset a connection."""
    first, second = connection.streams[0], connection.streams[1]
    return connection.ended != 0 or first.fin != NONE or second.fin != NONE


@device_function
def starts_new_connection(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> bool:
    """Return whether a segment from `side` shows that the ports are reused."""
    if segment.flags & SYN:
        return syn_starts_new_connection(state, connection, side, segment)
    reference = expected(state, connection, side)
    if segment.length == 0 or segment.flags & RST or reference == NONE:
        return False
    return not is_near(near(segment.seq, reference), reference)


@device_function
def syn_starts_new_connection(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> bool:
    """Return whether a SYN from `side` shows that the ports are reused."""
    stream = connection.streams[side]
    if stream.has_isn:
        if (segment.seq - stream.first + 1) & SEQ_MASK == 0:
            return False
    else:
        # A SYN may be captured after the first bytes.
        begun = stream.first
        if begun == NONE:
            begun = expected(state, connection, side)
        if begun != NONE and (begun - segment.seq - 1) & SEQ_MASK <= START_WAIT_BYTES:
            return False
    if is_closed(connection) or has_data(state, connection, side):
        return True
    return not segment.flags & ACK and has_data(state, connection, 1 - side)


@device_function
def matches_silent_side(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> bool:
    """
    Return whether a segment of another network was sent by the silent `side`.

    It must acknowledge data of the other side; after an acknowledgement by that side, its sequence
    number must be near it. 32 or 64 bits do not agree by chance.
    """
    stream, reference = connection.streams[side], expected(state, connection, 1 - side)
    if not segment.flags & ACK or segment.flags & RST or is_closed(connection):
        return False
    if stream.packets != 0 or reference == NONE:
        return False
    distance = near(segment.ack, reference) - reference
    if segment.flags & SYN:
        return distance == 0
    if stream.acked == NONE or not -REPLY_WINDOW_BYTES <= distance <= REPLY_WINDOW_BYTES:
        return False
    ahead = unwrap(state, connection, side, segment.seq) - stream.acked
    return -REPLY_WINDOW_BYTES <= ahead <= REPLY_WINDOW_BYTES


@device_function
def process_syn(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> None:
    """Process a SYN: it sets the start of its stream, and with ACK the start of the other."""
    stream, peer = connection.streams[side], connection.streams[1 - side]
    connection.syn_seen = True
    isn = unwrap(state, connection, side, segment.seq)
    is_known = stream.has_isn and stream.first == isn + 1
    stream.timed = NONE  # the SYN may be sent again
    if not is_known and (stream.next == NONE or not has_data(state, connection, side)):
        open_stream(state, connection, side, isn)
        begin_timing(stream, segment)
    is_peer_unknown = peer.next == NONE and first_waiting(state, connection, 1 - side) == 0
    if segment.flags & ACK and is_peer_unknown:
        begin = unwrap(state, connection, 1 - side, segment.ack)
        open_stream(state, connection, 1 - side, begin - 1)


@device_function
def accepts_reset(
    state: StateArrays, connection: ConnectionRow, side: int, segment: SegmentRow
) -> bool:
    """Return whether the receiver of a RST would accept it, according to the capture."""
    stream, peer = connection.streams[side], connection.streams[1 - side]
    if stream.next != NONE:
        number = near(segment.seq, stream.next)
        lowest = stream.next if stream.acked == NONE else min(stream.next, stream.acked)
        return lowest - 1 <= number <= stream.next + RESET_WINDOW_BYTES
    if segment.flags & ACK and peer.next != NONE:
        # A RST in reply to a SYN must acknowledge it. Source: RFC 9293 3.10.7.3.
        lowest = peer.first if peer.has_isn else peer.next - RESET_WINDOW_BYTES
        number = near(segment.ack, peer.next)
        return lowest <= number <= peer.next + RESET_WINDOW_BYTES
    return True


@device_function
def receive(state: StateArrays, out: ChunkArrays, number: int, side: int) -> None:
    """Process a segment of a known connection."""
    connection, segment = state.connections[number], state.segment
    stream, time_ns = connection.streams[side], segment.time_ns
    stream.packets += 1
    connection.last_ns = max(connection.last_ns, time_ns)
    if segment.flags & SYN:
        process_syn(state, connection, side, segment)
    if segment.flags & RST:
        if accepts_reset(state, connection, side, segment):
            end_connection(state, out, number, side, ENDED_BY_RST, time_ns)
        return
    if segment.flags & (SYN | FIN) == 0:
        observe_window(state, stream, segment)
    if segment.flags & ACK:
        acknowledge(state, connection, 1 - side, segment)
    advance(state, out, number, 1 - side, time_ns)
    receive_payload(state, out, number, side)
    advance(state, out, number, side, time_ns)
    if connection.waits != 0:
        emit_barriers(state, out, number, time_ns)
    finish_if_closed(state, out, number, side, time_ns)
    add_deadlines(state, number)


@device_function
def observe_window(state: StateArrays, stream: StreamRow, segment: SegmentRow) -> None:
    """Count how long the sender of a segment announces a window of zero."""
    is_closed = segment.flags & CLOSED_WINDOW != 0
    if is_closed and stream.closed_ns == NONE:
        stream.closed_ns = segment.time_ns
    elif not is_closed and stream.closed_ns != NONE:
        losses = losses_of(state, stream)
        losses.zero_window_ns += max(segment.time_ns - stream.closed_ns, 0)
        stream.closed_ns = NONE


@device_function
def receive_payload(state: StateArrays, out: ChunkArrays, number: int, side: int) -> None:
    """Process the payload and the FIN of a segment."""
    connection, segment = state.connections[number], state.segment
    begin = segment.seq + 1 if segment.flags & SYN else segment.seq  # a SYN occupies a number
    seq = unwrap(state, connection, side, begin & SEQ_MASK)
    if segment.length != 0:
        receive_bytes(state, out, number, side, seq, segment)
    if segment.flags & FIN:
        close_stream(state, connection, side, seq + segment.length, segment)


@device_function
def finish_if_closed(
    state: StateArrays, out: ChunkArrays, number: int, side: int, time_ns: int
) -> None:
    """End a connection if both sides are finished."""
    connection = state.connections[number]
    if connection.streams[0].finished and connection.streams[1].finished:
        end_connection(state, out, number, side, ENDED_BY_FIN, time_ns)


@device_function
def end_connection(
    state: StateArrays, out: ChunkArrays, number: int, side: int, how: int, time_ns: int
) -> None:
    """Release all that waits, and write the end of a connection, once."""
    connection = state.connections[number]
    flush(state, out, number, 0)
    flush(state, out, number, 1)
    if connection.ended == 0:
        connection.ended = how
        emit_row(state, out, number, side, END, state.counts.packet, time_ns)


@device_function
def meet_deadline(
    state: StateArrays, out: ChunkArrays, deadlines: Rows[DeadlineRow], ring: Ring
) -> None:
    """
    Give up holes in the connection of the first deadline, which may receive no more packets.

    The result depends on the clock, not on the connection of the segment that advanced it.
    """
    deadline = deadlines[ring.first]
    number, now_ns = deadline.connection, deadline.time_ns
    ring.first = (ring.first + 1) % len(deadlines)
    ring.count -= 1
    connection = state.connections[number]
    if connection.waits != 0 and is_waiting(state, connection):
        advance(state, out, number, 0, now_ns)
        advance(state, out, number, 1, now_ns)
        first, second = connection.streams[0], connection.streams[1]
        closer = 1 if second.fin_packet > first.fin_packet else 0
        finish_if_closed(state, out, number, closer, now_ns)
        settle(state, connection)


@device_function
def is_waiting(state: StateArrays, connection: ConnectionRow) -> bool:
    """Return whether the passage of time alone may release something in a connection."""
    return is_pending(state, connection, 0) or is_pending(state, connection, 1)


@device_function
def is_unacked(state: StateArrays, connection: ConnectionRow) -> bool:
    """Return whether a hole waits whose loss no captured acknowledgement confirms."""
    for side in range(2):
        if connection.streams[side].acked == NONE and is_pending(state, connection, side):
            return True
    return False


@device_function
def add_deadlines(state: StateArrays, number: int) -> None:
    """Set the deadlines of what waits in a connection after a segment."""
    connection, rings = state.connections[number], state.counts.rings
    clock_ns = state.segment.clock_ns
    if connection.waits == 0 or not is_waiting(state, connection):
        return
    add_deadline(state.deadlines, rings[0], clock_ns + WAIT_NS, number)
    if not connection.is_checked and is_unacked(state, connection):
        connection.is_checked = True
        add_deadline(state.checks, rings[1], clock_ns + CHECK_NS, number)


@device_function
def check_again(state: StateArrays, number: int) -> None:
    """Set the next check of a connection if a hole still waits without acknowledgements."""
    connection = state.connections[number]
    connection.is_checked = is_unacked(state, connection)
    if connection.is_checked:
        time_ns = state.segment.clock_ns + CHECK_NS
        add_deadline(state.checks, state.counts.rings[1], time_ns, number)


@device_function
def add_deadline(deadlines: Rows[DeadlineRow], ring: Ring, time_ns: int, number: int) -> None:
    """Add a deadline, which must not be before the others."""
    row = deadlines[(ring.first + ring.count) % len(deadlines)]
    row.time_ns, row.connection = time_ns, number
    ring.count += 1


@device_function
def due(deadlines: Rows[DeadlineRow], ring: Ring, clock_ns: int) -> int:
    """Return the connection of the first deadline if the clock has reached it; else -1."""
    if ring.count == 0 or deadlines[ring.first].time_ns > clock_ns:
        return -1
    return deadlines[ring.first].connection
