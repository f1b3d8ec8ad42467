"""Device functions that write rows of `Chunks`."""

from __future__ import annotations

from dissector.capture.columns import DATA, IN_WINDOW, NEVER
from dissector.capture.tcp.both_paths.chunk_columns import (
    CONNECTION,
    KIND,
    LENGTH,
    ORIGIN,
    RELEASE,
    SIDE,
    START,
)
from dissector.capture.tcp.both_paths.chunk_columns import PACKET as CHUNK_PACKET
from dissector.capture.tcp.both_paths.chunk_columns import TIME_NS as CHUNK_TIME_NS
from dissector.capture.tcp.both_paths.connection_columns import WAITS
from dissector.capture.tcp.both_paths.tcp_arrays import ChunkArrays, StateArrays
from dissector.capture.tcp.both_paths.waiting_columns import (
    BARRIER,
    OLDEST,
    PACKET,
    ROWS,
    WAIT_SIDE,
)
from dissector.kernel import device_function


@device_function
def emit_row(
    state: StateArrays,
    out: ChunkArrays,
    number: int,
    side: int,
    kind: int,
    packet: int,
    time_ns: int,
    release: int,
) -> int:
    """Write a row without bytes, and the barriers of its connection; return it."""
    row = state.counts[ROWS]
    state.counts[ROWS] = row + 1
    out.wide[CONNECTION, row] = number
    out.wide[START, row] = 0
    out.wide[LENGTH, row] = 0
    out.wide[CHUNK_PACKET, row] = packet
    out.wide[CHUNK_TIME_NS, row] = time_ns
    out.wide[RELEASE, row] = release
    out.narrow[SIDE, row] = side
    out.narrow[KIND, row] = kind
    out.narrow[ORIGIN, row] = IN_WINDOW
    wait = state.connections[number, WAITS]
    for each in range(2):
        barrier = NEVER
        if wait != 0:
            barrier = oldest_packet(state, wait, each)
            state.waits[wait, WAIT_SIDE * each + BARRIER] = barrier
        out.barrier[row, each] = barrier
    return int(row)


@device_function
def oldest_packet(state: StateArrays, wait: int, side: int) -> int:
    """Return the lowest packet with waiting bytes of a side."""
    oldest = state.waits[wait, WAIT_SIDE * side + OLDEST]
    return NEVER if oldest < 0 else int(state.waiting[oldest, PACKET])


@device_function
def emit_barriers(
    state: StateArrays, out: ChunkArrays, number: int, packet: int, time_ns: int
) -> None:
    """Emit a row without bytes if a barrier has risen since the newest row."""
    wait = state.connections[number, WAITS]
    for side in range(2):
        if oldest_packet(state, wait, side) > state.waits[wait, WAIT_SIDE * side + BARRIER]:
            emit_row(state, out, number, side, DATA, packet, time_ns, packet)
