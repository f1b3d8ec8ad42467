"""Device functions that count the gaps and repetitions of a stream."""

from __future__ import annotations

from dissector.capture.tcp.tcp_rows import (
    GAPS_REMEMBERED,
    LossRow,
    StateArrays,
    StreamRow,
)
from dissector.kernel import device_function


@device_function
def losses_of(state: StateArrays, stream: StreamRow) -> LossRow:
    """Return the loss counters of a stream, new ones if needed."""
    if stream.losses == 0:
        stream.losses = state.counts.loss_rows
        state.counts.loss_rows += 1
        losses = state.losses[stream.losses]
        losses.retransmitted_segments = losses.retransmitted_bytes = losses.late_bytes = 0
        losses.gaps = losses.gap_bytes = losses.cut_bytes = 0
        losses.newest_gap = losses.remembered = 0
    return state.losses[stream.losses]


@device_function
def remember_gap(state: StateArrays, losses: LossRow, start: int, end: int) -> None:
    """Record a gap of a stream; if there are too many, it replaces the oldest."""
    gaps, counts, newest = state.gaps, state.counts, losses.newest_gap
    if losses.remembered == GAPS_REMEMBERED:
        row = gaps[newest].following
    else:
        row = counts.free_gap
        if row != 0:
            counts.free_gap = gaps[row].following
        else:
            row = counts.gap_rows
            counts.gap_rows = row + 1
        losses.remembered += 1
        if newest == 0:
            gaps[row].following = row
        else:
            gaps[row].following = gaps[newest].following
            gaps[newest].following = row
    gaps[row].start, gaps[row].end = start, end
    losses.newest_gap = row


@device_function
def count_old(state: StateArrays, stream: StreamRow, start: int, end: int) -> None:
    """Count those bytes of a segment that lie before the next one as late or retransmitted."""
    if end - start == 1 and end == stream.next:
        return  # a keep-alive
    end = min(end, stream.next)
    losses = losses_of(state, stream)
    late, row = max(min(end, stream.first) - start, 0), losses.newest_gap
    for _ in range(losses.remembered):
        gap = state.gaps[row]
        late += max(min(end, gap.end) - max(start, gap.start), 0)
        row = gap.following
    losses.late_bytes += late
    count_repeated(state, stream, end - start - late)


@device_function
def count_repeated(state: StateArrays, stream: StreamRow, number: int) -> None:
    """Count the bytes of a segment that wait already."""
    if number > 0:
        losses = losses_of(state, stream)
        losses.retransmitted_segments += 1
        losses.retransmitted_bytes += number
        stream.resent += 1
