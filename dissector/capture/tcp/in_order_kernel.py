"""The fast path of TCP reassembly: a kernel for in-order segments, on the connections' rows."""

from __future__ import annotations

from dissector.capture.columns import DATA, END, GAP, IN_WINDOW, NEVER
from dissector.capture.tcp.chunk_builder import (
    CONNECTION,
    KIND,
    LENGTH,
    MAX_ROWS_PER_SEGMENT,
    ORIGIN,
    PACKET,
    RELEASE,
    START,
    TIME_NS,
)
from dissector.capture.tcp.chunk_builder import SIDE as CHUNK_SIDE
from dissector.capture.tcp.connection_columns import (
    COUNTERS_AT,
    ENDED,
    FIRST_NS,
    FIRST_PACKET,
    LAST_NS,
    LIVE,
    PACKETS,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    STATE,
)
from dissector.capture.tcp.connection_row import (
    ENDED_BY_RST,
    accepts_reset,
    acknowledge,
    close_side,
    count_bytes,
    count_old,
    has_gap_ring,
    is_first_syn_ack,
    is_in_order,
    is_old,
    open_side,
    opens_connection,
    start_connection,
)
from dissector.capture.tcp.connection_state import ACK, FIN, RST, SYN
from dissector.capture.tcp.flow_table import ANY_NETWORK, OWNER, find_flow, put_flow
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, I8Table, I32Table, I64Table

ROWS, CONNECTIONS, FLOWS, FOUND = range(4)
"""
Counters passed in and out, and the owner of the flow of the segment at which the kernel
stopped.
"""

NEW_FLOWS = 3


