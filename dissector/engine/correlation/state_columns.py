"""
What is known of all conversations, in tables: what the columns of `tables` mean.

A *talk* is a row of a table: one connection, as long as it goes by the rules. What a talk has
several of are *nodes*, in chains, the oldest first: requests that wait, pieces of frames that are
not all there, ids of requests that were due no response.

An *address* says where bytes are: an offset in the window, or `FAR` and an offset in what is held.
"""

from __future__ import annotations

FAR = 1 << 40
"""Addresses from here on lie in what is held."""

# How a conversation is led: nothing was said yet, by the rules, as an object, or not at all.
UNBEGUN, FRESH, KAFKA, OBJECT, TLS, OTHER = range(6)

# The columns of a talk. MODE is one of the above; CLIENT the side that asks, or -1; MARKS bits;
# ASKED the highest id that was asked; NOW the time of the newest chunk; FIRST and LAST the
# requests that wait, COUNT and BYTES how many and how much; WAIVED and WAIVED_COUNT the newest id
# of a request that was due no response (its successor is the oldest), and how many.
MODE, CLIENT, MARKS, ASKED, NOW, FIRST, LAST, COUNT, BYTES, WAIVED, WAIVED_COUNT = range(11)
SIDES = 11
SIDE_WIDTH = 13
WIDTH = SIDES + 2 * SIDE_WIDTH

WHOLE, TOLD, TOKENS_SEEN = 1, 2, 4
"""Marks: its beginning was captured; some exchange of it was told; raw SASL tokens were sent."""

# The columns of each side. BASE is the offset in the stream of the unfinished frame, THERE how many
# bytes of it are there, HEAD and TAIL its pieces, PIECES how many; REST its size once that is
# there, of a cut frame what is left of it, out of step how far was searched. The others are as in
# `frames.Stream`.
(
    BASE,
    FLAGS,
    THERE,
    REST,
    HEAD,
    TAIL,
    PIECES,
    LAST_PACKET,
    ENTERED,
    SKIPPED,
    MISSING,
    TRIED,
    WEIGHED,
) = range(SIDE_WIDTH)

STEP, STARTS, CUT = 1, 2, 4
"""
Flags: in step; the unfinished frame begins with a packet; a frame that was told is passed over.
"""

# The columns of a node, which is a request that waits, a piece of a frame that is not all there, or
# the id of a request that was due no response. A request has all of them: from START on those of
# `Frames`, then its header.
NEXT, START, LENGTH, SIZE, PACKET, TIME, OFFSET, KEY, VERSION, ID = range(10)
NODE_WIDTH = 10
PIECE_PACKET, PIECE_TIME = KEY, VERSION

# In ROW_UNASKED the bits above the lowest are those of `Exchanges.broken_off`.
# The columns of an exchange, and of each of its frames as in `Frames`.
(
    ROW_CONNECTION,
    ROW_STATUS,
    ROW_CLIENT,
    ROW_TOKEN,
    ROW_UNASKED,
    ROW_KEY,
    ROW_VERSION,
    ROW_ID,
    ROW_REQUEST,
) = range(9)
FRAME_WIDTH = 6
ROW_RESPONSE = ROW_REQUEST + FRAME_WIDTH
ROW_WIDTH = ROW_RESPONSE + FRAME_WIDTH

# The loop's own numbers: the chunk it is at, and how much of that was taken; rows; bytes held, and
# copies to be made; talks that told something; the API whose versions are wanted; the free node
# that is next, how many nodes were ever used, and how many are; bytes of the window; limits.
(
    AT,
    TAKEN,
    ROWS,
    HELD,
    COPIES,
    TELLERS,
    WANTED,
    FREE,
    USED,
    LIVE,
    WINDOW,
    MAX_FRAME,
    MOST_OPEN,
    MOST_OPEN_BYTES,
    NUMBERS,
) = range(15)

COPY_WIDTH = 3
