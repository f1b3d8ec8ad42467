"""
The kernel that frames and correlates the chunks of a window: the fast path.

It does for whole windows what `ConnectionCorrelator` does for one connection, on the tables of
`state_columns`, and emits the same rows. It processes a chunk completely, or leaves it untouched
and stops before it where the slow path is needed: for gaps and streams that wait behind them,
streams out of sync, impossible sizes and headers, raw SASL tokens, early responses, and ends in the
middle of a frame. One exception: the frames before such a response are processed (`FRAMED_BYTES` is
the number of bytes of the chunk that they take).
"""

from __future__ import annotations

from dissector.capture.columns import END, GAP, IN_WINDOW, NEVER
from dissector.engine.correlation.frame_checks_kernel import API_NOT_LOADED, FAST_PATH
from dissector.engine.correlation.framer_kernel import frame_chunk
from dissector.engine.correlation.match_kernel import end_connection
from dissector.engine.correlation.state_columns import (
    BUFFERED_BYTES,
    CARRY_OVER_BASE,
    COPY_COUNT,
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
    ROW_COUNT,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SKIPPING_DAMAGED,
    TLS,
    UNRECOGNISED,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I8, I64, U8, I64Table

DONE, NEEDS_SLOW_PATH, TABLE_FULL, NEEDS_API = range(4)
"""
What the kernel returns: all chunks are processed; the next chunk needs the slow path; a table may
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
    chunk_connection: I64,
    side: I8,
    kind: I8,
    origin: I8,
    start: I64,
    length: I64,
    packet: I64,
    time_ns: I64,
    horizon: I64Table,
    carry_over_start: int,
    max_row_count: int,
    data: U8,
    carry_over: U8,
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    copies: I64Table,
    emitters: I64,
    api_limits: I64Table,
    frame_head: U8,
) -> int:
    """Process the chunks from `NEXT_CHUNK` on, as far as the fast path goes; see the module."""
    while counters[NEXT_CHUNK] < len(chunk_connection):
        i = counters[NEXT_CHUNK]
        connection = chunk_connection[i]
        mode = connections[connection, MODE]
        counters[FRAMED_BYTES] = 0
        if mode != TLS and mode != OTHER:
            if mode == ON_SLOW_PATH or kind[i] == GAP:
                return NEEDS_SLOW_PATH
            if horizon[i, 0] != NEVER or horizon[i, 1] != NEVER:
                return NEEDS_SLOW_PATH
            more = length[i] // 8 + 2
            fragments = connections[connection, SIDES + side[i] * SIDE_WIDTH + FRAGMENT_COUNT]
            if (
                counters[ROW_COUNT] + connections[connection, OPEN_COUNT] + more > max_row_count
                or counters[ENTRIES_LIVE] + more > len(entries)
                or counters[COPY_COUNT] + fragments + 2 > len(copies)
                or counters[EMITTER_COUNT] == len(emitters)
            ):
                return TABLE_FULL
            if kind[i] == END:
                if is_within_frame(connections, connection):
                    return NEEDS_SLOW_PATH
                end_connection(counters, connections, entries, rows, emitters, connection)
            elif length[i] == 0:
                connections[connection, NEWEST_TIME] = max(
                    connections[connection, NEWEST_TIME], time_ns[i]
                )
            else:
                in_window = origin[i] == IN_WINDOW
                outcome = frame_chunk(
                    connection,
                    side[i],
                    data if in_window else carry_over,
                    start[i] if in_window else carry_over_start + start[i],
                    0 if in_window else CARRY_OVER_BASE,
                    length[i],
                    packet[i],
                    time_ns[i],
                    data,
                    carry_over,
                    counters,
                    connections,
                    entries,
                    rows,
                    copies,
                    emitters,
                    api_limits,
                    frame_head,
                )
                if outcome != FAST_PATH:
                    return NEEDS_API if outcome == API_NOT_LOADED else NEEDS_SLOW_PATH
        counters[NEXT_CHUNK] = i + 1
    return DONE


@device_function
def is_within_frame(connections: I64Table, connection: int) -> bool:
    """Return whether a side is within a frame that the end would make a damaged one."""
    for s in range(2):
        at = SIDES + s * SIDE_WIDTH
        if (
            connections[connection, at + SIDE_FLAGS] & (IN_SYNC | SKIPPING_DAMAGED) == IN_SYNC
            and connections[connection, at + BUFFERED_BYTES] >= 4
        ):
            return True
    return False
