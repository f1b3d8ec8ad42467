"""Correlates complete frames, as device functions: queues requests, matches responses to them."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.frame_checks_kernel import NOT_DUE
from dissector.engine.correlation.linked_lists import LIST_HEAD, NOT_FOUND, free_entry, new_entry
from dissector.engine.correlation.open_requests import MAX_SUPPRESSED
from dissector.engine.correlation.state_columns import (
    API_KEY,
    CARRY_OVER_BASE,
    CLIENT,
    CONNECTION_FLAGS,
    CORRELATION_ID,
    EMITTER_COUNT,
    FRAME_WIDTH,
    HAS_EMITTED,
    HIGHEST_ID,
    LENGTH,
    MAX_OPEN_REQUEST_BYTES,
    MAX_OPEN_REQUESTS,
    NEWEST_REQUEST,
    NEWEST_SUPPRESSED,
    NEWEST_TIME,
    NEXT,
    OLDEST_REQUEST,
    OPEN_BYTES,
    OPEN_COUNT,
    PACKET,
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
    WINDOW_LENGTH,
)
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN, UNANSWERED
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, I64Table


@device_function
def enqueue(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    emitters: I64,
    connection: int,
    entry: int,
    due: int,
) -> None:
    """Queue a request until its response comes; emit it at once if none is due (acks = 0)."""
    correlation_id = entries[entry, CORRELATION_ID]
    if (
        connections[connection, HIGHEST_ID] == NEVER
        or connections[connection, HIGHEST_ID] < correlation_id
    ):
        connections[connection, HIGHEST_ID] = correlation_id
    if due == NOT_DUE:
        emit(counters, connections, entries, rows, emitters, connection, NO_RESPONSE, entry)
        free_entry(counters, entries, entry)
        suppress(counters, connections, entries, connection, correlation_id)
        return
    if connections[connection, NEWEST_REQUEST] < 0:
        connections[connection, OLDEST_REQUEST] = entry
    else:
        entries[connections[connection, NEWEST_REQUEST], NEXT] = entry
    connections[connection, NEWEST_REQUEST] = entry
    connections[connection, OPEN_COUNT] += 1
    connections[connection, OPEN_BYTES] += entries[entry, LENGTH]
    while connections[connection, OPEN_COUNT] > counters[MAX_OPEN_REQUESTS] or (
        connections[connection, OPEN_BYTES] > counters[MAX_OPEN_REQUEST_BYTES]
        and connections[connection, OPEN_COUNT] > 1
    ):
        emit_oldest(counters, connections, entries, rows, emitters, connection)


@device_function
def suppress(
    counters: I64, connections: I64Table, entries: I64Table, connection: int, correlation_id: int
) -> None:
    """Remember a correlation id whose response is suppressed, in the ring of the connection."""
    newest = connections[connection, NEWEST_SUPPRESSED]
    if connections[connection, SUPPRESSED_COUNT] == MAX_SUPPRESSED:
        entry = entries[newest, NEXT]
    else:
        entry = new_entry(counters, entries)
        entries[entry, START] = CARRY_OVER_BASE
        entries[entry, LENGTH] = 0
        entries[entry, PACKET] = NEVER
        entries[entry, NEXT] = entry if newest < 0 else entries[newest, NEXT]
        if newest >= 0:
            entries[newest, NEXT] = entry
        connections[connection, SUPPRESSED_COUNT] += 1
    entries[entry, CORRELATION_ID] = correlation_id
    connections[connection, NEWEST_SUPPRESSED] = entry


@device_function
def match_response(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    emitters: I64,
    connection: int,
    previous: int,
    correlation_id: int,
) -> int:
    """
    Emit a response, with its request or as an orphan.

    Args:
        counters: See `state_columns`, as for the other tables.
        connections: The same.
        entries: The same.
        rows: The same.
        emitters: The same.
        connection: Number of the connection.
        previous: The entry before the request's.
        correlation_id: Of the response.

    Returns:
        The row, in which the caller fills in the columns of the response.
    """
    if previous == NOT_FOUND:
        row = emit(counters, connections, entries, rows, emitters, connection, ORPHAN, -1)
        rows[ROW_CORRELATION_ID, row] = correlation_id
        return row
    request = (
        connections[connection, OLDEST_REQUEST]
        if previous == LIST_HEAD
        else entries[previous, NEXT]
    )
    row = emit(counters, connections, entries, rows, emitters, connection, ANSWERED, request)
    dequeue(counters, connections, entries, connection, request, previous)
    return row


@device_function
def end_connection(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    emitters: I64,
    connection: int,
) -> None:
    """End a connection: its requests in flight are unanswered."""
    while connections[connection, OPEN_COUNT] > 0:
        emit_oldest(counters, connections, entries, rows, emitters, connection)
    connections[connection, NEWEST_TIME] = 0
    while connections[connection, SUPPRESSED_COUNT] > 0:
        entry = connections[connection, NEWEST_SUPPRESSED]
        connections[connection, NEWEST_SUPPRESSED] = entries[entry, NEXT]
        connections[connection, SUPPRESSED_COUNT] -= 1
        free_entry(counters, entries, entry)
    connections[connection, NEWEST_SUPPRESSED] = -1


@device_function
def emit_oldest(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    emitters: I64,
    connection: int,
) -> None:
    """Emit the oldest request in flight as unanswered."""
    entry = connections[connection, OLDEST_REQUEST]
    emit(counters, connections, entries, rows, emitters, connection, UNANSWERED, entry)
    dequeue(counters, connections, entries, connection, entry, LIST_HEAD)


@device_function
def dequeue(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    connection: int,
    entry: int,
    previous: int,
) -> None:
    """Remove a request from the queue."""
    after = entries[entry, NEXT]
    if previous == LIST_HEAD:
        connections[connection, OLDEST_REQUEST] = after
    else:
        entries[previous, NEXT] = after
    if after < 0:
        connections[connection, NEWEST_REQUEST] = -1 if previous == LIST_HEAD else previous
    connections[connection, OPEN_COUNT] -= 1
    connections[connection, OPEN_BYTES] -= entries[entry, LENGTH]
    free_entry(counters, entries, entry)


@device_function
def emit(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    emitters: I64,
    connection: int,
    status: int,
    entry: int,
) -> int:
    """Write an exchange, with its request if there is an entry; return its row."""
    row = int(counters[ROW_COUNT])
    counters[ROW_COUNT] = row + 1
    rows[ROW_CONNECTION, row] = connection
    rows[ROW_STATUS, row] = status
    rows[ROW_CLIENT, row] = connections[connection, CLIENT]
    rows[ROW_TOKEN, row] = 0
    rows[ROW_FLAGS, row] = 0
    for j in range(FRAME_WIDTH):
        rows[ROW_RESPONSE + j, row] = NONE
        rows[ROW_REQUEST + j, row] = NONE if entry < 0 else entries[entry, START + j]
    for j in range(3):
        rows[ROW_API_KEY + j, row] = NONE if entry < 0 else entries[entry, API_KEY + j]
    if entry >= 0:
        rows[ROW_REQUEST, row] = emitted_address(entries[entry, START], counters[WINDOW_LENGTH])
    if not connections[connection, CONNECTION_FLAGS] & HAS_EMITTED:
        connections[connection, CONNECTION_FLAGS] |= HAS_EMITTED
        emitters[counters[EMITTER_COUNT]] = connection
        counters[EMITTER_COUNT] += 1
    return row


@device_function
def emitted_address(address: int, window: int) -> int:
    """Return an address as `Frames.start` has it."""
    return address if address < CARRY_OVER_BASE else address - CARRY_OVER_BASE + window
