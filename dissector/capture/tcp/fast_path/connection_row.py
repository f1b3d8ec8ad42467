"""Device functions that update a connection's row for in-order segments; see `in_order_kernel`."""

from __future__ import annotations

from dissector.capture.tcp.both_paths.connection_columns import (
    A_HIGH,
    A_LOW,
    ACKED,
    ACKED_NS,
    ACKED_PACKET,
    ANCHORED,
    B_HIGH,
    B_LOW,
    COLUMNS,
    ENDED,
    ENDED_AT,
    FINISHED,
    FIRST,
    FIRST_NS,
    FIRST_PACKET,
    HAS_ACKED,
    HAS_ISN,
    LAST_NS,
    LIVE,
    NETWORK_AT,
    NEXT,
    ORIENTED,
    PORTS,
    RESENT,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    STATE,
    SYN_SEEN,
)
from dissector.capture.tcp.both_paths.reassembly_limits import FAR_BYTES, RESET_WINDOW_BYTES
from dissector.capture.tcp.both_paths.tcp_arrays import SegmentArrays
from dissector.capture.tcp.both_paths.tcp_header import ACK, FIN, SEQ_MASK
from dissector.kernel import device_function
from dissector.kernel.arrays import I64Table

ENDED_BY_FIN, ENDED_BY_RST = 1 << ENDED_AT, 2 << ENDED_AT
"""`fin` and `rst`, as indexes into `END_REASONS`, in the `STATE` column."""

_FULL, _HALF = 1 << 32, 1 << 31


@device_function
def opens_connection(connections: I64Table, owner: int, other: int, seq: int) -> bool:
    """
    Return whether a SYN certainly opens a connection.

    Both directions are new, or belong to a connection that was closed from both sides.
    """
    if owner < 0 or other < 0:
        return owner < 0 and other < 0
    number = owner >> 1
    if other >> 1 != number or connections[number, STATE] & LIVE != 0:
        return False
    if (
        connections[number, SIDES + SIDE_FLAGS]
        & connections[number, SIDES + SIDE + SIDE_FLAGS]
        & FINISHED
        == 0
    ):
        return False
    own = SIDES + SIDE * (owner & 1)
    if connections[number, own + SIDE_FLAGS] & HAS_ISN == 0:
        return False
    return bool((seq - connections[number, own + FIRST] + 1) & SEQ_MASK != 0)


@device_function
def start_connection(connections: I64Table, number: int, segments: SegmentArrays, i: int) -> None:
    """Initialise the row of a connection that segment `i` opens."""
    for column in range(COLUMNS):
        connections[number, column] = 0
    connections[number, A_HIGH] = segments.source[i, 0]
    connections[number, A_LOW] = segments.source[i, 1]
    connections[number, B_HIGH] = segments.target[i, 0]
    connections[number, B_LOW] = segments.target[i, 1]
    connections[number, PORTS] = segments.source_port[i] << 16 | segments.target_port[i]
    connections[number, STATE] = segments.network[i] << NETWORK_AT | ORIENTED
    connections[number, FIRST_PACKET] = segments.packet[i]
    connections[number, FIRST_NS] = connections[number, LAST_NS] = segments.time_ns[i]


@device_function
def open_side(connections: I64Table, number: int, side: int, seq: int) -> None:
    """Start a side's stream behind its SYN."""
    own = SIDES + SIDE * side
    connections[number, STATE] |= SYN_SEEN
    connections[number, own + NEXT] = connections[number, own + FIRST] = seq + _FULL + 1
    connections[number, own + SIDE_FLAGS] |= ANCHORED | HAS_ISN


