"""
How a connection stands in a row of numbers, which compiled code and objects share.

While its segments come in order a connection is nothing but its row. It is *awake*, an object that
Python keeps, while something of it waits.
"""

from __future__ import annotations

A_HIGH, A_LOW, B_HIGH, B_LOW, PORTS, FIRST_PACKET, FIRST_NS, LAST_NS, STATE = range(9)
"""Columns of a connection. Addresses are signed here; `PORTS` is `a`'s * 2^16 + `b`'s."""

SIDES, SIDE = 9, 8
"""Column at which side 0 begins, and how many columns a side has."""

COLUMNS = SIDES + 2 * SIDE

NEXT, FIRST, ACKED, ACKED_NS, ACKED_PACKET, PACKETS, BYTES, SIDE_FLAGS = range(8)
"""Columns of a side: those of `Stream` and of `Side` that every stream needs."""

LIVE, ORIENTED, SYN_SEEN = 1, 2, 4
"""Of `STATE`: what holds of the connection."""

ENDED_AT, NETWORK_AT = 3, 8
"""Of `STATE`: the bits at which stand how it ended, an index into `ENDS`, and the network."""

ENDED = 3 << ENDED_AT

ANCHORED, HAS_ACKED, HAS_ISN, FINISHED = 1, 2, 4, 8
"""
Of `SIDE_FLAGS`: whether `next`, `acked` and `isn` are not None, and whether the FIN is passed.

The rest follows: a stream with `isn` begins right behind it, and a FIN that is passed lies before
`next`.
"""

COUNTERS_AT = 8
"""Bit of `SIDE_FLAGS` where the number of the row of rare counters begins; 0: no such row."""

CUT_BYTES, GAPS = 4, 6
"""Of the columns of counts, which begin as `Side` does with `retransmitted_segments`: the bytes cut
off, and the row of the gaps that the stream remembers; 0: none yet."""

COUNTS = 7

GAPS_REMEMBERED = 64
"""How many gaps a stream remembers: a row of them is how many there were, and a ring of the newest,
where each begins and ends."""
