"""The fast path of TCP reassembly: a kernel on the connections' rows."""

from __future__ import annotations

from dissector.capture.columns import DATA, END
from dissector.capture.tcp.both_paths.tcp_header import ACK, FIN, RST, SYN
from dissector.capture.tcp.both_paths.tcp_rows import (
    MAX_ROWS_PER_SEGMENT,
    ChunkArrays,
    FlowArrays,
    SegmentArrays,
    StateArrays,
)
from dissector.capture.tcp.fast_path.connection_row import (
    ENDED_BY_RST,
    accepts_reset,
    acknowledge,
    close_side,
    is_first_syn_ack,
    is_in_order,
    open_side,
    opens_connection,
    start_connection,
)
from dissector.capture.tcp.fast_path.flow_lookup import ANY_NETWORK, find_flow, put_flow
from dissector.capture.tcp.fast_path.rows_kernel import emit_row
from dissector.capture.tcp.fast_path.waiting_kernel import PROCESSED, process_out_of_order
from dissector.kernel import Kernel, device_function

NEW_FLOWS = 3


@Kernel
def process_segments(
    segments: SegmentArrays,
    flows: FlowArrays,
    state: StateArrays,
    out: ChunkArrays,
    at: int,
    until: int,
) -> int:
    """
    Process segments from `at` on; return the first that needs the slow path, or their number.

    The result equals that of the slow path exactly. Left to the slow path are segments of live
    connections, segments that open or close a connection with waiting data, data of sides with an
    unknown beginning, and segments from `until` on. It also stops where the tables have no room:
    then `needed_rows` is not 0.
    """
    counts = state.counts
    counts.owner, counts.needed_rows = -1, 0
    i = at
    while i < len(segments.packet):
        flow = flow_of(segments, flows, state, i, segments.network[i])
        owner = flows.owner[flow] if flow >= 0 else -1
        counts.owner = owner
        if i >= until:
            break
        if counts.rows + MAX_ROWS_PER_SEGMENT > len(out.barrier):
            counts.needed_rows = MAX_ROWS_PER_SEGMENT
            break
        control = segments.flags[i] & (FIN | SYN | RST | ACK)
        if control == SYN:
            if not open_connection(segments, flows, state, owner, i):
                break
            owner = 2 * counts.connections - 2
        elif owner < 0:
            break
        number, side = owner >> 1, owner & 1
        connection = state.connections[number]
        if connection.is_live:
            break
        stream, peer = connection.streams[side], connection.streams[1 - side]
        packet, time_ns = segments.packet[i], segments.time_ns[i]
        seq, ack = segments.seq[i], segments.ack[i]
        if control == ACK:
            is_next = segments.length[i] == segments.captured[i] and (
                segments.length[i] == 0 or is_in_order(stream, control, seq)
            )
            if is_next and connection.waits == 0:
                acknowledge(peer, ack, packet, time_ns)
                emit_in_order(segments, state, out, number, side, i)
            elif process_out_of_order(segments, state, out, number, side, i) != PROCESSED:
                break
        elif connection.waits != 0:
            break
        elif control == SYN | ACK:
            if segments.length[i] != 0 or not is_first_syn_ack(connection, side):
                break
            open_side(connection, side, seq)
            acknowledge(peer, ack, packet, time_ns)
        elif control == RST or control == RST | ACK:
            if not accepts_reset(connection, side, control, seq, ack):
                break
            if connection.ended == 0:
                connection.ended = ENDED_BY_RST
                emit_row(state, out, number, side, END, packet, time_ns, packet)
        elif control == FIN | ACK:
            if segments.captured[i] != segments.length[i] or not is_in_order(stream, control, seq):
                break
            acknowledge(peer, ack, packet, time_ns)
            emit_in_order(segments, state, out, number, side, i)
            if close_side(connection, side):
                emit_row(state, out, number, side, END, packet, time_ns, packet)
        elif control != SYN:
            break
        stream.packets += 1
        connection.last_ns = max(connection.last_ns, time_ns)
        i += 1
    return i


@device_function
def flow_of(
    segments: SegmentArrays, flows: FlowArrays, state: StateArrays, i: int, network: int
) -> int:
    """Return the flow of a segment in a network, as `find_flow`."""
    source, source_port = segments.source, segments.source_port
    target, target_port = segments.target, segments.target_port
    return find_flow(state.connections, flows, network, source, source_port, target, target_port, i)


@device_function
def flow_back(
    segments: SegmentArrays, flows: FlowArrays, state: StateArrays, i: int, network: int
) -> int:
    """Return the flow of the replies to a segment in a network, as `find_flow`."""
    source, source_port = segments.source, segments.source_port
    target, target_port = segments.target, segments.target_port
    return find_flow(state.connections, flows, network, target, target_port, source, source_port, i)


@device_function
def open_connection(
    segments: SegmentArrays, flows: FlowArrays, state: StateArrays, owner: int, i: int
) -> bool:
    """Add the connection that a SYN opens; return whether it certainly does, and there is room."""
    counts, network = state.counts, segments.network[i]
    back = flow_back(segments, flows, state, i, network)
    other = flows.owner[back] if back >= 0 else -1
    seq = segments.seq[i]
    if segments.length[i] != 0 or not opens_connection(state.connections, owner, other, seq):
        return False
    number, count = counts.connections, counts.flows
    if number == len(state.connections) or count + NEW_FLOWS > len(flows.owner):
        return False
    start_connection(state.connections[number], segments, i)
    counts.connections = number + 1
    open_side(state.connections[number], 0, seq)
    count = put_flow(flows, count, back, network, 2 * number + 1)
    flow = flow_of(segments, flows, state, i, network)
    count = put_flow(flows, count, flow, network, 2 * number)
    back = flow_back(segments, flows, state, i, ANY_NETWORK)
    counts.flows = put_flow(flows, count, back, ANY_NETWORK, 2 * number + 1)
    return True


@device_function
def emit_in_order(
    segments: SegmentArrays, state: StateArrays, out: ChunkArrays, number: int, side: int, i: int
) -> None:
    """Emit the bytes of an expected segment, of a connection without waiting data."""
    length, time_ns = segments.length[i], segments.time_ns[i]
    if length == 0:
        return
    packet, stream = segments.packet[i], state.connections[number].streams[side]
    row = emit_row(state, out, number, side, DATA, packet, time_ns, packet)
    out.start[row] = segments.start[i]
    out.length[row] = length
    stream.next += length
    stream.bytes += length
    stream.data_ns = time_ns
