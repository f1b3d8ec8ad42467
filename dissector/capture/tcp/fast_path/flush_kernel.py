"""The end of connections: a kernel that releases all waiting data."""

from __future__ import annotations

from dissector.capture.tcp.both_paths.tcp_rows import ChunkArrays, StateArrays
from dissector.capture.tcp.fast_path.connection_row import misses_end
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
    while at < len(numbers):
        number = numbers[at]
        connection = state.connections[number]
        if connection.is_live or not has_room(state, out, connection.waits):
            break
        for side in range(2):
            flush(state, out, number, side, release)
        if connection.waits != 0:
            free_wait(state, connection)
        at += 1
    return at


@device_function
def flush(state: StateArrays, out: ChunkArrays, number: int, side: int, release: int) -> None:
    """Release all waiting data of a side, and report other known gaps."""
    connection = state.connections[number]
    stream = connection.streams[side]
    if connection.waits != 0:
        waiting = state.waits[connection.waits].sides[side]
        while waiting.first >= 0:
            if state.waiting[waiting.first].seq > stream.next:
                emit_gap_before(state, out, number, side, waiting.first, release)
            release_run(state, out, number, side, release)
    if misses_end(stream):
        packet, time_ns = stream.acked_packet, stream.acked_ns
        emit_gap(state, out, number, side, stream.acked, packet, time_ns, release)
