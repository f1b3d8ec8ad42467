"""
Columns of the table of TCP connections, shared by compiled code and objects.

A connection exists only as its row, and the segments that wait behind its holes as entries of a
pool (`waiting_columns`). It is *live*, materialised as a Python object, while it has state that
these can't hold.
"""

from __future__ import annotations

A_HIGH, A_LOW, B_HIGH, B_LOW, PORTS, FIRST_PACKET, FIRST_NS, LAST_NS, STATE, WAITS = range(10)
"""
Columns of a connection. Addresses are signed here; `PORTS` is `a`'s * 2^16 + `b`'s; `WAITS` is the
row of the data waiting behind its holes, 0 without any.
"""

SIDES, SIDE = 10, 10
"""First column of side 0, and number of columns of a side."""

COLUMNS = SIDES + 2 * SIDE

NEXT, FIRST, ACKED, ACKED_NS, ACKED_PACKET, PACKETS, BYTES, DATA_NS, RESENT, SIDE_FLAGS = range(10)
"""Columns of a side: the attributes of `Stream` and `Side` that every stream needs."""

LIVE, ORIENTED, SYN_SEEN = 1, 2, 4
"""
Flags in `STATE`: the connection is materialised; a handshake showed its opener; its SYN was
seen.
"""

ENDED_AT, NETWORK_AT = 3, 8
"""
Bit positions in `STATE`: of how the connection ended, an index into `END_REASONS`, and of
the network.
"""

ENDED = 3 << ENDED_AT

ANCHORED, HAS_ACKED, HAS_ISN, FINISHED = 1, 2, 4, 8
"""
Flags in `SIDE_FLAGS`: `next`, `acked` and `isn` are not None; the FIN has been passed.

The other attributes follow: a stream with `isn` begins right after it, and a FIN before `next` was
passed.
"""

COUNTERS_AT = 8
"""
Bit position in `SIDE_FLAGS` of the row of the side's loss counters, which few streams need;
0: none.
"""

RETRANSMITTED_SEGMENTS, RETRANSMITTED_BYTES, GAP_COUNT, GAP_BYTES, CUT_BYTES, LATE_BYTES, GAPS = (
    range(7)
)
"""
Columns of loss counters: the fields of `Side`, and the row of the gaps that the stream remembers;
0: none yet.
"""

COUNTS = 7

GAPS_REMEMBERED = 64
"""
How many gaps a stream remembers. A row of gaps holds their number so far, and a ring of the newest
with the start and end of each.
"""
