"""What a segment that is simply next does to the row of its connection; see `order`."""

from __future__ import annotations

from typing import Any

from dissector.capture.tcp.connection_columns import (
    A_HIGH,
    A_LOW,
    ACKED,
    ACKED_NS,
    ACKED_PACKET,
    ANCHORED,
    B_HIGH,
    B_LOW,
    BYTES,
    COLUMNS,
    COUNTERS_AT,
    CUT_BYTES,
    ENDED,
    ENDED_AT,
    FINISHED,
    FIRST,
    GAPS,
    GAPS_REMEMBERED,
    HAS_ACKED,
    HAS_ISN,
    LIVE,
    NETWORK_AT,
    NEXT,
    ORIENTED,
    PORTS,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    STATE,
    SYN_SEEN,
)
from dissector.capture.tcp.connection_state import ACK, FIN, RESET_WINDOW_BYTES, SEQ_MASK
from dissector.capture.tcp.stream_reassembler import FAR_BYTES
from dissector.kernel import device_function

ENDED_BY_FIN, ENDED_BY_RST = 1 << ENDED_AT, 2 << ENDED_AT
"""`fin` and `rst`, as `ENDS` numbers them, in a connection's state."""

_FULL, _HALF = 1 << 32, 1 << 31


@device_function
def opens_connection(known: Any, owner: int, other: int, seq: int) -> bool:
    """
    Return whether a SYN opens a connection, without a doubt.

    Both directions are new, or those of a connection that was closed from both sides.
    """
    if owner < 0 or other < 0:
        return owner < 0 and other < 0
    number = owner >> 1
    if other >> 1 != number or known[number, STATE] & LIVE != 0:
        return False
    if known[number, SIDES + SIDE_FLAGS] & known[number, SIDES + SIDE + SIDE_FLAGS] & FINISHED == 0:
        return False
    mine = SIDES + SIDE * (owner & 1)
    if known[number, mine + SIDE_FLAGS] & HAS_ISN == 0:
        return False
    return bool((seq - known[number, mine + FIRST] + 1) & SEQ_MASK != 0)


@device_function
def start_connection(
    known: Any,
    number: int,
    network: int,
    source: Any,
    source_port: Any,
    target: Any,
    target_port: Any,
    i: int,
) -> None:
    """Write the row of a connection that segment `i` opens."""
    for column in range(COLUMNS):
        known[number, column] = 0
    known[number, A_HIGH] = source[i, 0]
    known[number, A_LOW] = source[i, 1]
    known[number, B_HIGH] = target[i, 0]
    known[number, B_LOW] = target[i, 1]
    known[number, PORTS] = source_port[i] << 16 | target_port[i]
    known[number, STATE] = network << NETWORK_AT | ORIENTED


@device_function
def open_side(known: Any, number: int, side: int, seq: int) -> None:
    """Let a side's stream begin behind its SYN."""
    mine = SIDES + SIDE * side
    known[number, STATE] |= SYN_SEEN
    known[number, mine + NEXT] = known[number, mine + FIRST] = seq + _FULL + 1
    known[number, mine + SIDE_FLAGS] |= ANCHORED | HAS_ISN


@device_function
def is_first_syn_ack(known: Any, number: int, side: int) -> bool:
    """Return whether a SYN/ACK can only be the first from a side, on a SYN of the other."""
    state = known[number, STATE]
    mine = known[number, SIDES + SIDE * side + SIDE_FLAGS] & (ANCHORED | HAS_ACKED | FINISHED)
    theirs = known[number, SIDES + SIDE * (1 - side) + SIDE_FLAGS] & (ANCHORED | FINISHED)
    if mine != 0 or theirs != ANCHORED:
        return False
    return bool(state & (ORIENTED | ENDED) == ORIENTED)


@device_function
def has_gap_ring(known: Any, few: Any, number: int, side: int) -> bool:
    """Return whether there is a place for a side's gaps."""
    row = known[number, SIDES + SIDE * side + SIDE_FLAGS] >> COUNTERS_AT
    return bool(few[row, GAPS] != 0)


