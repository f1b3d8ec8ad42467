"""
The kernel that frames and correlates the chunks of a window: the fast path.

It does for whole windows what `ConnectionCorrelator` does for one connection, on the tables of
`state_columns`, and emits the same rows. It processes a chunk completely, or leaves it untouched
and stops before it where the slow path is needed: for streams out of sync, impossible sizes and
headers, raw SASL tokens, responses with very many requests in flight, and ends in the middle of a
frame. One exception: the frames before such a response are processed (`FRAMED_BYTES` is the number
of bytes of the chunk that they take; all bytes of a gap, if only ready frames are left).
"""

from __future__ import annotations

from dissector.capture.columns import DATA, END, GAP, IN_WINDOW, NEVER
from dissector.engine.correlation.both_paths.correlator_arrays import (
    ChunkColumns,
    CorrelatorArrays,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    API_NOT_LOADED,
    FAST_PATH,
    SLOW_PATH,
)
from dissector.engine.correlation.both_paths.state_columns import (
    BUFFERED_BYTES,
    CARRY_OVER_BASE,
    COPY_COUNT,
    DAMAGED,
    EMITTER_COUNT,
    ENTRIES_LIVE,
    FRAGMENT_COUNT,
    FRAMED_BYTES,
    IN_SYNC,
    MODE,
    NEWEST_TIME,
    NEXT_CHUNK,
    NOT_STARTED,
    ON_SLOW_PATH,
    OPEN_COUNT,
    OTHER,
    READY_COUNT,
    RINGS_USED,
    ROW_COUNT,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SKIPPING_DAMAGED,
    TLS,
    UNRECOGNISED,
)
from dissector.engine.correlation.fast_path.framer_kernel import frame_chunk
from dissector.engine.correlation.fast_path.gap_kernel import add_gap
from dissector.engine.correlation.fast_path.match_kernel import end_connection
from dissector.engine.correlation.fast_path.ready_kernel import match_ready, set_barriers
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, I64Table

DONE, NEEDS_SLOW_PATH, TABLE_FULL, NEEDS_API = range(4)
"""
The results of the kernel: all chunks are processed; the next chunk needs the slow path; a table may
be too short for it; or the versions of API `MISSING_API` have to be loaded.
"""


@Kernel
def list_started(chunk_connection: I64, connections: I64Table, started: I64, count: int) -> int:
    """Append the connections that start with these chunks to a list; return its new length."""
    for i in range(len(chunk_connection)):
        connection = chunk_connection[i]
        if connections[connection, MODE] == NOT_STARTED:
            connections[connection, MODE] = UNRECOGNISED
            started[count] = connection
            count += 1
    return count


@Kernel
def correlate(
    chunks: ChunkColumns, state: CorrelatorArrays, carry_over_start: int, max_row_count: int
) -> int:
    """Process the chunks from `NEXT_CHUNK` on, until the slow path is needed; see the module."""
    counters = state.counters
    while counters[NEXT_CHUNK] < len(chunks.connection):
        i = counters[NEXT_CHUNK]
        mode = state.connections[chunks.connection[i], MODE]
        counters[FRAMED_BYTES] = 0
        if mode == ON_SLOW_PATH:
            return NEEDS_SLOW_PATH
        if mode != TLS and mode != OTHER:
            if not has_room(chunks, state, i, max_row_count):
                return TABLE_FULL
            outcome = process_chunk(chunks, state, i, carry_over_start)
            if outcome != FAST_PATH:
                return NEEDS_API if outcome == API_NOT_LOADED else NEEDS_SLOW_PATH
        counters[NEXT_CHUNK] = i + 1
    return DONE


@device_function
def has_room(chunks: ChunkColumns, state: CorrelatorArrays, i: int, max_row_count: int) -> bool:
    """Return whether there is room for all that a chunk may add."""
    counters, connections = state.counters, state.connections
    connection = chunks.connection[i]
    more = 2
    if chunks.kind[i] == DATA:
        more += chunks.length[i] // 8
    rows = connections[connection, OPEN_COUNT] + connections[connection, READY_COUNT] + more
    fragments = connections[connection, SIDES + chunks.side[i] * SIDE_WIDTH + FRAGMENT_COUNT]
    return bool(
        counters[ROW_COUNT] + rows <= max_row_count
        and counters[ENTRIES_LIVE] + more <= len(state.entries)
        and counters[COPY_COUNT] + fragments + 2 <= len(state.copies)
        and counters[EMITTER_COUNT] < len(state.emitters)
        and counters[RINGS_USED] < len(state.suppressed)
    )


@device_function
def process_chunk(
    chunks: ChunkColumns, state: CorrelatorArrays, i: int, carry_over_start: int
) -> int:
    """Process a chunk; return FAST_PATH if possible."""
    connections = state.connections
    connection, side, kind = chunks.connection[i], chunks.side[i], chunks.kind[i]
    time_ns = chunks.time_ns[i]
    if kind == END:
        if is_unfinished(state, connection):
            return SLOW_PATH
        set_barriers(state, connection, NEVER, NEVER)
        end_connection(state, connection)
        return FAST_PATH
    is_unrecognised = connections[connection, MODE] == UNRECOGNISED
    if kind == GAP and is_unrecognised:
        return SLOW_PATH
    set_barriers(state, connection, chunks.barrier[i, 0], chunks.barrier[i, 1])
    if kind == DATA and chunks.length[i] > 0:
        if chunks.origin[i] == IN_WINDOW:
            return frame_chunk(state, chunks, i, state.data, chunks.start[i], 0)
        start = carry_over_start + chunks.start[i]
        return frame_chunk(state, chunks, i, state.carry_over, start, CARRY_OVER_BASE)
    if is_unrecognised:
        connections[connection, NEWEST_TIME] = max(connections[connection, NEWEST_TIME], time_ns)
        return FAST_PATH
    outcome = match_ready(state, connection, time_ns)
    if kind == GAP and outcome == FAST_PATH:
        length = chunks.length[i]
        outcome = add_gap(state, connection, side, length, chunks.packet[i], time_ns)
        if outcome == FAST_PATH:
            outcome = match_ready(state, connection, time_ns)
            if outcome != FAST_PATH:
                state.counters[FRAMED_BYTES] = length
    return outcome


@device_function
def is_unfinished(state: CorrelatorArrays, connection: int) -> bool:
    """Return whether the end makes a damaged frame of an unfinished one, or frames wait."""
    if state.connections[connection, READY_COUNT] > 0:
        return True
    for side in range(2):
        at = SIDES + side * SIDE_WIDTH
        flags = state.connections[connection, at + SIDE_FLAGS]
        if flags & SKIPPING_DAMAGED:
            if state.connections[connection, at + DAMAGED] >= 0:
                return True
        elif flags & IN_SYNC and state.connections[connection, at + BUFFERED_BYTES] >= 4:
            return True
    return False
