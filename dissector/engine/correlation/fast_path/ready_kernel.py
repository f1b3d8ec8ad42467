"""
Device functions for ready frames: complete ones that wait for their turn.

They are processed in the order of the capture, as `ConnectionCorrelator` does, which has the
reasons: behind a barrier, and responses that came before their requests, they wait.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlation_limits import MAX_EARLY_RESPONSE_NS
from dissector.engine.correlation.both_paths.correlator_arrays import CorrelatorArrays
from dissector.engine.correlation.both_paths.frame_checks_kernel import FAST_PATH, SLOW_PATH
from dissector.engine.correlation.both_paths.state_columns import (
    BARRIER,
    BARRIER_COUNT,
    CLIENT,
    CORRELATION_ID,
    DUE,
    FIRST_READY,
    HIGHEST_ID,
    LAST_READY,
    NEWEST_TIME,
    NEXT,
    OLDEST_REQUEST,
    PACKET,
    READY_COUNT,
    SIDE_WIDTH,
    SIDES,
    TIME,
)
from dissector.engine.correlation.fast_path.linked_lists import TOO_FAR, find_request
from dissector.engine.correlation.fast_path.match_kernel import emit_response, enqueue
from dissector.kernel import device_function


@device_function
def set_barriers(state: CorrelatorArrays, connection: int, first: int, second: int) -> None:
    """Set the read limit of each side."""
    for side in range(2):
        at = SIDES + side * SIDE_WIDTH + BARRIER
        barrier = second if side else first
        before = state.connections[connection, at]
        if before != barrier:
            state.counters[BARRIER_COUNT] += (before == NEVER) - (barrier == NEVER)
            state.connections[connection, at] = barrier


@device_function
def may_pass(state: CorrelatorArrays, connection: int, side: int, packet: int) -> bool:
    """Return whether a frame that a packet completed need not wait for the other side."""
    barrier = state.connections[connection, SIDES + (1 - side) * SIDE_WIDTH + BARRIER]
    return bool(state.connections[connection, READY_COUNT] == 0 and packet < barrier)


@device_function
def is_early(state: CorrelatorArrays, connection: int, correlation_id: int, time_ns: int) -> bool:
    """Return whether a response may have been captured before its request."""
    return bool(
        state.connections[connection, HIGHEST_ID] < correlation_id
        and state.connections[connection, NEWEST_TIME] - time_ns < MAX_EARLY_RESPONSE_NS
    )


@device_function
def queue_frame(state: CorrelatorArrays, connection: int, side: int, entry: int) -> None:
    """Append a frame to the ready ones of its side."""
    at = SIDES + side * SIDE_WIDTH
    state.entries[entry, NEXT] = -1
    last = state.connections[connection, at + LAST_READY]
    if last < 0:
        state.connections[connection, at + FIRST_READY] = entry
    else:
        state.entries[last, NEXT] = entry
    state.connections[connection, at + LAST_READY] = entry
    state.connections[connection, READY_COUNT] += 1


@device_function
def take_ready(state: CorrelatorArrays, connection: int, side: int) -> int:
    """Remove the first ready frame of a side; return it."""
    at = SIDES + side * SIDE_WIDTH
    entry = state.connections[connection, at + FIRST_READY]
    after = state.entries[entry, NEXT]
    state.connections[connection, at + FIRST_READY] = after
    if after < 0:
        state.connections[connection, at + LAST_READY] = -1
    state.connections[connection, READY_COUNT] -= 1
    state.entries[entry, NEXT] = -1
    return int(entry)


@device_function
def match_ready(state: CorrelatorArrays, connection: int, now_ns: int) -> int:
    """Process ready frames in the order of the capture, up to the barriers; see the module."""
    newest = max(state.connections[connection, NEWEST_TIME], now_ns)
    state.connections[connection, NEWEST_TIME] = newest
    client = state.connections[connection, CLIENT]
    while state.connections[connection, READY_COUNT] > 0:
        side = next_side(state, connection)
        at = SIDES + side * SIDE_WIDTH
        head = state.connections[connection, at + FIRST_READY]
        if side != client and is_early(
            state, connection, state.entries[head, CORRELATION_ID], state.entries[head, TIME]
        ):
            side = client
            head = state.connections[connection, SIDES + side * SIDE_WIDTH + FIRST_READY]
            if head < 0:
                return FAST_PATH
        barrier = state.connections[connection, SIDES + (1 - side) * SIDE_WIDTH + BARRIER]
        if state.entries[head, PACKET] >= barrier:
            return FAST_PATH
        if side == client:
            head = take_ready(state, connection, side)
            enqueue(state, connection, head, state.entries[head, DUE])
        elif not match_ready_response(state, connection, side, head):
            return SLOW_PATH
    return FAST_PATH


@device_function
def next_side(state: CorrelatorArrays, connection: int) -> int:
    """Return the side with the earlier first ready frame."""
    first = state.connections[connection, SIDES + FIRST_READY]
    second = state.connections[connection, SIDES + SIDE_WIDTH + FIRST_READY]
    if second < 0:
        return 0
    if first >= 0 and state.entries[first, PACKET] < state.entries[second, PACKET]:
        return 0
    return 1


@device_function
def match_ready_response(state: CorrelatorArrays, connection: int, side: int, entry: int) -> bool:
    """Emit the first ready response; return whether the fast path finds its request."""
    correlation_id = state.entries[entry, CORRELATION_ID]
    oldest = state.connections[connection, OLDEST_REQUEST]
    previous = find_request(state.entries, oldest, correlation_id)
    if previous == TOO_FAR:
        return False
    take_ready(state, connection, side)
    emit_response(state, connection, entry, previous)
    return True
