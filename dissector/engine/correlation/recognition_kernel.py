"""
Device functions that recognise Kafka, then frame and pair all that is there, in rounds.

Once the stream of the client is in sync at a request the other one may be searched for its
response; and where sync is lost after some frames, more may follow.

Most connections that are not Kafka have no bytes like the header of a request, which costs one look
at each byte; these stay where they are. Else they are held, and searched.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    ConnectionRow,
    Mode,
    Outcome,
    SideRow,
)
from dissector.engine.correlation.entries import byte_at
from dissector.engine.correlation.frame_checks import (
    HEADER_BYTES,
    MIN_RESPONSE_BYTES,
    is_kerberos,
    is_tls,
    next_header,
)
from dissector.engine.correlation.framer_kernel import frame_held
from dissector.engine.correlation.pairing_kernel import match_ready, set_barriers
from dissector.engine.correlation.resync_kernel import (
    RESPONSE_RUN,
    find_response_run,
    search_proof,
    search_request,
    search_response,
    sync_without_requests,
)
from dissector.engine.correlation.unframed_bytes import (
    append_fragment,
    copy_tail,
    forget_preface,
    hold,
    origin_of,
    skip,
    skip_all,
    skip_unasked,
    sync_at,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import U8

MAX_FIRST_REQUEST_OFFSET = 1 << 16
"""Bytes of either side before the first request of a connection captured from its beginning."""

_TAIL = HEADER_BYTES - 1
"""Bytes at the end of a chunk that may begin a header."""

_FIRST_BYTES = 32
"""Fewer bytes do not always show whether a stream begins with TLS or Kerberos."""

_FIRST_TLS, _LAST_TLS = 0x14, 0x17
_KERBEROS = 0x60
_PLAUSIBLE = 1000


class Phase:
    """
    A part of a round of `advance`, which ends if another round would find nothing new.

    The search for requests; framing and pairing; the search for responses. An interrupted round
    goes on with its phase: what it comes to does not depend on where it was interrupted.
    """

    REQUESTS, FRAMES, RESPONSES = range(3)


@device_function
def advance(state: CorrelatorState, number: int) -> int:
    """Frame and match all available bytes, up to `stream_break`; return an `Outcome`."""
    connection, outcome = state.connections[number], Outcome.DONE
    if connection.mode == Mode.UNRECOGNISED:
        outcome = recognise(state, number)
    if outcome != Outcome.DONE or connection.mode != Mode.KAFKA:
        return outcome
    counts, client = state.counts, connection.client
    requests, responses = connection.sides[client], connection.sides[1 - client]
    if counts.phase == Phase.REQUESTS:
        counts.has_progressed = True
    while counts.has_progressed or counts.phase != Phase.REQUESTS:
        if counts.phase == Phase.REQUESTS:
            outcome = begin_round(state, requests, client)
        elif counts.phase == Phase.FRAMES:
            outcome = frame_both(state, number, client)
            # If sync was lost after some frames, more frames may follow immediately.
            is_lost = not requests.in_sync and requests.base > counts.framed_from
            counts.has_progressed = is_lost
        elif not responses.in_sync and responses.held >= 0:
            outcome = search_proof(state, number, 1 - client)
            if outcome == Outcome.DONE and connection.open_count > 0:
                outcome = search_response(state, number, 1 - client)
            if responses.in_sync:
                counts.has_progressed = True
        if outcome != Outcome.DONE:
            return outcome
        counts.phase = (counts.phase + 1) % 3
    outcome = Outcome.DONE
    if not requests.in_sync:
        outcome = discard_scanned(state, connection, client, True)
    if not responses.in_sync:
        is_searched = connection.open_count > 0
        outcome = discard_scanned(state, connection, 1 - client, is_searched)
    return outcome


@device_function
def begin_round(state: CorrelatorState, requests: SideRow, client: int) -> int:
    """Search requests, if the stream of the client is out of sync; return an `Outcome`."""
    counts, piece = state.counts, state.piece
    if not requests.in_sync:
        counts.framed_from = NEVER
        outcome = search_request(state, requests, state.stream_break.side == client)
        if outcome != Outcome.DONE or not requests.in_sync:
            return outcome
    counts.framed_from = requests.base
    if piece.side == client and piece.base >= 0:
        counts.framed_from = piece.base
        piece.base = -1
    return Outcome.DONE


@device_function
def frame_both(state: CorrelatorState, number: int, client: int) -> int:
    """Frame the held bytes of both streams in sync, and pair what is ready; return an `Outcome`."""
    outcome = frame_held(state, number, client)
    if outcome == Outcome.DONE:
        outcome = frame_held(state, number, 1 - client)
    if outcome == Outcome.DONE:
        outcome = match_ready(state, number)
    return outcome


@device_function
def keep_foreign(
    state: CorrelatorState, connection: ConnectionRow, source: U8, start: int, base: int
) -> bool:
    """
    Keep the piece where it is if it holds nothing like Kafka; return whether it does.

    Args:
        state: Of the correlator.
        connection: Its protocol is open.
        source: Holds the bytes of the piece.
        start: Where they begin in it.
        base: The address of its begin.
    """
    piece = state.piece
    stream, length = connection.sides[piece.side], piece.length
    if stream.held >= 0 or state.counts.entries_live + 2 > len(state.entries):
        return False
    is_first = stream.base == 0 or stream.scanned <= stream.base
    is_open = is_first and stream.buffered_bytes < _FIRST_BYTES
    if is_open and (stream.buffered_bytes > 0 or not is_foreign(source, start, length)):
        return False
    is_searched = piece.side == 0 or not connection.start_captured
    end = stream.base + stream.buffered_bytes
    if is_searched and may_hold_request(state, stream, source, start, length):
        return False
    if stream.buffered_bytes + length > 2 * state.counts.min_retained_bytes:
        return False
    append_fragment(state, stream, base + start, length, piece.packet, piece.time_ns)
    stream.last_packet = piece.packet
    stream.last_time_ns = piece.time_ns
    if is_searched:
        stream.scanned = max(stream.scanned, end + length - _TAIL)
    return True


@device_function
def is_past_first(connection: ConnectionRow) -> bool:
    """Return whether more bytes came than may precede the first request."""
    asks, answers = connection.sides[0], connection.sides[1]
    if asks.scanned > MAX_FIRST_REQUEST_OFFSET:
        return True
    answered = answers.base + answers.buffered_bytes
    return answered > MAX_FIRST_REQUEST_OFFSET and is_unasked(connection)


@device_function
def is_unasked(connection: ConnectionRow) -> bool:
    """Return whether the client sent bytes, and all of them are searched and hold no request."""
    asks = connection.sides[0]
    end = asks.base + asks.buffered_bytes
    is_complete = connection.start_captured and asks.missing == 0 and asks.barrier == NEVER
    return bool(is_complete and end >= HEADER_BYTES and asks.scanned >= end - _TAIL)


@device_function
def is_foreign(source: U8, start: int, length: int) -> bool:
    """Return whether a stream with these first bytes begins neither with Kafka nor with TLS."""
    if length < HEADER_BYTES or _FIRST_TLS <= source[start] <= _LAST_TLS:
        return False
    if source[start + 4] == _KERBEROS:
        return False
    key = source[start + 4] << 8 | source[start + 5]
    version = source[start + 6] << 8 | source[start + 7]
    return key >= _PLAUSIBLE or version >= _PLAUSIBLE


@device_function
def may_hold_request(
    state: CorrelatorState, stream: SideRow, source: U8, start: int, length: int
) -> bool:
    """Return whether a header of a request may begin in the bytes that are not searched yet."""
    behind = stream.base + stream.buffered_bytes - stream.scanned
    if behind > _TAIL:
        return True  # an awaited one
    if behind > 0:
        head = state.frame_head
        if not copy_tail(state, stream, behind):
            return True
        more = min(length, _TAIL)
        for k in range(more):
            head[behind + k] = source[start + k]
        if next_header(head, 0, behind + more - _TAIL) >= 0:
            return True
    return next_header(source, start, start + length - _TAIL) >= 0


@device_function
def set_kafka(state: CorrelatorState, connection: ConnectionRow, client: int) -> int:
    """Treat a connection as Kafka with this client, if there is room; return an `Outcome`."""
    for side in range(2):
        if not hold(state, connection.sides[side], 0, 0, 0, 0):
            return Outcome.TABLE_FULL
    connection.mode = Mode.KAFKA
    connection.client = client
    responses = connection.sides[1 - client]
    responses.scanned = responses.base
    if connection.start_captured and responses.base == 0 and not responses.in_sync:
        sync_at(state, responses, 0)
    return Outcome.DONE


@device_function
def set_foreign(state: CorrelatorState, connection: ConnectionRow, mode: int) -> None:
    """Treat a connection as another protocol, and skip its bytes."""
    connection.mode = mode
    for side in range(2):
        skip_all(state, connection.sides[side])
        forget_preface(state, connection.sides[side])
    set_barriers(state, connection, NEVER, NEVER)


@device_function
def begins_tls(state: CorrelatorState, stream: SideRow) -> bool:
    """Return whether a stream begins with a TLS record."""
    if stream.held < 0 or stream.base > 0 or not stream.at_packet_start:
        return False
    return stream.buffered_bytes >= 5 and is_tls(state.carry_over, origin_of(state, stream))


@device_function
def recognise(state: CorrelatorState, number: int) -> int:
    """Determine the protocol, and the side of the client; return an `Outcome`."""
    connection = state.connections[number]
    for side in range(2):
        stream = connection.sides[side]
        if begins_tls(state, stream):
            set_foreign(state, connection, Mode.TLS)
            return Outcome.DONE
    first = connection.sides[0]
    if connection.start_captured and first.base == 0 and first.held >= 0:
        at = origin_of(state, first)
        if is_kerberos(state.carry_over, at, at + first.buffered_bytes):
            sync_at(state, first, 0)
    # The side that opened the connection sends first and is the client.
    for side in range(1 if connection.start_captured else 2):
        stream = connection.sides[side]
        if not stream.in_sync:
            outcome = search_request(state, stream, state.stream_break.side == side)
            if outcome != Outcome.DONE:
                return outcome
        if stream.in_sync:
            return set_kafka(state, connection, side)
    if connection.start_captured and is_past_first(connection):
        set_foreign(state, connection, Mode.OTHER)
        return Outcome.DONE
    for side in range(2):
        is_searched = side == 0 or not connection.start_captured
        outcome = discard_scanned(state, connection, side, is_searched)
        if outcome != Outcome.DONE or connection.mode == Mode.KAFKA:
            return outcome
    return Outcome.DONE


@device_function
def discard_scanned(
    state: CorrelatorState, connection: ConnectionRow, side: int, is_searched: bool
) -> int:
    """
    Skip bytes that were searched in vain, beyond those retained for a second search.

    Args:
        state: Of the correlator.
        connection: Of the stream.
        side: Of the stream, which is out of sync.
        is_searched: Whether it is searched for frames; else its bytes are counted.

    Returns:
        An `Outcome`.
    """
    stream, retained = connection.sides[side], state.counts.min_retained_bytes
    discardable = stream.scanned - stream.base if is_searched else stream.buffered_bytes
    if not is_searched and connection.client < 0 and is_unasked(connection):
        return Outcome.DONE if skip_unasked(state, stream) else Outcome.TABLE_FULL
    if discardable <= 2 * retained:
        return Outcome.DONE
    may_lack_requests = not connection.start_captured
    if connection.client >= 0:
        may_lack_requests = side != connection.client
    elif not hold(state, connection.sides[1 - side], 0, 0, 0, 0):
        return Outcome.TABLE_FULL
    if may_lack_requests and sync_without_requests(state, stream, RESPONSE_RUN):
        return set_kafka(state, connection, 1 - side) if connection.client < 0 else Outcome.DONE
    skip(state, stream, discardable - retained)
    return Outcome.DONE


@device_function
def recognise_by_responses(state: CorrelatorState, number: int) -> int:
    """
    Recognise a broker by its responses alone, if the client's side was not captured.

    Returns:
        An `Outcome`.
    """
    connection = state.connections[number]
    doubtful, found = -1, 0
    for side in range(2):
        stream = connection.sides[side]
        is_searched = stream.held >= 0 or may_hold_response(state, stream)
        if is_searched and not hold(state, stream, 0, 0, 0, 0):
            return Outcome.TABLE_FULL
    for side in range(2):
        stream = connection.sides[side]
        if stream.in_sync or sync_without_requests(state, stream, RESPONSE_RUN):
            return set_kafka(state, connection, 1 - side)
    end = 0
    for side in range(2):
        stream = connection.sides[side]
        end += stream.base + stream.buffered_bytes
        if find_response_run(state, stream, 1) >= 0:
            doubtful = side
            found += 1
    if found == 1:
        for side in range(2):
            if not hold(state, connection.sides[side], 0, 0, 0, 0):
                return Outcome.TABLE_FULL
        connection.mode = Mode.DOUBTFUL
        connection.doubtful_side = doubtful
    elif end > 0:
        set_foreign(state, connection, Mode.OTHER)
    return Outcome.DONE


@device_function
def may_hold_response(state: CorrelatorState, stream: SideRow) -> bool:
    """Return whether a response may begin with a fragment of a stream."""
    left, number = stream.buffered_bytes, stream.first_fragment
    is_start = bool(stream.at_packet_start)
    while left >= 8:
        entry = state.entries[number]
        if is_start and entry.length >= 8:
            size = 0
            for k in range(4):
                size = size << 8 | byte_at(state, entry.start + k)
            if MIN_RESPONSE_BYTES <= size <= left - 4 and byte_at(state, entry.start + 4) < 128:
                return True
        elif is_start:
            return True
        left -= entry.length
        number = entry.next
        is_start = True
    return False
