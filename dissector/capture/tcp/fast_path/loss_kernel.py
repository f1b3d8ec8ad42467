"""Device functions that count the gaps and repetitions of a stream, as `LossCounters`."""

from __future__ import annotations

from dissector.capture.tcp.both_paths.connection_columns import (
    COUNTERS_AT,
    COUNTS,
    FIRST,
    GAPS,
    GAPS_REMEMBERED,
    LATE_BYTES,
    NEXT,
    RESENT,
    RETRANSMITTED_BYTES,
    RETRANSMITTED_SEGMENTS,
    SIDE,
    SIDE_FLAGS,
    SIDES,
)
from dissector.capture.tcp.both_paths.tcp_arrays import StateArrays
from dissector.capture.tcp.both_paths.waiting_columns import GAP_ROWS, LOSS_ROWS
from dissector.kernel import device_function


@device_function
def loss_row(state: StateArrays, number: int, side: int) -> int:
    """Return the row of a side's loss counters, a new one if needed."""
    flags_at = SIDES + SIDE * side + SIDE_FLAGS
    row = state.connections[number, flags_at] >> COUNTERS_AT
    if row == 0:
        row = state.counts[LOSS_ROWS]
        state.counts[LOSS_ROWS] = row + 1
        for column in range(COUNTS):
            state.losses[row, column] = 0
        state.connections[number, flags_at] |= row << COUNTERS_AT
    return int(row)


@device_function
def remember_gap(state: StateArrays, number: int, side: int, start: int, end: int) -> None:
    """Record a gap of a side; if there are too many, it replaces the oldest."""
    gaps, row = state.gaps, loss_row(state, number, side)
    ring = state.losses[row, GAPS]
    if ring == 0:
        ring = state.counts[GAP_ROWS]
        state.counts[GAP_ROWS] = ring + 1
        gaps[ring, 0] = 0
        state.losses[row, GAPS] = ring
    at = gaps[ring, 0] % GAPS_REMEMBERED
    gaps[ring, 0] += 1
    gaps[ring, 1 + 2 * at] = start
    gaps[ring, 2 + 2 * at] = end


@device_function
def count_old(state: StateArrays, number: int, side: int, start: int, end: int) -> None:
    """Count those bytes of a segment that lie before the next one as late or retransmitted."""
    connections, gaps, own = state.connections, state.gaps, SIDES + SIDE * side
    next_seq = connections[number, own + NEXT]
    if end - start == 1 and end == next_seq:
        return  # a keep-alive
    end = min(end, next_seq)
    row = loss_row(state, number, side)
    ring = state.losses[row, GAPS]
    late = max(min(end, connections[number, own + FIRST]) - start, 0)
    for gap in range(min(gaps[ring, 0], GAPS_REMEMBERED) if ring != 0 else 0):
        first, last = gaps[ring, 1 + 2 * gap], gaps[ring, 2 + 2 * gap]
        late += max(min(end, last) - max(start, first), 0)
    state.losses[row, LATE_BYTES] += late
    if end - start > late:
        state.losses[row, RETRANSMITTED_SEGMENTS] += 1
        state.losses[row, RETRANSMITTED_BYTES] += end - start - late
        connections[number, own + RESENT] += 1
