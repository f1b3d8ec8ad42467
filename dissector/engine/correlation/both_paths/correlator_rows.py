"""
The state of the correlator: rows of its tables, and the groups of arrays that its kernels take.

The table of connections has a row for each connection. Lists are linked *entries* of one pool,
oldest first: requests in flight, ready frames, and fragments of incomplete frames. A *ready* frame
is complete and waits for its turn: behind a barrier, or as a response that came before its request.

An *address* is an offset in the window, or `CARRY_OVER_BASE` plus an offset in the carry-over
buffer. An index of -1 stands for no entry.
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I8, I64, U8, I32Table, I64Table
from dissector.kernel.named_rows import NamedRow, Rows, Two

CARRY_OVER_BASE = 1 << 40
"""Addresses from here on lie in the carry-over buffer."""

NOT_STARTED, UNRECOGNISED, KAFKA, ON_SLOW_PATH, TLS, OTHER = range(6)
"""
The mode of a connection: no bytes so far; protocol not recognised yet; Kafka on the fast path; led
by an object on the slow path; TLS or another protocol, which is not framed at all.
"""


class SideRow(NamedRow):
    """
    One direction of a connection; what is not explained here is as in `Framer`.

    Attributes:
        base: Offset in the stream of the unfinished frame.
        buffered_bytes: How many bytes of it have come.
        in_sync: Whether a frame begins at `base`.
        at_packet_start: Whether the unfinished frame begins with a packet.
        skips_damaged: Whether the rest of a damaged frame is skipped.
        frame_size: Size of the unfinished frame once it is known, else 0.
        bytes_left: Of a damaged frame, the bytes still to be skipped.
        scanned: Out of sync, the offset in the stream of the search for frames.
        first_fragment: The fragments of the unfinished frame: the first one.
        last_fragment: The last one.
        fragment_count: Their number.
        last_packet: The packet that brought the newest bytes; -1 without one.
        entered: Offset in the stream of the first plausible frame; NONE before that.
        skipped: Bytes that were skipped because they hold no plausible frame.
        missing: Bytes that were not captured.
        tried_bytes: Bytes that were tried as frames in search of one.
        checked_bytes: Available bytes of an awaited request at its last check.
        first_ready: The ready frames: the first one.
        last_ready: The last one.
        damaged: The damaged frame that is not emitted yet.
        barrier: The newest one, as in `Chunks`.
    """

    base: int
    buffered_bytes: int
    in_sync: bool
    at_packet_start: bool
    skips_damaged: bool
    frame_size: int
    bytes_left: int
    scanned: int
    first_fragment: int
    last_fragment: int
    fragment_count: int
    last_packet: int
    entered: int
    skipped: int
    missing: int
    tried_bytes: int
    checked_bytes: int
    first_ready: int
    last_ready: int
    damaged: int
    barrier: int


class ConnectionRow(NamedRow):
    """
    A connection.

    Attributes:
        mode: See above.
        client: The side that sends requests; -1 while that is open.
        start_captured: Whether the beginning of the connection was captured.
        has_emitted: Whether an exchange of it was emitted.
        tokens_seen: Whether raw SASL tokens were sent.
        highest_id: The highest correlation id of a request so far.
        newest_time_ns: Time of the newest chunk.
        oldest_request: The requests in flight: the first one.
        newest_request: The last one.
        open_count: Their number.
        open_bytes: Their size.
        suppressed_ring: Row with the newest ids of requests that expect no response (acks = 0),
            used as a ring; -1 without one.
        suppressed_count: Number of these requests.
        ready_count: Number of ready frames of both sides.
        lost_before: Responses to requests of earlier packets may be missing, as this one revealed a
            gap.
        sides: Both directions.
    """

    mode: int
    client: int
    start_captured: bool
    has_emitted: bool
    tokens_seen: bool
    highest_id: int
    newest_time_ns: int
    oldest_request: int
    newest_request: int
    open_count: int
    open_bytes: int
    suppressed_ring: int
    suppressed_count: int
    ready_count: int
    lost_before: int
    sides: Two[SideRow]


class Entry(NamedRow):
    """
    A frame that waits, for its response, its turn or its rest; or a fragment of an unfinished one.

    Attributes:
        next: The next entry of its list.
        is_frame: Whether it is a frame; else a fragment, or unused.
        start: Address of its bytes, in a frame behind the size.
        length: Number of its bytes that were captured.
        size: Declared size of a frame.
        packet: The packet that completed the frame (NEVER before that), or brought the fragment.
        time_ns: When that packet was captured.
        offset: Of a frame, the offset in its stream.
        api_key: Of a request.
        api_version: Of a request.
        correlation_id: Of a frame.
        due: Whether a response to a request is due.
    """

    next: int
    is_frame: bool
    start: int
    length: int
    size: int
    packet: int
    time_ns: int
    offset: int
    api_key: int
    api_version: int
    correlation_id: int
    due: int


class Copy(NamedRow):
    """
    A copy to the carry-over buffer that is to be made.

    Attributes:
        source: Address of the bytes.
        target: Their new offset in the carry-over buffer.
        length: Their number.
    """

    source: int
    target: int
    length: int


class Counts(NamedRow):
    """
    Counters and limits of the kernel.

    Attributes:
        next_chunk: The chunk it is at.
        framed_bytes: How many bytes of that chunk are framed already.
        exchange_count: Exchanges emitted in this window.
        carried_bytes: Bytes in use of the carry-over buffer.
        copy_count: Copies into it that are to be made.
        emitter_count: Connections that emitted their first exchange.
        missing_api: The API with versions to load.
        free_entry: The first unused entry; -1: all that were ever used are in use.
        entries_used: How many entries were ever used.
        entries_live: How many are in use.
        barrier_count: Number of sides with a barrier.
        free_ring: The first unused row of suppressed ids.
        rings_used: How many rows were ever used.
        window_bytes: Size of the window.
        max_frame_bytes: The largest frame that is not skipped.
        max_open: Most requests in flight on a connection.
        max_open_bytes: Most bytes of these.
    """

    next_chunk: int
    framed_bytes: int
    exchange_count: int
    carried_bytes: int
    copy_count: int
    emitter_count: int
    missing_api: int
    free_entry: int
    entries_used: int
    entries_live: int
    barrier_count: int
    free_ring: int
    rings_used: int
    window_bytes: int
    max_frame_bytes: int
    max_open: int
    max_open_bytes: int


class ApiLimits(NamedTuple):
    """
    What the kernel knows of APIs; see `new_api_limits`.

    Attributes:
        newest: By API key, the newest plausible version.
        acks_form: By version of Produce, the fields before the acks.
    """

    newest: I64
    acks_form: I64


class FrameColumns(NamedTuple):
    """Frames of exchanges, as in `Frames`."""

    start: I64
    captured_bytes: I64
    size: I64
    packet: I64
    time_ns: I64
    offset: I64


class ExchangeColumns(NamedTuple):
    """The exchanges of a window, as in `Exchanges`."""

    connection: I64
    status: I8
    client: I8
    token: U8
    answers_acks_0: U8
    broken_off: I8
    api_key: I64
    api_version: I64
    correlation_id: I64
    request: FrameColumns
    response: FrameColumns


class ChunkColumns(NamedTuple):
    """The columns of `Chunks`."""

    connection: I64
    side: I8
    kind: I8
    origin: I8
    start: I64
    length: I64
    packet: I64
    time_ns: I64
    barrier: I64Table


class CorrelatorState(NamedTuple):
    """
    The state of the correlator, see `StateTables`.

    Attributes:
        data: The bytes of the window.
        carry_over: Bytes of earlier windows.
        counts: Counters and limits.
        connections: By number.
        entries: Requests, ready frames and fragments.
        exchanges: The exchanges of the window.
        copies: Copies to the carry-over buffer that are to be made.
        emitters: Connections that have emitted their first exchange.
        api_limits: What is known of APIs.
        frame_head: Room for the first bytes of a fragmented frame.
        suppressed: Rows of suppressed correlation ids.
        next_ring: Of an unused row of these, the next one.
    """

    data: U8
    carry_over: U8
    counts: Counts
    connections: Rows[ConnectionRow]
    entries: Rows[Entry]
    exchanges: ExchangeColumns
    copies: Rows[Copy]
    emitters: I64
    api_limits: ApiLimits
    frame_head: U8
    suppressed: I32Table
    next_ring: I64
