"""Device functions for the deadlines of what waits, by the clock of the capture."""

from __future__ import annotations

from dissector.capture.tcp.reassembly_limits import CHECK_NS, WAIT_NS
from dissector.capture.tcp.stream_kernel import is_pending
from dissector.capture.tcp.tcp_rows import NONE, ConnectionRow, StateArrays
from dissector.capture.tcp.waiting_rows import DeadlineRow, Ring
from dissector.kernel import device_function
from dissector.kernel.named_rows import Rows


@device_function
def is_waiting(state: StateArrays, connection: ConnectionRow) -> bool:
    """Return whether the passage of time alone may release something in a connection."""
    return is_pending(state, connection, 0) or is_pending(state, connection, 1)


@device_function
def is_unacked(state: StateArrays, connection: ConnectionRow) -> bool:
    """Return whether a hole waits whose loss no captured acknowledgement confirms."""
    for side in range(2):
        if connection.streams[side].acked == NONE and is_pending(state, connection, side):
            return True
    return False


@device_function
def add_deadlines(state: StateArrays, number: int) -> None:
    """Set the deadlines of what waits in a connection after a segment."""
    connection, rings = state.connections[number], state.counts.rings
    clock_ns = state.segment.clock_ns
    if connection.waits == 0 or not is_waiting(state, connection):
        return
    add_deadline(state.deadlines, rings[0], clock_ns + WAIT_NS, number)
    if not connection.is_checked and is_unacked(state, connection):
        connection.is_checked = True
        add_deadline(state.checks, rings[1], clock_ns + CHECK_NS, number)


@device_function
def check_again(state: StateArrays, number: int) -> None:
    """Set the next check of a connection if a hole still waits without acknowledgements."""
    connection = state.connections[number]
    connection.is_checked = is_unacked(state, connection)
    if connection.is_checked:
        time_ns = state.segment.clock_ns + CHECK_NS
        add_deadline(state.checks, state.counts.rings[1], time_ns, number)


@device_function
def add_deadline(deadlines: Rows[DeadlineRow], ring: Ring, time_ns: int, number: int) -> None:
    """Add a deadline, which must not be before the others."""
    row = deadlines[(ring.first + ring.count) % len(deadlines)]
    row.time_ns, row.connection = time_ns, number
    ring.count += 1


@device_function
def due(deadlines: Rows[DeadlineRow], ring: Ring, clock_ns: int) -> int:
    """Return the connection of the first deadline if the clock has reached it; else -1."""
    if ring.count == 0 or deadlines[ring.first].time_ns > clock_ns:
        return -1
    return deadlines[ring.first].connection
