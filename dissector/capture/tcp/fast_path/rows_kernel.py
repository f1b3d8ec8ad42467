"""Device functions that write rows of `Chunks`."""

from __future__ import annotations

from dissector.capture.columns import DATA, IN_WINDOW, NEVER
from dissector.capture.tcp.both_paths.tcp_rows import ChunkArrays, StateArrays, WaitingSide
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
    row = state.counts.rows
    state.counts.rows = row + 1
    out.connection[row] = number
    out.start[row] = 0
    out.length[row] = 0
    out.packet[row] = packet
    out.time_ns[row] = time_ns
    out.release[row] = release
    out.side[row] = side
    out.kind[row] = kind
    out.origin[row] = IN_WINDOW
    wait = state.connections[number].waits
    for each in range(2):
        barrier = NEVER
        if wait != 0:
            waiting = state.waits[wait].sides[each]
            barrier = waiting.barrier = oldest_packet(state, waiting)
        out.barrier[row, each] = barrier
    return row


@device_function
def oldest_packet(state: StateArrays, waiting: WaitingSide) -> int:
    """Return the lowest packet with waiting bytes of a side."""
    return NEVER if waiting.oldest < 0 else state.waiting[waiting.oldest].packet


@device_function
def emit_barriers(
    state: StateArrays, out: ChunkArrays, number: int, packet: int, time_ns: int
) -> None:
    """Emit a row without bytes if a barrier has risen since the newest row."""
    wait = state.waits[state.connections[number].waits]
    for side in range(2):
        if oldest_packet(state, wait.sides[side]) > wait.sides[side].barrier:
            emit_row(state, out, number, side, DATA, packet, time_ns, packet)