@device_function
def count_bytes(
    known: Any, few: Any, gaps: Any, number: int, side: int, length: int, cut: int
) -> None:
    """Count bytes that come next, and those of them that the capture cut off."""
    mine = SIDES + SIDE * side
    known[number, mine + NEXT] += length
    known[number, mine + BYTES] += length - cut
    if cut != 0:
        row = known[number, mine + SIDE_FLAGS] >> COUNTERS_AT
        ring = few[row, GAPS]
        at = gaps[ring, 0] % GAPS_REMEMBERED
        few[row, CUT_BYTES] += cut
        gaps[ring, 0] += 1
        gaps[ring, 1 + 2 * at] = known[number, mine + NEXT] - cut
        gaps[ring, 2 + 2 * at] = known[number, mine + NEXT]


@device_function
def is_in_order(known: Any, number: int, side: int, what: int, seq: int) -> bool:
    """Return whether bytes, or a FIN that is a side's first, are the next of its stream."""
    mine = SIDES + SIDE * side
    marks = known[number, mine + SIDE_FLAGS]
    if not marks & ANCHORED or (what & FIN and marks & FINISHED):
        return False
    return bool((seq - known[number, mine + NEXT]) & SEQ_MASK == 0)


@device_function
def acknowledge(known: Any, number: int, side: int, ack: int, packet: int, time_ns: int) -> None:
    """Take an acknowledgement of what a side sent."""
    mine = SIDES + SIDE * side
    marks = known[number, mine + SIDE_FLAGS]
    if marks & HAS_ACKED:
        more = (ack - known[number, mine + ACKED]) & SEQ_MASK
        if more == 0 or more > FAR_BYTES:
            return
        acked = known[number, mine + ACKED] + more
    elif marks & ANCHORED:
        more = ((ack - known[number, mine + NEXT] + _HALF) & SEQ_MASK) - _HALF
        if more < -FAR_BYTES or more > FAR_BYTES:
            return
        acked = known[number, mine + NEXT] + more
    else:
        acked = ack + _FULL
    known[number, mine + SIDE_FLAGS] = marks | HAS_ACKED
    known[number, mine + ACKED] = acked
    known[number, mine + ACKED_NS] = time_ns
    known[number, mine + ACKED_PACKET] = packet


@device_function
def accepts_reset(known: Any, number: int, side: int, what: int, seq: int, ack: int) -> bool:
    """Return whether a RST is to be believed, and nothing is missing when it comes."""
    for each in (SIDES, SIDES + SIDE):
        marks = known[number, each + SIDE_FLAGS]
        unseen = known[number, each + ACKED] - known[number, each + NEXT]
        if marks & (ANCHORED | HAS_ACKED | FINISHED) == ANCHORED | HAS_ACKED and unseen > 1:
            return False
    mine, theirs = SIDES + SIDE * side, SIDES + SIDE * (1 - side)
    marks = known[number, mine + SIDE_FLAGS]
    if marks & ANCHORED:
        lowest = 0
        if marks & HAS_ACKED:
            lowest = min(known[number, mine + ACKED] - known[number, mine + NEXT], 0)
        ahead = ((seq - known[number, mine + NEXT] + _HALF) & SEQ_MASK) - _HALF
        return bool(lowest - 1 <= ahead <= RESET_WINDOW_BYTES)
    if (
        what & ACK
        and known[number, theirs + SIDE_FLAGS] & (ANCHORED | HAS_ISN) == ANCHORED | HAS_ISN
    ):
        lowest = known[number, theirs + FIRST] - known[number, theirs + NEXT]
        ahead = ((ack - known[number, theirs + NEXT] + _HALF) & SEQ_MASK) - _HALF
        return bool(lowest <= ahead <= RESET_WINDOW_BYTES)
    return False


@device_function
def close_side(known: Any, number: int, side: int) -> bool:
    """Pass a side's FIN; return whether that ends the connection."""
    mine = SIDES + SIDE * side
    known[number, mine + NEXT] += 1
    known[number, mine + SIDE_FLAGS] |= FINISHED
    if not known[number, SIDES + SIDE * (1 - side) + SIDE_FLAGS] & FINISHED:
        return False
    if known[number, STATE] & ENDED:
        return False
    known[number, STATE] |= ENDED_BY_FIN
    return True