@device_function
def is_first_syn_ack(connections: I64Table, number: int, side: int) -> bool:
    """Return whether a SYN/ACK is certainly the side's first, in reply to a SYN."""
    state = connections[number, STATE]
    own = connections[number, SIDES + SIDE * side + SIDE_FLAGS] & (ANCHORED | HAS_ACKED | FINISHED)
    peer = connections[number, SIDES + SIDE * (1 - side) + SIDE_FLAGS] & (ANCHORED | FINISHED)
    if own != 0 or peer != ANCHORED:
        return False
    return bool(state & (ORIENTED | ENDED) == ORIENTED)


@device_function
def is_in_order(connections: I64Table, number: int, side: int, control: int, seq: int) -> bool:
    """Return whether bytes, or a side's first FIN, are next in the stream."""
    own = SIDES + SIDE * side
    flags = connections[number, own + SIDE_FLAGS]
    if not flags & ANCHORED or (control & FIN and flags & FINISHED):
        return False
    return bool((seq - connections[number, own + NEXT]) & SEQ_MASK == 0)


@device_function
def acknowledge(
    connections: I64Table, number: int, side: int, ack: int, packet: int, time_ns: int
) -> None:
    """Record an acknowledgement of a side's data."""
    own = SIDES + SIDE * side
    flags = connections[number, own + SIDE_FLAGS]
    if flags & HAS_ACKED:
        advance = (ack - connections[number, own + ACKED]) & SEQ_MASK
        if advance == 0 or advance > FAR_BYTES:
            return
        acked = connections[number, own + ACKED] + advance
    elif flags & ANCHORED:
        advance = ((ack - connections[number, own + NEXT] + _HALF) & SEQ_MASK) - _HALF
        if advance < -FAR_BYTES or advance > FAR_BYTES:
            return
        acked = connections[number, own + NEXT] + advance
    else:
        acked = ack + _FULL
    connections[number, own + SIDE_FLAGS] = flags | HAS_ACKED
    connections[number, own + ACKED] = acked
    connections[number, own + ACKED_NS] = time_ns
    connections[number, own + ACKED_PACKET] = packet
    connections[number, own + RESENT] = 0


@device_function
def accepts_reset(
    connections: I64Table, number: int, side: int, control: int, seq: int, ack: int
) -> bool:
    """Return whether the receiver would accept a RST, without a hole before it."""
    for column in (SIDES, SIDES + SIDE):
        flags = connections[number, column + SIDE_FLAGS]
        missing = connections[number, column + ACKED] - connections[number, column + NEXT]
        if flags & (ANCHORED | HAS_ACKED | FINISHED) == ANCHORED | HAS_ACKED and missing > 1:
            return False
    own, peer = SIDES + SIDE * side, SIDES + SIDE * (1 - side)
    flags = connections[number, own + SIDE_FLAGS]
    if flags & ANCHORED:
        lowest = 0
        if flags & HAS_ACKED:
            lowest = min(connections[number, own + ACKED] - connections[number, own + NEXT], 0)
        ahead = ((seq - connections[number, own + NEXT] + _HALF) & SEQ_MASK) - _HALF
        return bool(lowest - 1 <= ahead <= RESET_WINDOW_BYTES)
    if (
        control & ACK
        and connections[number, peer + SIDE_FLAGS] & (ANCHORED | HAS_ISN) == ANCHORED | HAS_ISN
    ):
        lowest = connections[number, peer + FIRST] - connections[number, peer + NEXT]
        ahead = ((ack - connections[number, peer + NEXT] + _HALF) & SEQ_MASK) - _HALF
        return bool(lowest <= ahead <= RESET_WINDOW_BYTES)
    return False


@device_function
def close_side(connections: I64Table, number: int, side: int) -> bool:
    """Pass a side's FIN; return whether that ends the connection."""
    own = SIDES + SIDE * side
    connections[number, own + NEXT] += 1
    connections[number, own + SIDE_FLAGS] |= FINISHED
    if not connections[number, SIDES + SIDE * (1 - side) + SIDE_FLAGS] & FINISHED:
        return False
    if connections[number, STATE] & ENDED:
        return False
    connections[number, STATE] |= ENDED_BY_FIN
    return True
