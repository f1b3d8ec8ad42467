"""
The kernel that frames and correlates the chunks of a window: the fast path.

It does for whole windows what `ConnectionCorrelator` does for one connection, on the tables of
`correlator_rows`, and emits the same rows. It processes a chunk completely, or leaves it untouched
and stops before it where the slow path is needed: for streams out of sync, impossible sizes and
headers, raw SASL tokens, responses with very many requests in flight, and ends in the middle of a
frame. One exception: the frames before such a response are processed (`framed_bytes` is the number
of bytes of the chunk that they take; all bytes of a gap, if only ready frames are left).
"""

from __future__ import annotations

from dissector.capture.columns import DATA, END, GAP, IN_WINDOW, NEVER
from dissector.engine.correlation.both_paths.correlator_rows import (
    CARRY_OVER_BASE,
    NOT_STARTED,
    ON_SLOW_PATH,
    OTHER,
    TLS,
    UNRECOGNISED,
    ChunkColumns,
    ConnectionRow,
    CorrelatorState,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    API_NOT_LOADED,
    FAST_PATH,
    SLOW_PATH,
    check_first_request,
)
from dissector.engine.correlation.fast_path.framer_kernel import frame_chunk
from dissector.engine.correlation.fast_path.gap_kernel import add_gap
from dissector.engine.correlation.fast_path.match_kernel import end_connection
from dissector.engine.correlation.fast_path.ready_kernel import match_ready, set_barriers
from dissector.engine.correlation.fast_path.recognition_kernel import end_unrecognised, hold_chunk
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import Rows

DONE, NEEDS_SLOW_PATH, TABLE_FULL, NEEDS_API = range(4)
"""
The results of the kernel: all chunks are processed; the next chunk needs the slow path; a table may
be too short for it; or the versions of API `missing_api` have to be loaded.
"""


@Kernel
def list_started(
    chunk_connection: I64, connections: Rows[ConnectionRow], started: I64, count: int
) -> int:
    """Append the connections that start with these chunks to a list; return its new length."""
    for i in range(len(chunk_connection)):
        number = chunk_connection[i]
        if connections[number].mode == NOT_STARTED:
            connections[number].mode = UNRECOGNISED
            started[count] = number
            count += 1
    return count


@Kernel
def correlate(chunks: ChunkColumns, state: CorrelatorState, carry_over_start: int) -> int:
    """Process the chunks from `next_chunk` on, until the slow path is needed; see the module."""
    counts = state.counts
    while counts.next_chunk < len(chunks.connection):
        i = counts.next_chunk
        mode = state.connections[chunks.connection[i]].mode
        counts.framed_bytes = 0
        if mode == ON_SLOW_PATH:
            return NEEDS_SLOW_PATH
        if mode != TLS and mode != OTHER:
            if not has_room(chunks, state, i):
                return TABLE_FULL
            outcome = process_chunk(chunks, state, i, carry_over_start)
            if outcome != FAST_PATH:
                return NEEDS_API if outcome == API_NOT_LOADED else NEEDS_SLOW_PATH
        counts.next_chunk = i + 1
    return DONE


@device_function
def has_room(chunks: ChunkColumns, state: CorrelatorState, i: int) -> bool:
    """Return whether there is room for all that a chunk may add."""
    counts, connection = state.counts, state.connections[chunks.connection[i]]
    more = 2
    if chunks.kind[i] == DATA:
        more += chunks.length[i] // 8
    rows = connection.open_count + connection.ready_count + more
    copies = connection.sides[chunks.side[i]].fragment_count + 2
    return (
        counts.exchange_count + rows <= len(state.exchanges.connection)
        and counts.entries_live + more <= len(state.entries)
        and counts.copy_count + copies <= len(state.copies)
        and counts.emitter_count < len(state.emitters)
        and counts.rings_used < len(state.suppressed)
    )


@device_function
def process_chunk(
    chunks: ChunkColumns, state: CorrelatorState, i: int, carry_over_start: int
) -> int:
    """Process a chunk; return FAST_PATH if possible."""
    number, kind, time_ns = chunks.connection[i], chunks.kind[i], chunks.time_ns[i]
    connection = state.connections[number]
    if kind == END:
        if connection.mode == UNRECOGNISED:
            outcome = end_unrecognised(state, connection)
            if outcome != FAST_PATH:
                return outcome
        if is_unfinished(connection):
            return SLOW_PATH
        set_barriers(state, connection, NEVER, NEVER)
        end_connection(state, number)
        return FAST_PATH
    is_unrecognised = connection.mode == UNRECOGNISED
    if kind == GAP and is_unrecognised:
        return SLOW_PATH
    set_barriers(state, connection, chunks.barrier[i, 0], chunks.barrier[i, 1])
    if kind == DATA and chunks.length[i] > 0:
        if chunks.origin[i] == IN_WINDOW:
            return add_data(state, chunks, i, state.data, chunks.start[i], 0)
        start = carry_over_start + chunks.start[i]
        return add_data(state, chunks, i, state.carry_over, start, CARRY_OVER_BASE)
    if is_unrecognised:
        connection.newest_time_ns = max(connection.newest_time_ns, time_ns)
        return FAST_PATH
    outcome = match_ready(state, number, time_ns)
    if kind == GAP and outcome == FAST_PATH:
        outcome = add_gap(state, chunks, i)
        if outcome == FAST_PATH:
            outcome = match_ready(state, number, time_ns)
            if outcome != FAST_PATH:
                state.counts.framed_bytes = chunks.length[i]
    return outcome


@device_function
def add_data(
    state: CorrelatorState, chunks: ChunkColumns, i: int, source: U8, start: int, address_base: int
) -> int:
    """Frame a chunk of data, or hold it back while the protocol is open."""
    connection, side = state.connections[chunks.connection[i]], chunks.side[i]
    if connection.mode != UNRECOGNISED:
        return frame_chunk(state, chunks, i, source, start, address_base)
    if side == 0 and connection.start_captured and is_untouched(connection):
        length = chunks.length[i]
        outcome = check_first_request(source, start, length, state.counts, state.api_limits)
        if outcome == API_NOT_LOADED:
            return outcome
        if outcome == FAST_PATH:
            return frame_chunk(state, chunks, i, source, start, address_base)
    return hold_chunk(state, chunks, i, source, start, address_base)


@device_function
def is_untouched(connection: ConnectionRow) -> bool:
    """Return whether a connection has no bytes so far."""
    first, second = connection.sides[0], connection.sides[1]
    is_begin = first.base == 0 and second.base == 0
    return is_begin and first.buffered_bytes == 0 and second.buffered_bytes == 0


@device_function
def is_unfinished(connection: ConnectionRow) -> bool:
    """Return whether the end makes a damaged frame of an unfinished one, or frames wait."""
    if connection.ready_count > 0:
        return True
    for side in range(2):
        stream = connection.sides[side]
        if stream.skips_damaged:
            if stream.damaged >= 0:
                return True
        elif stream.in_sync and stream.buffered_bytes >= 4:
            return True
    return False