@Kernel
def process_in_order(
    network: I32,
    source: I64Table,
    source_port: I32,
    target: I64Table,
    target_port: I32,
    packet: I64,
    time_ns: I64,
    seq: I64,
    ack: I64,
    flags: I32,
    start: I64,
    length: I64,
    captured: I64,
    connections: I64Table,
    counters: I64Table,
    gaps: I64Table,
    flows: I32Table,
    slots: I32,
    secret: I64,
    wide: I64Table,
    narrow: I8Table,
    barrier: I64Table,
    counts: I64,
    at: int,
    until: int,
) -> int:
    """
    Process segments from `at` on; return the first that needs the slow path, or their number.

    The result is exactly that of the slow path. Left to the slow path are segments that are neither
    next nor repeated, a side's first repeated one, segments of materialised connections, those from
    `until` on, and those for which the tables have no room.
    """
    rows, connection_count, flow_count = counts[ROWS], counts[CONNECTIONS], counts[FLOWS]
    owner = -1
    i = at
    while i < len(packet):
        flow = find_flow(
            connections,
            flows,
            slots,
            secret,
            network[i],
            source,
            source_port,
            target,
            target_port,
            i,
        )
        owner = flows[flow, OWNER] if flow >= 0 else -1
        if i >= until or rows + MAX_ROWS_PER_SEGMENT > len(barrier):
            break
        number, side = owner >> 1, owner & 1
        control = flags[i] & (FIN | SYN | RST | ACK)
        if control == SYN:
            back = find_flow(
                connections,
                flows,
                slots,
                secret,
                network[i],
                target,
                target_port,
                source,
                source_port,
                i,
            )
            other = flows[back, OWNER] if back >= 0 else -1
            if length[i] != 0 or not opens_connection(connections, owner, other, seq[i]):
                break
            if connection_count == len(connections) or flow_count + NEW_FLOWS > len(flows):
                break
            number, side = connection_count, 0
            connection_count += 1
            start_connection(
                connections, number, network[i], source, source_port, target, target_port, i
            )
            connections[number, FIRST_PACKET] = packet[i]
            connections[number, FIRST_NS] = connections[number, LAST_NS] = time_ns[i]
            open_side(connections, number, side, seq[i])
            flow_count = put_flow(flows, slots, flow_count, back, network[i], 2 * number + 1)
            flow = find_flow(
                connections,
                flows,
                slots,
                secret,
                network[i],
                source,
                source_port,
                target,
                target_port,
                i,
            )
            flow_count = put_flow(flows, slots, flow_count, flow, network[i], 2 * number)
            back = find_flow(
                connections,
                flows,
                slots,
                secret,
                ANY_NETWORK,
                target,
                target_port,
                source,
                source_port,
                i,
            )
            flow_count = put_flow(flows, slots, flow_count, back, ANY_NETWORK, 2 * number + 1)
        elif owner < 0 or connections[number, STATE] & LIVE != 0:
            break
        elif control == SYN | ACK:
            if length[i] != 0 or not is_first_syn_ack(connections, number, side):
                break
            open_side(connections, number, side, seq[i])
            acknowledge(connections, number, 1 - side, ack[i], packet[i], time_ns[i])
        elif control == RST or control == RST | ACK:
            if not accepts_reset(connections, number, side, control, seq[i], ack[i]):
                break
            if connections[number, STATE] & ENDED == 0:
                connections[number, STATE] |= ENDED_BY_RST
                emit(wide, narrow, barrier, rows, number, side, END, 0, 0, packet[i], time_ns[i])
                rows += 1
        elif control == ACK or control == FIN | ACK:
            is_pure_ack = length[i] == 0 and control == ACK
            is_next = is_pure_ack or is_in_order(connections, number, side, control, seq[i])
            if not is_next:
                # A repeated segment: retransmitted, or captured twice.
                has_counters = connections[number, SIDES + SIDE * side + SIDE_FLAGS] >> COUNTERS_AT
                if control != ACK or has_counters == 0:
                    break
                if not is_old(connections, number, side, seq[i], length[i]):
                    break
                count_old(connections, counters, gaps, number, side, seq[i], length[i])
            cut = length[i] - captured[i] if is_next else 0
            if cut != 0 and (
                control & FIN != 0 or not has_gap_ring(connections, counters, number, side)
            ):
                break
            acknowledge(connections, number, 1 - side, ack[i], packet[i], time_ns[i])
            if captured[i] != 0 and is_next:
                at, size = start[i], captured[i]
                emit(
                    wide, narrow, barrier, rows, number, side, DATA, at, size, packet[i], time_ns[i]
                )
                rows += 1
            if cut != 0:
                emit(wide, narrow, barrier, rows, number, side, GAP, 0, cut, packet[i], time_ns[i])
                rows += 1
            if length[i] != 0 and is_next:
                count_bytes(connections, counters, gaps, number, side, length[i], cut)
            if control & FIN != 0 and close_side(connections, number, side):
                emit(wide, narrow, barrier, rows, number, side, END, 0, 0, packet[i], time_ns[i])
                rows += 1
        else:
            break
        connections[number, SIDES + SIDE * side + PACKETS] += 1
        connections[number, LAST_NS] = max(connections[number, LAST_NS], time_ns[i])
        i += 1
    counts[ROWS], counts[CONNECTIONS], counts[FLOWS], counts[FOUND] = (
        rows,
        connection_count,
        flow_count,
        owner,
    )
    return i


@device_function
def emit(
    wide: I64Table,
    narrow: I8Table,
    barrier: I64Table,
    row: int,
    number: int,
    side: int,
    kind: int,
    start: int,
    length: int,
    packet: int,
    time_ns: int,
) -> None:
    """Write a row of `Chunks` of a connection on which nothing waits."""
    wide[CONNECTION, row] = number
    wide[START, row] = start
    wide[LENGTH, row] = length
    wide[PACKET, row] = packet
    wide[TIME_NS, row] = time_ns
    wide[RELEASE, row] = packet
    narrow[CHUNK_SIDE, row] = side
    narrow[KIND, row] = kind
    narrow[ORIGIN, row] = IN_WINDOW
    barrier[row, 0] = NEVER
    barrier[row, 1] = NEVER
