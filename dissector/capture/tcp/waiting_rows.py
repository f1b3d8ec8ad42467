"""What waits in TCP connections, as rows."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.kernel import device_function
from dissector.kernel.named_rows import NamedRow, Two

CARRY_OVER_BASE = 1 << 40
"""A waiting segment's `start` of at least this is in `carried`, else in the window."""

IN_HAND = 0
"""The row of waiting segments for bytes that are released at once."""


class WaitingSide(NamedRow):
    """
    The waiting segments of one side, in runs without a hole, and in a list by arrival.

    Attributes:
        first: The first run by position; 0 without any.
        root: The run on top of the tree; see `run_tree`.
        oldest: The segment that has waited longest; 0 without any.
        newest: The segment that came last; 0 without any.
        bytes: Number of bytes that wait.
        segments: Number of segments.
        runs: Number of runs.
        barrier: The barrier in the newest row of `Chunks`.
    """

    first: int
    root: int
    oldest: int
    newest: int
    bytes: int
    segments: int
    runs: int
    barrier: int


class WaitRow(NamedRow):
    """
    What waits in a connection.

    Attributes:
        sides: Of each side.
        next_free: Of a free row, the next free one; 0: none.
    """

    sides: Two[WaitingSide]
    next_free: int


class RunRow(NamedRow):
    """
    Waiting bytes of a side without a hole in between.

    Attributes:
        start: The first sequence number.
        end: The sequence number after the last byte.
        first: The segment with the first bytes.
        last: The segment with the last bytes.
        covered_ns: The time of the acknowledgement that first covered all before them; `NEVER`:
            none has.
        before: The previous run; 0: none.
        after: The next run; 0: none. Of a free row, the next free one.
        lower: The top of the tree of lower runs below this one; 0: none.
        higher: The top of the tree of higher runs below this one; 0: none.
        rank: A random number: no run below this one has a higher one.
    """

    start: int
    end: int
    first: int
    last: int
    covered_ns: int
    before: int
    after: int
    lower: int
    higher: int
    rank: int


class WaitingSegment(NamedRow):
    """
    Bytes of a segment that wait, which no earlier one carried.

    Attributes:
        after: The next one of the run; 0: none. Of a free row, the next free one.
        later: The next one by arrival; 0: none.
        earlier: The previous one by arrival; 0: none.
        seq: The first sequence number.
        end: The sequence number after them.
        captured: Number of captured bytes; 0 of a free row.
        packet: The packet that carried them.
        time_ns: Its capture time.
        start: The place of the bytes, see `CARRY_OVER_BASE`.
    """

    after: int
    later: int
    earlier: int
    seq: int
    end: int
    captured: int
    packet: int
    time_ns: int
    start: int


class DeadlineRow(NamedRow):
    """
    A time at which something that waits in a connection may be given up.

    Attributes:
        time_ns: The time.
        connection: The number of the connection.
    """

    time_ns: int
    connection: int


class Ring(NamedRow):
    """
    The use of a table as a ring.

    Attributes:
        first: Its first row; the others follow.
        count: Number of rows.
    """

    first: int
    count: int


@device_function
def clear_waiting_side(side: WaitingSide) -> None:
    """Initialise a side without waiting segments."""
    side.first = side.root = side.oldest = side.newest = 0
    side.bytes = side.segments = side.runs = 0
    side.barrier = NEVER
