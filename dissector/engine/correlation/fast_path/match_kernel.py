"""Correlates complete frames, as device functions: queues requests, matches responses to them."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlation_limits import MAX_SUPPRESSED
from dissector.engine.correlation.both_paths.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    CorrelatorState,
    Entry,
    FrameColumns,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import NOT_DUE
from dissector.engine.correlation.fast_path.linked_lists import (
    LIST_HEAD,
    NOT_FOUND,
    free_entry,
)
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN, UNANSWERED
from dissector.kernel import device_function


@device_function
def enqueue(state: CorrelatorState, number: int, request: int, due: int) -> None:
    """Queue a request until its response; emit it immediately if none is due (acks = 0)."""
    connection, entry, limits = state.connections[number], state.entries[request], state.counts
    if connection.highest_id == NEVER or connection.highest_id < entry.correlation_id:
        connection.highest_id = entry.correlation_id
    if due == NOT_DUE:
        emit(state, number, NO_RESPONSE, request)
        suppress(state, connection, entry.correlation_id)
        free_entry(state, request)
        return
    if connection.newest_request < 0:
        connection.oldest_request = request
    else:
        state.entries[connection.newest_request].next = request
    connection.newest_request = request
    connection.open_count += 1
    connection.open_bytes += entry.length
    while connection.open_count > limits.max_open or (
        connection.open_bytes > limits.max_open_bytes and connection.open_count > 1
    ):
        emit_oldest(state, number)


@device_function
def suppress(state: CorrelatorState, connection: ConnectionRow, correlation_id: int) -> None:
    """Record the correlation id of a suppressed response in the ring of the connection."""
    if connection.suppressed_ring < 0:
        connection.suppressed_ring = new_ring(state)
    at = connection.suppressed_count % MAX_SUPPRESSED
    state.suppressed[connection.suppressed_ring, at] = correlation_id
    connection.suppressed_count += 1


@device_function
def new_ring(state: CorrelatorState) -> int:
    """Return a row for suppressed ids."""
    ring = state.counts.free_ring
    if ring < 0:
        ring = state.counts.rings_used
        state.counts.rings_used = ring + 1
    else:
        state.counts.free_ring = state.next_ring[ring]
    return ring


@device_function
def free_ring(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Drop the suppressed ids of a connection."""
    ring = connection.suppressed_ring
    if ring >= 0:
        state.next_ring[ring] = state.counts.free_ring
        state.counts.free_ring = ring
    connection.suppressed_ring = -1
    connection.suppressed_count = 0


@device_function
def is_suppressed(state: CorrelatorState, connection: ConnectionRow, correlation_id: int) -> bool:
    """Return whether the response to a request of this id is suppressed."""
    for i in range(min(connection.suppressed_count, MAX_SUPPRESSED)):
        if state.suppressed[connection.suppressed_ring, i] == correlation_id:
            return True
    return False


@device_function
def emit_response(state: CorrelatorState, number: int, response: int, previous: int) -> None:
    """
    Emit a response, with its request or as an orphan, and free its entry.

    Args:
        state: See `correlator_rows`.
        number: Of the connection.
        response: Its entry.
        previous: The entry before the request's, as `find_request` returns it.
    """
    connection, entry = state.connections[number], state.entries[response]
    if previous == NOT_FOUND:
        row = emit(state, number, ORPHAN, -1)
        state.exchanges.correlation_id[row] = entry.correlation_id
        unasked = is_suppressed(state, connection, entry.correlation_id)
        state.exchanges.answers_acks_0[row] = unasked
    else:
        request = connection.oldest_request
        if previous != LIST_HEAD:
            request = state.entries[previous].next
            emit_lost(state, number, request)
            if connection.oldest_request == request:
                previous = LIST_HEAD
        asked = state.entries[request]
        if asked.packet > entry.packet and asked.length < asked.size:
            asked.packet = entry.packet  # its end was lost; the response proves its arrival
            asked.time_ns = entry.time_ns
        row = emit(state, number, ANSWERED, request)
        dequeue(state, connection, request, previous)
    write_frame(state.exchanges.response, row, entry, state.counts.window_bytes)
    free_entry(state, response)


@device_function
def end_connection(state: CorrelatorState, number: int) -> None:
    """End a connection: its requests in flight are unanswered."""
    connection = state.connections[number]
    while connection.open_count > 0:
        emit_oldest(state, number)
    connection.newest_time_ns = 0
    free_ring(state, connection)


@device_function
def emit_lost(state: CorrelatorState, number: int, answered: int) -> None:
    """Emit requests before the answered one as unanswered, because a gap hides their responses."""
    connection = state.connections[number]
    oldest = connection.oldest_request
    while oldest != answered and state.entries[oldest].packet < connection.lost_before:
        emit_oldest(state, number)
        oldest = connection.oldest_request


@device_function
def emit_oldest(state: CorrelatorState, number: int) -> None:
    """Emit the oldest request in flight as unanswered."""
    connection = state.connections[number]
    request = connection.oldest_request
    emit(state, number, UNANSWERED, request)
    dequeue(state, connection, request, LIST_HEAD)


@device_function
def dequeue(state: CorrelatorState, connection: ConnectionRow, request: int, previous: int) -> None:
    """Remove a request from the queue."""
    entry = state.entries[request]
    if previous == LIST_HEAD:
        connection.oldest_request = entry.next
    else:
        state.entries[previous].next = entry.next
    if entry.next < 0:
        connection.newest_request = -1 if previous == LIST_HEAD else previous
    connection.open_count -= 1
    connection.open_bytes -= entry.length
    free_entry(state, request)


@device_function
def emit(state: CorrelatorState, number: int, status: int, request: int) -> int:
    """Write an exchange, with its request if there is an entry; return its row."""
    connection, exchanges = state.connections[number], state.exchanges
    row = state.counts.exchange_count
    state.counts.exchange_count = row + 1
    exchanges.connection[row] = number
    exchanges.status[row] = status
    exchanges.client[row] = connection.client
    exchanges.token[row] = False
    exchanges.answers_acks_0[row] = False
    exchanges.broken_off[row] = 0
    write_no_frame(exchanges.response, row)
    if request >= 0:
        entry = state.entries[request]
        exchanges.api_key[row] = entry.api_key
        exchanges.api_version[row] = entry.api_version
        exchanges.correlation_id[row] = entry.correlation_id
        write_frame(exchanges.request, row, entry, state.counts.window_bytes)
    else:
        exchanges.api_key[row] = NONE
        exchanges.api_version[row] = NONE
        exchanges.correlation_id[row] = NONE
        write_no_frame(exchanges.request, row)
    if not connection.has_emitted:
        connection.has_emitted = True
        state.emitters[state.counts.emitter_count] = number
        state.counts.emitter_count += 1
    return row


@device_function
def write_frame(frames: FrameColumns, row: int, entry: Entry, window_bytes: int) -> None:
    """Write the columns of a frame."""
    is_carried = entry.start >= CARRY_OVER_BASE
    frames.start[row] = entry.start - CARRY_OVER_BASE + window_bytes if is_carried else entry.start
    frames.captured_bytes[row] = entry.length
    frames.size[row] = entry.size
    frames.packet[row] = entry.packet
    frames.time_ns[row] = entry.time_ns
    frames.offset[row] = entry.offset


@device_function
def write_no_frame(frames: FrameColumns, row: int) -> None:
    """Write the columns of a missing frame."""
    frames.start[row] = NONE
    frames.captured_bytes[row] = NONE
    frames.size[row] = NONE
    frames.packet[row] = NONE
    frames.time_ns[row] = NONE
    frames.offset[row] = NONE
