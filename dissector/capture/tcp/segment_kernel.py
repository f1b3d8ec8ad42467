"""Kernels that process segments: each is looked up, and most are the next of their stream."""

from __future__ import annotations

from dissector.capture.columns import ACK, CLOSED_WINDOW, DATA, FIN, NO_HEADER, RST, SEQ_MASK, SYN
from dissector.capture.hashing import hash_endpoints
from dissector.capture.tcp.chunk_kernel import emit_row
from dissector.capture.tcp.connection_kernel import (
    ENDED_BY_REUSE,
    check_again,
    due,
    end_connection,
    finish_if_closed,
    matches_silent_side,
    meet_deadline,
    receive,
    start_connection,
    starts_new_connection,
    swap_sides,
)
from dissector.capture.tcp.round_trips import begin_timing
from dissector.capture.tcp.stream_kernel import acknowledge, flush, has_data, settle
from dissector.capture.tcp.tcp_rows import (
    GAPS_REMEMBERED,
    NONE,
    ChunkArrays,
    ConnectionRow,
    EndRow,
    FlowArrays,
    SegmentArrays,
    SegmentRow,
    StateArrays,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64
from dissector.kernel.named_rows import Rows

ANY_NETWORK = -1
"""Network of flows of a connection's silent direction, whatever its network is."""

NEW_FLOWS = 3
"""Flows of a new connection."""


@Kernel
def process_segments(
    segments: SegmentArrays, flows: FlowArrays, state: StateArrays, out: ChunkArrays, at: int
) -> int:
    """Process segments from `at` on; return the first without room in the tables, or their end."""
    counts, segment = state.counts, state.segment
    while at < len(segments.packet):
        load_segment(segments, at, segment)
        counts.packet = segment.packet
        if not meet_deadlines(flows, state, out):
            return at
        if counts.rows == len(out.barrier):
            counts.needed_rows = 1
            return at
        owner = find_owner(flows, state, segment.network)
        is_next = owner >= 0 and process_next(state, out, owner >> 1, owner & 1)
        if not is_next and not process_any(flows, state, out, owner):
            return at
        at += 1
    return at


@Kernel
def flush_connections(
    numbers: I64, flows: FlowArrays, state: StateArrays, out: ChunkArrays, at: int
) -> int:
    """
    Release all that waits in connections, with gaps for the holes, at the end.

    Args:
        numbers: The connections.
        flows: Of all.
        state: Of all.
        out: Receives the rows.
        at: Index of the first to flush.

    Returns:
        The index of the first without room, or their number.
    """
    while at < len(numbers) and has_room(flows, state, out, numbers[at], numbers[at]):
        number = numbers[at]
        connection = state.connections[number]
        flush(state, out, number, 0)
        flush(state, out, number, 1)
        # The result must not depend on the clock that other connections have advanced.
        finish_if_closed(state, out, number, 0, connection.last_ns)
        settle(state, connection)
        at += 1
    return at


@Kernel
def rehash(connections: Rows[ConnectionRow], flows: FlowArrays, count: int) -> int:
    """Fill empty slots with flows that differ."""
    last = len(flows.slots) - 1
    for flow in range(count):
        owner = flows.owner[flow]
        if owner < 0:
            owner = -1 - owner
        ends = connections[owner >> 1].ends
        slot = slot_of(flows, flows.network[flow], ends[owner & 1], ends[1 - (owner & 1)])
        while flows.slots[slot] != 0:
            slot = (slot + 1) & last
        flows.slots[slot] = flow + 1
    return count


@device_function
def meet_deadlines(flows: FlowArrays, state: StateArrays, out: ChunkArrays) -> bool:
    """Meet the deadlines that the clock has reached; return whether there is room for that."""
    clock_ns, rings = state.segment.clock_ns, state.counts.rings
    number = due(state.deadlines, rings[0], clock_ns)
    while number >= 0:
        if not has_room(flows, state, out, number, number):
            return False
        meet_deadline(state, out, state.deadlines, rings[0])
        number = due(state.deadlines, rings[0], clock_ns)
    number = due(state.checks, rings[1], clock_ns)
    while number >= 0:
        if not has_room(flows, state, out, number, number):
            return False
        meet_deadline(state, out, state.checks, rings[1])
        check_again(state, number)
        number = due(state.checks, rings[1], clock_ns)
    return True


@device_function
def load_segment(segments: SegmentArrays, i: int, segment: SegmentRow) -> None:
    """Copy a row of `Segments`."""
    source, target = segment.ends[0], segment.ends[1]
    source.high, source.low = segments.source[i, 0], segments.source[i, 1]
    source.port = segments.source_port[i]
    target.high, target.low = segments.target[i, 0], segments.target[i, 1]
    target.port = segments.target_port[i]
    segment.network = segments.network[i]
    segment.packet = segments.packet[i]
    segment.time_ns = segments.time_ns[i]
    segment.clock_ns = segments.clock_ns[i]
    segment.seq = segments.seq[i]
    segment.ack = segments.ack[i]
    segment.flags = segments.flags[i] & (FIN | SYN | RST | ACK | CLOSED_WINDOW | NO_HEADER)
    segment.start = segments.start[i]
    segment.length = segments.length[i]
    segment.captured = segments.captured[i]


@device_function
def process_next(state: StateArrays, out: ChunkArrays, number: int, side: int) -> bool:
    """Process a segment that is next in its stream, while nothing waits; return whether it is."""
    connection, segment = state.connections[number], state.segment
    stream, length = connection.streams[side], segment.length
    if segment.flags != ACK or connection.waits != 0 or length != segment.captured:
        return False
    if stream.closed_ns != NONE:
        return False
    if length != 0 and (stream.next == NONE or (segment.seq - stream.next) & SEQ_MASK != 0):
        return False
    acknowledge(state, connection, 1 - side, segment)
    if length != 0:
        row = emit_row(state, out, number, side, DATA, segment.packet, segment.time_ns)
        out.start[row] = segment.start
        out.length[row] = length
        stream.next += length
        stream.bytes += length
        stream.data_ns = segment.time_ns
        begin_timing(stream, segment)
    stream.packets += 1
    connection.last_ns = max(connection.last_ns, segment.time_ns)
    return True


@device_function
def process_any(flows: FlowArrays, state: StateArrays, out: ChunkArrays, owner: int) -> bool:
    """
    Process any segment; return whether there is room for all that it may add.

    Args:
        flows: Of all connections.
        state: Of all connections.
        out: Receives the rows.
        owner: The owner of the segment's flow; negative without one.
    """
    connections, segment, joined = state.connections, state.segment, -1
    is_new = owner < 0
    if owner >= 0:
        is_new = starts_new_connection(state, connections[owner >> 1], owner & 1, segment)
    if is_new:
        joined = silent_owner(flows, state, owner)
    if not has_room(flows, state, out, max(owner, 0) >> 1, max(joined, 0) >> 1):
        return False
    if is_new and owner >= 0:
        end_connection(state, out, owner >> 1, owner & 1, ENDED_BY_REUSE, segment.time_ns)
        settle(state, connections[owner >> 1])
    if joined >= 0:
        put_flow(flows, state, segment.network, segment.ends[0], segment.ends[1], joined)
        owner = joined
    elif is_new:
        owner = open_connection(flows, state)
    elif segment.flags & SYN:
        owner = orient(flows, state, owner)
    receive(state, out, owner >> 1, owner & 1)
    settle(state, connections[owner >> 1])
    return True


@device_function
def silent_owner(flows: FlowArrays, state: StateArrays, owner: int) -> int:
    """Return the silent side of another connection that sent a segment; -1 without one."""
    silent = find_owner(flows, state, ANY_NETWORK)
    if silent < 0 or (owner >= 0 and silent >> 1 == owner >> 1):
        return -1
    connection = state.connections[silent >> 1]
    return silent if matches_silent_side(state, connection, silent & 1, state.segment) else -1


@device_function
def has_room(
    flows: FlowArrays, state: StateArrays, out: ChunkArrays, number: int, other: int
) -> bool:
    """
    Return whether there is room for all that a segment may add; else record what is needed.

    Args:
        flows: Of all connections.
        state: Of all connections.
        out: Receives the rows.
        number: A connection that the segment may change.
        other: Another one.
    """
    counts, segments, parts, waiting_bytes = state.counts, 0, 4, 0
    for each in (number, other):
        waits = state.connections[each].waits
        if waits != 0:
            wait = state.waits[waits]
            segments += wait.sides[0].segments + wait.sides[1].segments
            parts += wait.sides[0].runs + wait.sides[1].runs
            waiting_bytes += wait.sides[0].bytes + wait.sides[1].bytes
    rows = 3 * (segments + parts) + 8
    # The next segments need more.
    counts.needed_rows, counts.needed_segments = 2 * rows, parts
    counts.needed_bytes = 2 * waiting_bytes
    return bool(
        counts.rows + rows <= len(out.barrier)
        and counts.carried_bytes + waiting_bytes <= len(out.carry_over)
        and counts.segments_live + parts < len(state.waiting)
        and counts.segments_live + parts < len(state.runs)
        and counts.waits_used < len(state.waits)
        and counts.loss_rows + 4 <= len(state.losses)
        and counts.gap_rows + 4 * GAPS_REMEMBERED <= len(state.gaps)
        and counts.rings[0].count < len(state.deadlines)
        and counts.rings[1].count < len(state.checks)
        and counts.connections < len(state.connections)
        and counts.flows + NEW_FLOWS <= len(flows.owner)
    )


@device_function
def open_connection(flows: FlowArrays, state: StateArrays) -> int:
    """Add a connection with its first segment; return the side that sent it as an owner."""
    counts, segment = state.counts, state.segment
    source, target, network = segment.ends[0], segment.ends[1], segment.network
    number, side = counts.connections, segment.flags & (SYN | ACK) == SYN | ACK
    connection = state.connections[number]
    start_connection(connection, segment, 1 if side else 0)
    counts.connections = number + 1
    # Side 0 last: an endpoint connected to itself has only that side.
    ends = connection.ends
    put_flow(flows, state, network, ends[1], ends[0], 2 * number + 1)
    put_flow(flows, state, network, ends[0], ends[1], 2 * number)
    put_flow(flows, state, ANY_NETWORK, target, source, 2 * number + (0 if side else 1))
    return 2 * number + (find_owner(flows, state, network) & 1)


@device_function
def orient(flows: FlowArrays, state: StateArrays, owner: int) -> int:
    """Exchange the sides if a handshake shows the opener late; return the sender as an owner."""
    segment, number = state.segment, owner >> 1
    connection = state.connections[number]
    opener = 1 - (owner & 1) if segment.flags & ACK else owner & 1
    has_any = has_data(state, connection, 0) or has_data(state, connection, 1)
    if opener == 1 and not connection.oriented and not has_any and connection.ended == 0:
        a, b, network = connection.ends[0], connection.ends[1], connection.network
        first, second = (
            find_flow(flows, state, network, a, b),
            find_flow(flows, state, network, b, a),
        )
        silent = find_flow(flows, state, ANY_NETWORK, b, a)
        swap_sides(connection)
        flows.owner[first], flows.owner[second] = 2 * number + 1, 2 * number
        if silent >= 0:
            flows.owner[silent] = -1 - 2 * number
    connection.oriented = True
    return 2 * number + (find_owner(flows, state, segment.network) & 1)


@device_function
def find_owner(flows: FlowArrays, state: StateArrays, network: int) -> int:
    """Return the owner of a segment's flow in a network; negative without one."""
    flow = find_flow(flows, state, network, state.segment.ends[0], state.segment.ends[1])
    return flows.owner[flow] if flow >= 0 else -1


@device_function
def slot_of(flows: FlowArrays, network: int, source: EndRow, target: EndRow) -> int:
    """Return the slot of the hash of a flow."""
    hashed = hash_endpoints(
        flows.secret,
        network,
        source.high,
        source.low,
        source.port,
        target.high,
        target.low,
        target.port,
    )
    return hashed & len(flows.slots) - 1


@device_function
def find_flow(
    flows: FlowArrays, state: StateArrays, network: int, source: EndRow, target: EndRow
) -> int:
    """Return a flow; without one, `-1 -` the free slot."""
    slot, last = slot_of(flows, network, source, target), len(flows.slots) - 1
    while flows.slots[slot] != 0:
        flow = flows.slots[slot] - 1
        if flows.network[flow] == network:
            owner = flows.owner[flow]
            if owner < 0:
                owner = -1 - owner
            connection = state.connections[owner >> 1]
            sender, receiver = connection.ends[owner & 1], connection.ends[1 - (owner & 1)]
            if is_same_end(sender, source) and is_same_end(receiver, target):
                return flow
        slot = (slot + 1) & last
    return -1 - slot


@device_function
def is_same_end(end: EndRow, other: EndRow) -> bool:
    """Return whether two endpoints are the same."""
    return end.port == other.port and end.low == other.low and end.high == other.high


@device_function
def put_flow(
    flows: FlowArrays, state: StateArrays, network: int, source: EndRow, target: EndRow, owner: int
) -> None:
    """Set the owner of a flow, which must have its row already; there must be room."""
    flow, count = find_flow(flows, state, network, source, target), state.counts.flows
    if flow < 0:
        flows.slots[-1 - flow] = count + 1
        flow = count
        flows.network[flow] = network
        state.counts.flows = count + 1
    flows.owner[flow] = owner
