"""What most segments are: the next of their connection. One compiled loop takes them in order."""

from __future__ import annotations

from typing import Any

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
    ENDED,
    FIRST_NS,
    FIRST_PACKET,
    LAST_NS,
    LIVE,
    PACKETS,
    SIDE,
    SIDES,
    STATE,
)
from dissector.capture.tcp.connection_row import (
    ENDED_BY_RST,
    accepts_reset,
    acknowledge,
    close_side,
    count_bytes,
    has_gap_ring,
    is_first_syn_ack,
    is_in_order,
    open_side,
    opens_connection,
    start_connection,
)
from dissector.capture.tcp.connection_state import ACK, FIN, RST, SYN
from dissector.capture.tcp.flow_table import ANY_NETWORK, OWNER, find_flow, put_flow
from dissector.kernel import Kernel, device_function

ROWS, CONNECTIONS, FLOWS, FOUND = range(4)
"""What is counted, and the owner of the flow of the segment that the loop stopped at."""

NEW_FLOWS = 3


@Kernel
def process_in_order(
    network: Any,
    source: Any,
    source_port: Any,
    target: Any,
    target_port: Any,
    packet: Any,
    time_ns: Any,
    seq: Any,
    ack: Any,
    flags: Any,
    start: Any,
    length: Any,
    captured: Any,
    known: Any,
    few: Any,
    gaps: Any,
    flows: Any,
    slots: Any,
    secret: Any,
    wide: Any,
    narrow: Any,
    horizon: Any,
    counts: Any,
    at: int,
    until: int,
) -> int:
    """
    Take segments from `at` on; return the first that is left alone, or their number.

    What is done here is exactly what is done with such segments through objects. Left alone is what
    is not simply next, what belongs to a connection that is awake, what comes from `until` on, and
    what the tables have no room for.
    """
    rows, connections, count = counts[ROWS], counts[CONNECTIONS], counts[FLOWS]
    owner = -1
    i = at
    while i < len(packet):
        flow = find_flow(
            known, flows, slots, secret, network[i], source, source_port, target, target_port, i
        )
        owner = flows[flow, OWNER] if flow >= 0 else -1
        if i >= until or rows + MAX_ROWS_PER_SEGMENT > len(horizon):
            break
        number, side = owner >> 1, owner & 1
        what = flags[i] & (FIN | SYN | RST | ACK)
        if what == SYN:
            back = find_flow(
                known, flows, slots, secret, network[i], target, target_port, source, source_port, i
            )
            other = flows[back, OWNER] if back >= 0 else -1
            if length[i] != 0 or not opens_connection(known, owner, other, seq[i]):
                break
            if connections == len(known) or count + NEW_FLOWS > len(flows):
                break
            number, side = connections, 0
            connections += 1
            start_connection(known, number, network[i], source, source_port, target, target_port, i)
            known[number, FIRST_PACKET] = packet[i]
            known[number, FIRST_NS] = known[number, LAST_NS] = time_ns[i]
            open_side(known, number, side, seq[i])
            count = put_flow(flows, slots, count, back, network[i], 2 * number + 1)
            flow = find_flow(
                known, flows, slots, secret, network[i], source, source_port, target, target_port, i
            )
            count = put_flow(flows, slots, count, flow, network[i], 2 * number)
            back = find_flow(
                known,
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
            count = put_flow(flows, slots, count, back, ANY_NETWORK, 2 * number + 1)
        elif owner < 0 or known[number, STATE] & LIVE != 0:
            break
        elif what == SYN | ACK:
            if length[i] != 0 or not is_first_syn_ack(known, number, side):
                break
            open_side(known, number, side, seq[i])
            acknowledge(known, number, 1 - side, ack[i], packet[i], time_ns[i])
        elif what == RST or what == RST | ACK:
            if not accepts_reset(known, number, side, what, seq[i], ack[i]):
                break
            if known[number, STATE] & ENDED == 0:
                known[number, STATE] |= ENDED_BY_RST
                tell(wide, narrow, horizon, rows, number, side, END, 0, 0, packet[i], time_ns[i])
                rows += 1
        elif what == ACK or what == FIN | ACK:
            bare = length[i] == 0 and what == ACK
            if not bare and not is_in_order(known, number, side, what, seq[i]):
                break
            cut = length[i] - captured[i]
            if cut != 0 and (what & FIN != 0 or not has_gap_ring(known, few, number, side)):
                break
            acknowledge(known, number, 1 - side, ack[i], packet[i], time_ns[i])
            if captured[i] != 0:
                told = start[i], captured[i], packet[i], time_ns[i]
                tell(wide, narrow, horizon, rows, number, side, DATA, *told)
                rows += 1
            if cut != 0:
                tell(wide, narrow, horizon, rows, number, side, GAP, 0, cut, packet[i], time_ns[i])
                rows += 1
            if length[i] != 0:
                count_bytes(known, few, gaps, number, side, length[i], cut)
            if what & FIN != 0 and close_side(known, number, side):
                tell(wide, narrow, horizon, rows, number, side, END, 0, 0, packet[i], time_ns[i])
                rows += 1
        else:
            break
        known[number, SIDES + SIDE * side + PACKETS] += 1
        known[number, LAST_NS] = max(known[number, LAST_NS], time_ns[i])
        i += 1
    counts[ROWS], counts[CONNECTIONS], counts[FLOWS], counts[FOUND] = (
        rows,
        connections,
        count,
        owner,
    )
    return i


@device_function
def tell(
    wide: Any,
    narrow: Any,
    horizon: Any,
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
    horizon[row, 0] = NEVER
    horizon[row, 1] = NEVER
