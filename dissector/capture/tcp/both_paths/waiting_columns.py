"""Columns of segments waiting behind holes, and of their connections."""

from __future__ import annotations

FIRST, LAST, OLDEST, NEWEST, WAITING_BYTES, WAITING_SEGMENTS, UNACKED, BARRIER = range(8)
"""
Columns of a side with possibly waiting segments.

Its segments form a list by sequence number, from `FIRST` to `LAST`, and one by arrival, from
`OLDEST` to `NEWEST`; -1 without any. `UNACKED` is the first by sequence number that begins behind
the newest acknowledgement. `BARRIER` is the barrier in the newest row of `Chunks`.
"""

WAIT_SIDE = 8
WAIT_WIDTH = 2 * WAIT_SIDE

NEXT_FREE = FIRST
"""In a row that is free: the next free one; 0: none."""

AFTER, BEFORE, LATER, EARLIER, SEQ, END, CAPTURED, PACKET, TIME_NS, START, COVERED_NS = range(11)
"""
Columns of a waiting segment: its neighbours by sequence number and by arrival (-1: none), then the
attributes of `SegmentBytes`, then the time of the acknowledgement that first covered all before it
(`NEVER`: none has). Of a free one, `AFTER` is the next free one and `CAPTURED` is 0.
"""

SEGMENT_WIDTH = 11

RELEASED = 0
"""The row of the segment that is released; it waits no more."""

CARRY_OVER_BASE = 1 << 40
"""A `START` of at least this is in the carry-over buffer, else in the window."""

(
    ROWS,
    CONNECTIONS,
    FLOWS,
    OWNER,
    NEEDED_ROWS,
    CARRIED_BYTES,
    WAITING_CARRIED_BYTES,
    FREE_WAIT,
    WAITS_USED,
    FREE_SEGMENT,
    SEGMENTS_USED,
    SEGMENTS_LIVE,
    TOTAL_BYTES,
    FORCED_GAPS,
    LOSS_ROWS,
    GAP_ROWS,
    MAX_TOTAL_BYTES,
) = range(17)
"""
Counters and limits that kernels and objects share.

`ROWS` of `Chunks` are written, and `CARRIED_BYTES` of its carry-over buffer, which has room for all
the `WAITING_CARRIED_BYTES` besides. `OWNER` is the owner of the flow of the segment that stopped
the kernel; it stopped for lack of room if `NEEDED_ROWS` is not 0. `TOTAL_BYTES` wait on all
connections together. The first rows of waits and of loss counters are never used, so that 0 means
none.
"""

COUNTS = 17
