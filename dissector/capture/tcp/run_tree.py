"""
Device functions for the runs of waiting bytes of a side: a list by position, and a tree over it.

The tree is a zip tree: a binary search tree in which each run has a random rank, and none a higher
one than the run above it. So it needs no balancing, and a search takes logarithmic time, whatever
the author of a capture does. Row 0 means none.

Source: R. Tarjan, C. Levy, S. Timmel, "Zip trees" (2021).
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.hashing import hash_key
from dissector.capture.tcp.tcp_rows import StateArrays, WaitingSide
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
