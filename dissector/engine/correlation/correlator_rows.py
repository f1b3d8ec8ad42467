"""
The state of the correlator: rows of its tables, and the codes in them.

The table of connections has a row for each connection but those at rest. Lists are linked
*entries* of one pool, oldest first: requests in flight, ready frames, delayed pieces, and fragments
of unfinished frames.
A *ready* frame is complete and waits for its turn: behind a barrier, or as a response that came
before its request. A *piece* is the bytes of a packet, or a gap.

The bytes of a stream that are not framed yet have one of two forms. As *fragments* they stay where
they are: usually, inside a frame. They are *held* in one place of the carry-over buffer, with the
ends of their packets, while frames are searched in them, or each has to be examined.

An *address* is an offset in the window, or `CARRY_OVER_BASE` plus an offset in the carry-over
buffer. An index of -1 stands for no entry.
"""

from __future__ import annotations

from dissector.kernel.named_rows import NamedRow, Two

CARRY_OVER_BASE = 1 << 40
"""Addresses from here on lie in the carry-over buffer."""


class Mode:
    """
    The mode of a connection.

    Protocol not recognised yet; Kafka; ended with so few responses that only a
    known broker makes it Kafka; TLS or another protocol, which is not framed at all.
    """

    UNRECOGNISED, KAFKA, DOUBTFUL, TLS, OTHER = range(5)


class Outcome:
    """
    What a kernel came to.

    All is done; a table is too short; the versions of API `missing_api` have to be loaded, or the
    programs of its version `missing_version`; the doubtful connections hold too many bytes. In all
    cases but the first it continues where it was when it is called again.
    """

    DONE, TABLE_FULL, NEEDS_API, NEEDS_PROGRAM, DOUBTS_FULL = range(5)


class Verdict:
    """Whether bytes are a frame: no, yes, or not decided without more bytes."""

    NO, YES, OPEN = range(5, 8)


class PacketEnd(NamedRow):
    """
    The end of a packet's bytes.

    Attributes:
        end: Offset in the stream.
        packet: Its number.
        time_ns: When it was captured.
    """

    end: int
    packet: int
    time_ns: int


class SideRow(NamedRow):
    """
    One direction of a connection.

    It is *in sync* while the beginning of the next frame is known.

    Attributes:
        base: Offset in the stream of the first byte that is not framed yet.
        buffered_bytes: How many bytes from there on have come.
        in_sync: Whether a frame begins at `base`.
        at_packet_start: Whether a packet begins at `base`.
        frame_size: Size of the unfinished frame once it is known, else 0; with fragments only.
        first_fragment: The fragments: the first one.
        last_fragment: The last one.
        fragment_count: Their number.
        held: The entry of held bytes, with `length` as the room for them.
        first_end: The ends of their packets: the first one.
        end_count: Their number.
        end_room: Room for them.
        skips_damaged: Whether the rest of a damaged frame is skipped.
        bytes_left: The bytes of it still to be skipped.
        damaged: The damaged frame that is not emitted yet.
        scanned: Out of sync, the offset in the stream up to which no frame was found.
        resumed: The candidate at which an interrupted search continues.
        last_packet: The packet that brought the newest bytes; -1 without one.
        last_time_ns: When it was captured.
        rtt_ns: As in `Chunks`, of the newest row; -1: unknown.
        resent_ns: Likewise.
        entered: Offset in the stream of the first plausible frame; NONE before that.
        skipped: Bytes that were skipped because they hold no plausible frame.
        missing: Bytes that were not captured.
        tried_bytes: Bytes that were tried as frames in search of one, counted at each try.
        checked_bytes: Available bytes of an awaited request at its last check.
        first_ready: The ready frames: the first one.
        last_ready: The last one.
        barrier: The newest one, as in `Chunks`.
        preface: Entry of the first bytes of the stream, if they hold no plausible frame.
    """

    base: int
    buffered_bytes: int
    in_sync: bool
    at_packet_start: bool
    frame_size: int
    first_fragment: int
    last_fragment: int
    fragment_count: int
    held: int
    first_end: int
    end_count: int
    end_room: int
    skips_damaged: bool
    bytes_left: int
    damaged: int
    scanned: int
    resumed: int
    last_packet: int
    last_time_ns: int
    rtt_ns: int
    resent_ns: int
    entered: int
    skipped: int
    missing: int
    tried_bytes: int
    checked_bytes: int
    first_ready: int
    last_ready: int
    barrier: int
    preface: int


