"""
Column layout of the correlator's state tables (`StateTables`).

The table of connections has a row for each connection. Lists are linked *entries* of one pool,
oldest first: requests in flight, ready frames, and fragments of incomplete frames. A *ready* frame
is complete and waits for its turn: behind a barrier, or as a response that came before its request.

An *address* is an offset in the window, or `CARRY_OVER_BASE` plus an offset in the carry-over
buffer.
"""

from __future__ import annotations

CARRY_OVER_BASE = 1 << 40
"""Addresses from here on lie in the carry-over buffer."""

# The mode of a connection: no bytes so far; protocol not recognised yet; Kafka on the fast path;
# led by an object on the slow path; TLS or another protocol, which is not framed at all.
NOT_STARTED, UNRECOGNISED, KAFKA, ON_SLOW_PATH, TLS, OTHER = range(6)

# The columns of a connection. MODE is one of these; CLIENT is the side that sends requests, or -1;
# HIGHEST_ID the highest correlation id of a request so far; NEWEST_TIME the time of the newest
# chunk. OLDEST_REQUEST and NEWEST_REQUEST are the ends of the list of requests in flight,
# OPEN_COUNT and OPEN_BYTES their number and size. SUPPRESSED_COUNT requests expected no response
# (acks = 0); their newest ids are in row SUPPRESSED_RING of a table, which is used as a ring; -1:
# none. READY_COUNT is the number of ready frames of both sides. Responses to requests of packets
# before LOST_BEFORE may be missing, as the packet revealed a gap.
(
    MODE,
    CLIENT,
    CONNECTION_FLAGS,
    HIGHEST_ID,
    NEWEST_TIME,
    OLDEST_REQUEST,
    NEWEST_REQUEST,
    OPEN_COUNT,
    OPEN_BYTES,
    SUPPRESSED_RING,
    SUPPRESSED_COUNT,
    READY_COUNT,
    LOST_BEFORE,
) = range(13)
SIDES = 13
SIDE_WIDTH = 17
CONNECTION_WIDTH = SIDES + 2 * SIDE_WIDTH

START_CAPTURED, HAS_EMITTED, TOKENS_SEEN = 1, 2, 4
"""
Bits of CONNECTION_FLAGS: the beginning of the connection was captured; an exchange of it was
emitted; raw SASL tokens were sent.
"""

# The columns of each side. BASE is the offset in the stream of the unfinished frame, BUFFERED_BYTES
# how many bytes of it have come, FIRST_FRAGMENT and LAST_FRAGMENT the ends of the list of its
# fragments, FRAGMENT_COUNT their number. PENDING depends on SIDE_FLAGS: the size of the unfinished
# frame once it is known; the bytes left of a damaged frame that is skipped; out of sync the offset
# in the stream of the search for frames. FIRST_READY and LAST_READY are the ends of the list of
# ready frames, DAMAGED is the entry of the damaged frame that is not emitted yet (-1: none).
# BARRIER is the newest one, as in `Chunks`. The others are as in `Framer`.
(
    BASE,
    SIDE_FLAGS,
    BUFFERED_BYTES,
    PENDING,
    FIRST_FRAGMENT,
    LAST_FRAGMENT,
    FRAGMENT_COUNT,
    LAST_PACKET,
    ENTERED,
    SKIPPED,
    MISSING,
    TRIED_BYTES,
    CHECKED_BYTES,
    FIRST_READY,
    LAST_READY,
    DAMAGED,
    BARRIER,
) = range(SIDE_WIDTH)

IN_SYNC, AT_PACKET_START, SKIPPING_DAMAGED = 1, 2, 4
"""
Bits of SIDE_FLAGS: in sync; the unfinished frame begins with a packet; the rest of a damaged frame
is skipped.
"""

# The columns of an entry: a request in flight, a ready or damaged frame, or a fragment of an
# incomplete frame. A request uses all of them: from START on the columns of `Frames`, then its
# header, then whether a response is due.
NEXT, START, LENGTH, SIZE, PACKET, TIME, OFFSET, API_KEY, API_VERSION, CORRELATION_ID, DUE = range(
    11
)
ENTRY_WIDTH = 11
FRAGMENT_PACKET, FRAGMENT_TIME = API_KEY, API_VERSION

# The lowest bit of ROW_FLAGS is `Exchanges.answers_acks_0`, the others are `broken_off`. The
# columns of an exchange; each of its frames has the columns of `Frames`.
(
    ROW_CONNECTION,
    ROW_STATUS,
    ROW_CLIENT,
    ROW_TOKEN,
    ROW_FLAGS,
    ROW_API_KEY,
    ROW_API_VERSION,
    ROW_CORRELATION_ID,
    ROW_REQUEST,
) = range(9)
FRAME_WIDTH = 6
ROW_RESPONSE = ROW_REQUEST + FRAME_WIDTH
ROW_WIDTH = ROW_RESPONSE + FRAME_WIDTH

# Counters and limits of the kernel. NEXT_CHUNK is the chunk it is at, FRAMED_BYTES how many bytes
# of that chunk are framed already. ROW_COUNT exchanges were emitted in this window; CARRIED_BYTES
# are in the carry-over buffer, with COPY_COUNT copies into it to be made. EMITTER_COUNT connections
# emitted their first exchange. MISSING_API is the API with versions to load. FREE_ENTRY is the head
# of the list of free entries, ENTRIES_USED how many were ever used, ENTRIES_LIVE how many are in
# use. BARRIER_COUNT sides have a barrier. FREE_RING is the first free row of suppressed ids; its
# first item is the next one; RINGS_USED how many were ever used. WINDOW_LENGTH is the size of the
# window in bytes; the rest are limits.
(
    NEXT_CHUNK,
    FRAMED_BYTES,
    ROW_COUNT,
    CARRIED_BYTES,
    COPY_COUNT,
    EMITTER_COUNT,
    MISSING_API,
    FREE_ENTRY,
    ENTRIES_USED,
    ENTRIES_LIVE,
    BARRIER_COUNT,
    FREE_RING,
    RINGS_USED,
    WINDOW_LENGTH,
    MAX_FRAME_SIZE,
    MAX_OPEN_REQUESTS,
    MAX_OPEN_REQUEST_BYTES,
    COUNTER_COUNT,
) = range(18)

COPY_WIDTH = 3
