"""The fast path of TCP reassembly: a kernel on the connections' rows."""

from __future__ import annotations

from dissector.capture.columns import DATA, END
from dissector.capture.tcp.both_paths.chunk_columns import (
    LENGTH,
    MAX_ROWS_PER_SEGMENT,
    START,
)
from dissector.capture.tcp.both_paths.connection_columns import (
    BYTES,
    DATA_NS,
    ENDED,
    LAST_NS,
    LIVE,
    NEXT,
    PACKETS,
    SIDE,
    SIDES,
    STATE,
    WAITS,
)
from dissector.capture.tcp.both_paths.tcp_arrays import (
    ChunkArrays,
    FlowArrays,
    SegmentArrays,
    StateArrays,
)
from dissector.capture.tcp.both_paths.tcp_header import ACK, FIN, RST, SYN
from dissector.capture.tcp.both_paths.waiting_columns import (
    CONNECTIONS,
    FLOWS,
    NEEDED_ROWS,
    OWNER,
    ROWS,
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
from dissector.capture.tcp.fast_path.flow_lookup import OWNER as FLOW_OWNER
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
    then `NEEDED_ROWS` is not 0.
    """
    connections, counts = state.connections, state.counts
    counts[OWNER], counts[NEEDED_ROWS] = -1, 0
    i = at
    while i < len(segments.packet):
        flow = flow_of(segments, flows, state, i, segments.network[i])
        owner = flows.rows[flow, FLOW_OWNER] if flow >= 0 else -1
        counts[OWNER] = owner
        if i >= until:
            break
        if counts[ROWS] + MAX_ROWS_PER_SEGMENT > len(out.barrier):
            counts[NEEDED_ROWS] = MAX_ROWS_PER_SEGMENT
            break
        number, side = owner >> 1, owner & 1
        control = segments.flags[i] & (FIN | SYN | RST | ACK)
        packet, time_ns = segments.packet[i], segments.time_ns[i]
        if control == SYN:
            if not open_connection(segments, flows, state, owner, i):
                break
            number, side = counts[CONNECTIONS] - 1, 0
        elif owner < 0 or connections[number, STATE] & LIVE != 0:
            break
        elif control == ACK:
            is_next = segments.length[i] == segments.captured[i] and (
                segments.length[i] == 0
                or is_in_order(connections, number, side, control, segments.seq[i])
            )
            if is_next and connections[number, WAITS] == 0:
                acknowledge(connections, number, 1 - side, segments.ack[i], packet, time_ns)
                emit_in_order(segments, state, out, number, side, i)
            elif process_out_of_order(segments, state, out, number, side, i) != PROCESSED:
                break
        elif connections[number, WAITS] != 0:
            break
        elif control == SYN | ACK:
            if segments.length[i] != 0 or not is_first_syn_ack(connections, number, side):
                break
            open_side(connections, number, side, segments.seq[i])
            acknowledge(connections, number, 1 - side, segments.ack[i], packet, time_ns)
        elif control == RST or control == RST | ACK:
            seq, ack = segments.seq[i], segments.ack[i]
            if not accepts_reset(connections, number, side, control, seq, ack):
                break
            if connections[number, STATE] & ENDED == 0:
                connections[number, STATE] |= ENDED_BY_RST
                emit_row(state, out, number, side, END, packet, time_ns, packet)
        elif control == FIN | ACK:
            if segments.captured[i] != segments.length[i]:
                break
            if not is_in_order(connections, number, side, control, segments.seq[i]):
                break
            acknowledge(connections, number, 1 - side, segments.ack[i], packet, time_ns)
            emit_in_order(segments, state, out, number, side, i)
            if close_side(connections, number, side):
                emit_row(state, out, number, side, END, packet, time_ns, packet)
        else:
            break
        connections[number, SIDES + SIDE * side + PACKETS] += 1
        connections[number, LAST_NS] = max(connections[number, LAST_NS], time_ns)
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
    connections, counts, network = state.connections, state.counts, segments.network[i]
    back = flow_back(segments, flows, state, i, network)
    other = flows.rows[back, FLOW_OWNER] if back >= 0 else -1
    seq = segments.seq[i]
    if segments.length[i] != 0 or not opens_connection(connections, owner, other, seq):
        return False
    number, count = counts[CONNECTIONS], counts[FLOWS]
    if number == len(connections) or count + NEW_FLOWS > len(flows.rows):
        return False
    start_connection(connections, number, segments, i)
    counts[CONNECTIONS] = number + 1
    open_side(connections, number, 0, seq)
    count = put_flow(flows.rows, flows.slots, count, back, network, 2 * number + 1)
    flow = flow_of(segments, flows, state, i, network)
    count = put_flow(flows.rows, flows.slots, count, flow, network, 2 * number)
    back = flow_back(segments, flows, state, i, ANY_NETWORK)
    count = put_flow(flows.rows, flows.slots, count, back, ANY_NETWORK, 2 * number + 1)
    counts[FLOWS] = count
    return True


@device_function
def emit_in_order(
    segments: SegmentArrays, state: StateArrays, out: ChunkArrays, number: int, side: int, i: int
) -> None:
    """Emit the bytes of an expected segment, of a connection without waiting data."""
    length = segments.length[i]
    if length == 0:
        return
    packet = segments.packet[i]
    row = emit_row(state, out, number, side, DATA, packet, segments.time_ns[i], packet)
    out.wide[START, row] = segments.start[i]
    out.wide[LENGTH, row] = length
    state.connections[number, SIDES + SIDE * side + NEXT] += length
    state.connections[number, SIDES + SIDE * side + BYTES] += length
    state.connections[number, SIDES + SIDE * side + DATA_NS] = segments.time_ns[i]
