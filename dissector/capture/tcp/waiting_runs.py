"""
Device functions for the waiting segments of a side, and the runs without a hole that they form.

Runs are a list by position, and a tree over it; segments are a list by arrival.

The tree is a zip tree: a binary search tree in which each run has a random rank, and none a higher
one than the run above it. So it needs no balancing, and a search takes logarithmic time, whatever
the author of a capture does. Row 0 means none.

Source: R. Tarjan, C. Levy, S. Timmel, "Zip trees" (2021).
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.hashing import hash_key
from dissector.capture.tcp.tcp_rows import NONE, SegmentRow, StateArrays, StreamRow
from dissector.capture.tcp.waiting_rows import WaitingSegment, WaitingSide
from dissector.kernel import device_function


@device_function
def find_run(state: StateArrays, waiting: WaitingSide, seq: int) -> int:
    """Return the last run that begins at or before `seq`; 0 without one."""
    found, at = 0, waiting.root
    while at != 0:
        if state.runs[at].start <= seq:
            found, at = at, state.runs[at].higher
        else:
            at = state.runs[at].lower
    return found


@device_function
def add_run(state: StateArrays, waiting: WaitingSide, before: int, start: int, end: int) -> int:
    """Add a run without segments after another one, or as the first; return it."""
    runs, counts, number = state.runs, state.counts, state.counts.free_run
    if number != 0:
        counts.free_run = runs[number].after
    else:
        number = counts.runs_used
        counts.runs_used = number + 1
    run = runs[number]
    run.start, run.end, run.covered_ns, run.first, run.last = start, end, NEVER, 0, 0
    run.before = before
    run.after = runs[before].after if before != 0 else waiting.first
    if before != 0:
        runs[before].after = number
    else:
        waiting.first = number
    if run.after != 0:
        runs[run.after].before = number
    waiting.runs += 1
    run.rank = hash_key(state.secret, number + start)
    insert_run(state, waiting, number)
    return number


@device_function
def insert_run(state: StateArrays, waiting: WaitingSide, number: int) -> None:
    """Insert a run into the tree: above those of lower rank, which are parted at its start."""
    runs = state.runs
    run, above, at = runs[number], 0, waiting.root
    while at != 0 and run.rank <= runs[at].rank:
        above = at
        at = runs[at].lower if run.start < runs[at].start else runs[at].higher
    if above == 0:
        waiting.root = number
    elif run.start < runs[above].start:
        runs[above].lower = number
    else:
        runs[above].higher = number
    run.lower = run.higher = 0
    low, high = number, number  # the last of those below, and above, its start
    while at != 0:
        if runs[at].start < run.start:
            if low == number:
                run.lower = at
            else:
                runs[low].higher = at
            low, at = at, runs[at].higher
        else:
            if high == number:
                run.higher = at
            else:
                runs[high].lower = at
            high, at = at, runs[at].lower
    if low != number:
        runs[low].higher = 0
    if high != number:
        runs[high].lower = 0


@device_function
def remove_run(state: StateArrays, waiting: WaitingSide, number: int) -> None:
    """Remove a run, whose segments must belong to another one, or be released."""
    runs, counts = state.runs, state.counts
    run, above, at = runs[number], 0, waiting.root
    while at != number:
        above = at
        at = runs[at].lower if run.start < runs[at].start else runs[at].higher
    joined = join_trees(state, run.lower, run.higher)
    if above == 0:
        waiting.root = joined
    elif run.start < runs[above].start:
        runs[above].lower = joined
    else:
        runs[above].higher = joined
    if run.before != 0:
        runs[run.before].after = run.after
    else:
        waiting.first = run.after
    if run.after != 0:
        runs[run.after].before = run.before
    waiting.runs -= 1
    run.after = counts.free_run
    counts.free_run = number


@device_function
def join_trees(state: StateArrays, low: int, high: int) -> int:
    """Join two trees, one below the other by position; return the run on top."""
    runs, top, above, is_low = state.runs, 0, 0, False
    while low != 0 and high != 0:
        at = low if runs[low].rank >= runs[high].rank else high
        if above == 0:
            top = at
        elif is_low:
            runs[above].higher = at
        else:
            runs[above].lower = at
        above, is_low = at, at == low
        if is_low:
            low = runs[at].higher
        else:
            high = runs[at].lower
    rest = low if low != 0 else high
    if above == 0:
        return rest
    if is_low:
        runs[above].higher = rest
    else:
        runs[above].lower = rest
    return top


@device_function
def add_bytes(
    state: StateArrays,
    stream: StreamRow,
    waiting: WaitingSide,
    seq: int,
    end: int,
    segment: SegmentRow,
    old: int,
) -> int:
    """
    Add those bytes of a segment that do not wait yet; return their number.

    The segment fills the holes between runs, and joins them.

    Args:
        state: Of all connections.
        stream: The stream.
        waiting: What waits of it.
        seq: The sequence number of the first byte to add.
        end: The sequence number after the last one.
        segment: The segment.
        old: Number of its bytes before `seq`.
    """
    runs, before, bytes_before = state.runs, find_run(state, waiting, seq), waiting.bytes
    skipped = old - seq
    into, at = before, seq
    if before == 0 or runs[before].end < seq:
        into = runs[before].after if before != 0 else waiting.first
        if into == 0 or runs[into].start > end:
            into = add_run(state, waiting, before, seq, seq)
        else:
            stop = runs[into].start
            part = new_segment(state, waiting, segment, skipped + seq, seq, stop)
            state.waiting[part].after = runs[into].first
            runs[into].first, runs[into].start = part, seq
        is_covered = stream.acked != NONE and seq <= stream.acked
        runs[into].covered_ns = stream.acked_ns if is_covered else NEVER
    run, at = runs[into], max(at, runs[into].end)
    while run.after != 0 and runs[run.after].start <= end:
        number = run.after
        if at < runs[number].start:
            part = new_segment(state, waiting, segment, skipped + at, at, runs[number].start)
            append_part(state, into, part)
        state.waiting[run.last].after = runs[number].first
        run.last, run.end, at = runs[number].last, runs[number].end, runs[number].end
        remove_run(state, waiting, number)
    if at < end:
        append_part(state, into, new_segment(state, waiting, segment, skipped + at, at, end))
    return waiting.bytes - bytes_before


@device_function
def append_part(state: StateArrays, into: int, part: int) -> None:
    """Append a segment to a run."""
    run = state.runs[into]
    if run.last != 0:
        state.waiting[run.last].after = part
    else:
        run.first = part
    run.last, run.end = part, state.waiting[part].end


@device_function
def new_segment(
    state: StateArrays, waiting: WaitingSide, segment: SegmentRow, skipped: int, seq: int, end: int
) -> int:
    """Add bytes of a segment as the newest that wait; return their row."""
    segments, counts, number = state.waiting, state.counts, state.counts.free_segment
    if number != 0:
        counts.free_segment = segments[number].after
    else:
        number = counts.segments_used
        counts.segments_used = number + 1
    fill_segment(state, number, segment, skipped, seq, end)
    row = segments[number]
    row.after, row.later, row.earlier = 0, 0, waiting.newest
    if waiting.newest != 0:
        segments[waiting.newest].later = number
    else:
        waiting.oldest = number
    waiting.newest = number
    waiting.segments += 1
    waiting.bytes += end - seq
    counts.segments_live += 1
    counts.total_bytes += end - seq
    return number


@device_function
def fill_segment(
    state: StateArrays, at: int, segment: SegmentRow, skipped: int, seq: int, end: int
) -> None:
    """Fill a row of waiting segments from a segment, without its first bytes."""
    row = state.waiting[at]
    row.seq, row.end = seq, end
    row.captured = min(max(segment.captured - skipped, 0), end - seq)
    row.packet = segment.packet
    row.time_ns = segment.time_ns
    row.start = segment.start + skipped


@device_function
def end_wait(state: StateArrays, waiting: WaitingSide, segment: WaitingSegment) -> None:
    """Remove a segment from those that wait."""
    segments, counts = state.waiting, state.counts
    if segment.earlier != 0:
        segments[segment.earlier].later = segment.later
    else:
        waiting.oldest = segment.later
    if segment.later != 0:
        segments[segment.later].earlier = segment.earlier
    else:
        waiting.newest = segment.earlier
    waiting.segments -= 1
    waiting.bytes -= segment.end - segment.seq
    counts.total_bytes -= segment.end - segment.seq
    counts.segments_live -= 1