class ConnectionRow(NamedRow):
    """
    A connection.

    Attributes:
        mode: Of `Mode`.
        order: How many connections started before.
        has_ended: Whether its end is processed, and nothing came after it.
        woken: How often it was packed as it was silent, and then had a row again.
        client: The side that sends requests; -1 while that is open.
        start_captured: Whether the beginning of the connection was captured.
        has_emitted: Whether an exchange of it was emitted.
        expects_first: Whether the first response has still to prove that it is one.
        tokens_seen: Whether raw SASL tokens were, or may have been, sent.
        expects_tokens: Whether the next frame of the client may be a raw SASL token.
        in_login: Whether no response has shown yet that a login by raw tokens is over.
        token_count: Raw tokens in flight.
        first_token: The first of them, linked by `next_same`.
        last_token: The last one.
        highest_id: The highest correlation id of a request so far; NEVER without one, if responses
            may belong to requests that were not captured.
        newest_time_ns: Time of the newest chunk.
        oldest_request: The requests in flight: the first one.
        newest_request: The last one.
        open_count: Their number.
        open_bytes: Their size.
        lowest_open_id: No correlation id of theirs is lower.
        highest_open_id: None is higher.
        awaited_id: The id of a first response, after no request that waits had it; else NEVER.
        suppressed_ring: Row with the newest ids of requests that expect no response (acks = 0); -1
            without one.
        suppressed_count: Number of these requests.
        ready_count: Number of ready frames of both sides.
        lost_before: Responses to requests of earlier packets may be missing, as this one revealed a
            gap.
        first_delayed: Pieces of the broker that wait for earlier requests: the first one.
        last_delayed: The last one.
        doubtful_side: The side of the broker, if that is in doubt.
        is_judged: Whether that is decided now,
        is_broker: and how.
        sides: Both directions.
    """

    mode: int
    order: int
    has_ended: bool
    woken: int
    client: int
    start_captured: bool
    has_emitted: bool
    expects_first: bool
    tokens_seen: bool
    expects_tokens: bool
    in_login: bool
    token_count: int
    first_token: int
    last_token: int
    highest_id: int
    newest_time_ns: int
    oldest_request: int
    newest_request: int
    open_count: int
    open_bytes: int
    lowest_open_id: int
    highest_open_id: int
    awaited_id: int
    suppressed_ring: int
    suppressed_count: int
    ready_count: int
    lost_before: int
    first_delayed: int
    last_delayed: int
    doubtful_side: int
    is_judged: bool
    is_broker: bool
    sides: Two[SideRow]


class Entry(NamedRow):
    """
    A frame that waits, for its response, its turn or its rest; a fragment; other kept bytes.

    Attributes:
        next: The next entry of its list.
        previous: Of a request in flight, the one before.
        next_same: The next request with the same correlation id, or the next token.
        last_same: Of the first request with a correlation id, the last one.
        next_in_bucket: Of such a first request, the next one in its bucket.
        connection: Of a request in flight.
        is_waiting: Whether its packet holds back the low watermark: a frame or a delayed piece.
        start: Address of its bytes, in a frame behind the size.
        length: Number of its bytes that were captured.
        size: Declared size of a frame; length of a gap.
        packet: The packet that completed the frame (NEVER before that), or brought the piece.
        time_ns: When that packet was captured.
        begun_ns: Of a frame, when the packet with its first byte was captured.
        offset: Of a frame, the offset in its stream.
        api_key: Of a request.
        api_version: Of a request.
        correlation_id: Of a frame.
        is_due: Whether a response to a request is due.
        is_token: Whether a frame of the client is a raw SASL token.
        in_login: Whether it looks like a request, but may be one: no response has shown that the
            login is over.
        is_broken_off: Whether the stream ended within the frame.
    """

    next: int
    previous: int
    next_same: int
    last_same: int
    next_in_bucket: int
    connection: int
    is_waiting: bool
    start: int
    length: int
    size: int
    packet: int
    time_ns: int
    begun_ns: int
    offset: int
    api_key: int
    api_version: int
    correlation_id: int
    is_due: bool
    is_token: bool
    in_login: bool
    is_broken_off: bool


class Piece(NamedRow):
    """
    The piece that is added to a stream.

    Attributes:
        side: Of the stream.
        is_gap: Whether its bytes are missing.
        is_end: Whether there is none, as the connection ends.
        start: Address of its bytes.
        length: Their number.
        packet: Its packet.
        time_ns: When that was captured.
        framed_bytes: How many of its bytes are framed or held already.
        base: Offset in the stream of the first frame that it may complete; -1: they are framed.
        delayed: Its entry, if it was delayed.
    """

    side: int
    is_gap: bool
    is_end: bool
    start: int
    length: int
    packet: int
    time_ns: int
    framed_bytes: int
    base: int
    delayed: int


class StreamBreak(NamedRow):
    """
    A place in a stream after which no bytes follow immediately.

    Attributes:
        side: Its stream; -1: there is none.
        may_be_partial: Whether an unfinished frame is plausible here: the capture truncated the
            packet, or ended in a stream that is complete from its beginning.
        missing: Number of missing bytes.
    """

    side: int
    may_be_partial: bool
    missing: int


class Counts(NamedRow):
    """
    Counters and limits of the kernel.

    Attributes:
        next_chunk: The chunk it is at,
        step: and how far it is processed,
        phase: and the rounds of `advance`.
        framed_from: Where the stream of the client was at the begin of the round; NEVER if it was
            out of sync.
        has_progressed: Whether there is another round.
        exchange_count: Exchanges emitted in this window.
        carried_bytes: Bytes in use of the carry-over buffer.
        wanted_bytes: More of them that are needed.
        ends_used: Ends of packets in use.
        wanted_ends: More of them that are needed.
        emitter_count: Connections that emitted their first exchange.
        doubtful_count: Connections that ended in doubt.
        doubtful_bytes: Their bytes.
        preface_count: Prefaces that are kept.
        missing_api: The API to load,
        missing_version: and its version.
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
        max_doubtful_bytes: Most bytes of doubtful connections.
        min_retained_bytes: Bytes of a stream without a plausible frame that are kept at least.
    """

    next_chunk: int
    step: int
    phase: int
    framed_from: int
    has_progressed: bool
    exchange_count: int
    carried_bytes: int
    wanted_bytes: int
    ends_used: int
    wanted_ends: int
    emitter_count: int
    doubtful_count: int
    doubtful_bytes: int
    preface_count: int
    missing_api: int
    missing_version: int
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
    max_doubtful_bytes: int
    min_retained_bytes: int


class FirstSteps(NamedRow):
    """
    The first instructions of a version's programs; negative without one.

    Attributes:
        request: Of its request.
        response: Of its response.
    """

    request: int
    response: int
