"""
Device functions for ready frames: complete ones that wait for their turn.

They are processed in the order of the capture, as `ConnectionCorrelator` does, which has the
reasons: behind a barrier, and responses that came before their requests, they wait.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlation_limits import MAX_EARLY_RESPONSE_NS
from dissector.engine.correlation.both_paths.correlator_rows import (
    ConnectionRow,
    CorrelatorState,
    SideRow,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import FAST_PATH, SLOW_PATH
from dissector.engine.correlation.fast_path.linked_lists import (
    NOT_FOUND,
    TOO_FAR,
    find_request,
    is_unfinished_request,
)
from dissector.engine.correlation.fast_path.match_kernel import emit_response, enqueue
from dissector.kernel import device_function


@device_function
def set_barriers(
    state: CorrelatorState, connection: ConnectionRow, first: int, second: int
) -> None:
    """Set the read limit of each side."""
    for side in range(2):
        stream = connection.sides[side]
        barrier = second if side else first
        before = stream.barrier
        if before != barrier:
            state.counts.barrier_count += (before == NEVER) - (barrier == NEVER)
            stream.barrier = barrier


@device_function
def may_pass(connection: ConnectionRow, side: int, packet: int) -> bool:
    """Return whether a frame that a packet completed need not wait for the other side."""
    return connection.ready_count == 0 and packet < connection.sides[1 - side].barrier


@device_function
def is_early(connection: ConnectionRow, correlation_id: int, time_ns: int) -> bool:
    """Return whether a response may have been captured before its request."""
    return (
        connection.highest_id < correlation_id
        and connection.newest_time_ns - time_ns < MAX_EARLY_RESPONSE_NS
    )


@device_function
def queue_frame(state: CorrelatorState, connection: ConnectionRow, side: int, entry: int) -> None:
    """Append a frame to the ready ones of its side."""
    stream = connection.sides[side]
    state.entries[entry].next = -1
    if stream.last_ready < 0:
        stream.first_ready = entry
    else:
        state.entries[stream.last_ready].next = entry
    stream.last_ready = entry
    connection.ready_count += 1


@device_function
def take_ready(state: CorrelatorState, connection: ConnectionRow, stream: SideRow) -> int:
    """Remove the first ready frame of a side; return it."""
    entry = stream.first_ready
    stream.first_ready = state.entries[entry].next
    if stream.first_ready < 0:
        stream.last_ready = -1
    connection.ready_count -= 1
    state.entries[entry].next = -1
    return entry


@device_function
def match_ready(state: CorrelatorState, number: int, now_ns: int) -> int:
    """Process ready frames in the order of the capture, up to the barriers; see the module."""
    connection = state.connections[number]
    connection.newest_time_ns = max(connection.newest_time_ns, now_ns)
    client = connection.client
    while connection.ready_count > 0:
        side = next_side(state, connection)
        head = connection.sides[side].first_ready
        if side != client and is_early(
            connection, state.entries[head].correlation_id, state.entries[head].time_ns
        ):
            side = client
            head = connection.sides[side].first_ready
            if head < 0:
                return FAST_PATH
        if state.entries[head].packet >= connection.sides[1 - side].barrier:
            return FAST_PATH
        if side == client:
            head = take_ready(state, connection, connection.sides[side])
            enqueue(state, number, head, state.entries[head].due)
        elif not match_ready_response(state, number, side, head):
            return SLOW_PATH
    return FAST_PATH


@device_function
def next_side(state: CorrelatorState, connection: ConnectionRow) -> int:
    """Return the side with the earlier first ready frame."""
    first, second = connection.sides[0].first_ready, connection.sides[1].first_ready
    if second < 0:
        return 0
    if first >= 0 and state.entries[first].packet < state.entries[second].packet:
        return 0
    return 1


@device_function
def match_ready_response(state: CorrelatorState, number: int, side: int, entry: int) -> bool:
    """Emit the first ready response; return whether the fast path finds its request."""
    connection = state.connections[number]
    correlation_id = state.entries[entry].correlation_id
    previous = find_request(state.entries, connection.oldest_request, correlation_id)
    if previous == TOO_FAR:
        return False
    if previous == NOT_FOUND and is_unfinished_request(state, connection, correlation_id):
        return False
    take_ready(state, connection, connection.sides[side])
    emit_response(state, number, entry, previous)
    return True
