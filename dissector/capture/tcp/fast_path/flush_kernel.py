"""The end of connections: a kernel that releases all waiting data."""

from __future__ import annotations

from dissector.capture.tcp.both_paths.connection_columns import (
    ACKED,
    ACKED_NS,
    ACKED_PACKET,
    ANCHORED,
    FINISHED,
    HAS_ACKED,
    LIVE,
    NEXT,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    STATE,
    WAITS,
)
from dissector.capture.tcp.both_paths.tcp_arrays import ChunkArrays, StateArrays
from dissector.capture.tcp.both_paths.waiting_columns import FIRST, SEQ, WAIT_SIDE
from dissector.capture.tcp.fast_path.waiting_kernel import (
    emit_gap,
    emit_gap_before,
    has_room,
    release_run,
)
from dissector.capture.tcp.fast_path.waiting_lists import free_wait
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64


@Kernel
def flush_connections(
    numbers: I64, state: StateArrays, out: ChunkArrays, at: int, release: int
) -> int:
    """
    Release all that waits on connections, with gaps for the holes, at the end; as `Stream.flush`.

    Args:
        numbers: The connections.
        state: Of all.
        out: Receives the rows.
        at: Index of the first to flush.
        release: The packet that releases.

    Returns:
        The index of the first live connection or the first without room, or their number.
    """
    connections = state.connections
    while at < len(numbers):
        number = numbers[at]
        if connections[number, STATE] & LIVE or not has_room(
            state, out, connections[number, WAITS]
        ):
            break
        for side in range(2):
            flush(state, out, number, side, release)
        if connections[number, WAITS] != 0:
            free_wait(state, number)
        at += 1
    return at


@device_function
def flush(state: StateArrays, out: ChunkArrays, number: int, side: int, release: int) -> None:
    """Release all waiting data of a side, and report other known gaps."""
    connections, own, wait = (
        state.connections,
        SIDES + SIDE * side,
        state.connections[number, WAITS],
    )
    if wait != 0:
        first = state.waits[wait, WAIT_SIDE * side + FIRST]
        while first >= 0:
            if state.waiting[first, SEQ] > connections[number, own + NEXT]:
                emit_gap_before(state, out, number, side, first, release)
            release_run(state, out, number, side, release)
            first = state.waits[wait, WAIT_SIDE * side + FIRST]
    flags = connections[number, own + SIDE_FLAGS] & (ANCHORED | HAS_ACKED | FINISHED)
    acked = connections[number, own + ACKED]
    # One acknowledged number more may be a FIN that was not captured.
    if flags == ANCHORED | HAS_ACKED and acked - connections[number, own + NEXT] > 1:
        packet = connections[number, own + ACKED_PACKET]
        time_ns = connections[number, own + ACKED_NS]
        emit_gap(state, out, number, side, acked, packet, time_ns, release)
