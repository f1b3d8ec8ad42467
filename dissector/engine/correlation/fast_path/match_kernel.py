"""Correlates complete frames, as device functions: queues requests, matches responses to them."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlation_limits import MAX_SUPPRESSED
from dissector.engine.correlation.both_paths.correlator_arrays import CorrelatorArrays
from dissector.engine.correlation.both_paths.frame_checks_kernel import NOT_DUE
from dissector.engine.correlation.both_paths.state_columns import (
    API_KEY,
    CARRY_OVER_BASE,
    CLIENT,
    CONNECTION_FLAGS,
    CORRELATION_ID,
    EMITTER_COUNT,
    FRAME_WIDTH,
    FREE_RING,
    HAS_EMITTED,
    HIGHEST_ID,
    LENGTH,
    LOST_BEFORE,
    MAX_OPEN_REQUEST_BYTES,
    MAX_OPEN_REQUESTS,
    NEWEST_REQUEST,
    NEWEST_TIME,
    NEXT,
    OLDEST_REQUEST,
    OPEN_BYTES,
    OPEN_COUNT,
    PACKET,
    RINGS_USED,
    ROW_API_KEY,
    ROW_CLIENT,
    ROW_CONNECTION,
    ROW_CORRELATION_ID,
    ROW_COUNT,
    ROW_FLAGS,
    ROW_REQUEST,
    ROW_RESPONSE,
    ROW_STATUS,
    ROW_TOKEN,
    START,
    SUPPRESSED_COUNT,
    SUPPRESSED_RING,
    WINDOW_LENGTH,
)
from dissector.engine.correlation.fast_path.linked_lists import (
    LIST_HEAD,
    NOT_FOUND,
    free_entry,
)
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN, UNANSWERED
from dissector.kernel import device_function


@device_function
def enqueue(state: CorrelatorArrays, connection: int, entry: int, due: int) -> None:
    """Queue a request until its response; emit it immediately if none is due (acks = 0)."""
    correlation_id = state.entries[entry, CORRELATION_ID]
    if (
        state.connections[connection, HIGHEST_ID] == NEVER
        or state.connections[connection, HIGHEST_ID] < correlation_id
    ):
        state.connections[connection, HIGHEST_ID] = correlation_id
    if due == NOT_DUE:
        emit(state, connection, NO_RESPONSE, entry)
        free_entry(state, entry)
        suppress(state, connection, correlation_id)
        return
    if state.connections[connection, NEWEST_REQUEST] < 0:
        state.connections[connection, OLDEST_REQUEST] = entry
    else:
        state.entries[state.connections[connection, NEWEST_REQUEST], NEXT] = entry
    state.connections[connection, NEWEST_REQUEST] = entry
    state.connections[connection, OPEN_COUNT] += 1
    state.connections[connection, OPEN_BYTES] += state.entries[entry, LENGTH]
    while state.connections[connection, OPEN_COUNT] > state.counters[MAX_OPEN_REQUESTS] or (
        state.connections[connection, OPEN_BYTES] > state.counters[MAX_OPEN_REQUEST_BYTES]
        and state.connections[connection, OPEN_COUNT] > 1
    ):
        emit_oldest(state, connection)


@device_function
def suppress(state: CorrelatorArrays, connection: int, correlation_id: int) -> None:
    """Record the correlation id of a suppressed response in the ring of the connection."""
    ring = state.connections[connection, SUPPRESSED_RING]
    if ring < 0:
        ring = new_ring(state)
        state.connections[connection, SUPPRESSED_RING] = ring
    count = state.connections[connection, SUPPRESSED_COUNT]
    state.suppressed[ring, count % MAX_SUPPRESSED] = correlation_id
    state.connections[connection, SUPPRESSED_COUNT] = count + 1


@device_function
def new_ring(state: CorrelatorArrays) -> int:
    """Return a row for suppressed ids."""
    ring = state.counters[FREE_RING]
    if ring < 0:
        ring = state.counters[RINGS_USED]
        state.counters[RINGS_USED] = ring + 1
    else:
        state.counters[FREE_RING] = state.suppressed[ring, 0]
    return int(ring)


@device_function
def free_ring(state: CorrelatorArrays, connection: int) -> None:
    """Drop the suppressed ids of a connection."""
    ring = state.connections[connection, SUPPRESSED_RING]
    if ring >= 0:
        state.suppressed[ring, 0] = state.counters[FREE_RING]
        state.counters[FREE_RING] = ring
    state.connections[connection, SUPPRESSED_RING] = -1
    state.connections[connection, SUPPRESSED_COUNT] = 0


@device_function
def is_suppressed(state: CorrelatorArrays, connection: int, correlation_id: int) -> bool:
    """Return whether the response to a request of this id is suppressed."""
    ring = state.connections[connection, SUPPRESSED_RING]
    for i in range(min(state.connections[connection, SUPPRESSED_COUNT], MAX_SUPPRESSED)):
        if state.suppressed[ring, i] == correlation_id:
            return True
    return False


@device_function
def emit_response(state: CorrelatorArrays, connection: int, entry: int, previous: int) -> None:
    """
    Emit a response, with its request or as an orphan, and free its entry.

    Args:
        state: See `state_columns`.
        connection: Number of the connection.
        entry: The response.
        previous: The entry before the request's, as `find_request` returns it.
    """
    if previous == NOT_FOUND:
        correlation_id = state.entries[entry, CORRELATION_ID]
        row = emit(state, connection, ORPHAN, -1)
        state.rows[ROW_CORRELATION_ID, row] = correlation_id
        state.rows[ROW_FLAGS, row] = is_suppressed(state, connection, correlation_id)
    else:
        request = state.connections[connection, OLDEST_REQUEST]
        if previous != LIST_HEAD:
            request = state.entries[previous, NEXT]
            emit_lost(state, connection, request)
            if state.connections[connection, OLDEST_REQUEST] == request:
                previous = LIST_HEAD
        row = emit(state, connection, ANSWERED, request)
        dequeue(state, connection, request, previous)
    for j in range(FRAME_WIDTH):
        state.rows[ROW_RESPONSE + j, row] = state.entries[entry, START + j]
    address = state.entries[entry, START]
    state.rows[ROW_RESPONSE, row] = emitted_address(address, state.counters[WINDOW_LENGTH])
    free_entry(state, entry)


@device_function
def end_connection(state: CorrelatorArrays, connection: int) -> None:
    """End a connection: its requests in flight are unanswered."""
    while state.connections[connection, OPEN_COUNT] > 0:
        emit_oldest(state, connection)
    state.connections[connection, NEWEST_TIME] = 0
    free_ring(state, connection)


@device_function
def emit_lost(state: CorrelatorArrays, connection: int, answered: int) -> None:
    """Emit requests before the answered one as unanswered, because a gap hides their responses."""
    lost_before = state.connections[connection, LOST_BEFORE]
    oldest = state.connections[connection, OLDEST_REQUEST]
    while oldest != answered and state.entries[oldest, PACKET] < lost_before:
        emit_oldest(state, connection)
        oldest = state.connections[connection, OLDEST_REQUEST]


@device_function
def emit_oldest(state: CorrelatorArrays, connection: int) -> None:
    """Emit the oldest request in flight as unanswered."""
    entry = state.connections[connection, OLDEST_REQUEST]
    emit(state, connection, UNANSWERED, entry)
    dequeue(state, connection, entry, LIST_HEAD)


@device_function
def dequeue(state: CorrelatorArrays, connection: int, entry: int, previous: int) -> None:
    """Remove a request from the queue."""
    after = state.entries[entry, NEXT]
    if previous == LIST_HEAD:
        state.connections[connection, OLDEST_REQUEST] = after
    else:
        state.entries[previous, NEXT] = after
    if after < 0:
        state.connections[connection, NEWEST_REQUEST] = -1 if previous == LIST_HEAD else previous
    state.connections[connection, OPEN_COUNT] -= 1
    state.connections[connection, OPEN_BYTES] -= state.entries[entry, LENGTH]
    free_entry(state, entry)


@device_function
def emit(state: CorrelatorArrays, connection: int, status: int, entry: int) -> int:
    """Write an exchange, with its request if there is an entry; return its row."""
    row = int(state.counters[ROW_COUNT])
    state.counters[ROW_COUNT] = row + 1
    state.rows[ROW_CONNECTION, row] = connection
    state.rows[ROW_STATUS, row] = status
    state.rows[ROW_CLIENT, row] = state.connections[connection, CLIENT]
    state.rows[ROW_TOKEN, row] = 0
    state.rows[ROW_FLAGS, row] = 0
    for j in range(FRAME_WIDTH):
        state.rows[ROW_RESPONSE + j, row] = NONE
        state.rows[ROW_REQUEST + j, row] = NONE if entry < 0 else state.entries[entry, START + j]
    for j in range(3):
        state.rows[ROW_API_KEY + j, row] = NONE if entry < 0 else state.entries[entry, API_KEY + j]
    if entry >= 0:
        state.rows[ROW_REQUEST, row] = emitted_address(
            state.entries[entry, START], state.counters[WINDOW_LENGTH]
        )
    if not state.connections[connection, CONNECTION_FLAGS] & HAS_EMITTED:
        state.connections[connection, CONNECTION_FLAGS] |= HAS_EMITTED
        state.emitters[state.counters[EMITTER_COUNT]] = connection
        state.counters[EMITTER_COUNT] += 1
    return row


@device_function
def emitted_address(address: int, window: int) -> int:
    """Return an address as `Frames.start` has it."""
    return address if address < CARRY_OVER_BASE else address - CARRY_OVER_BASE + window
