"""
Device functions that decide whether a connection continues with a frame, and of which kind.

A login by raw SASL tokens follows SaslHandshake v0; these have no header. Clients of Kafka 0.9,
which has no handshake, begin a connection with the tokens of Kerberos. A frame that is no request
is a token. A frame that looks like a request may be one too: its bytes count as a token's, and so
as secret, until the response to such a frame fits its request.

Source: KIP-43, KIP-152.

A gap inside a frame does not lose sync: the frame's size determines the next one, so only that
frame is damaged. A frame over the limit is skipped in the same way.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.integers import signed16, signed32
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Entry,
    Outcome,
    SideRow,
    Verdict,
)
from dissector.engine.correlation.entries import find_request, has_room, new_entry
from dissector.engine.correlation.frame_checks import (
    HEADER_BYTES,
    MIN_REQUEST_BYTES,
    MIN_RESPONSE_BYTES,
    check_header,
    check_in_sync,
    has_client_id,
    is_kerberos,
    is_response_due,
)
from dissector.engine.correlation.known_apis import check_request_body
from dissector.engine.correlation.unframed_bytes import (
    drop,
    hold,
    lose_sync,
    origin_of,
    packet_before,
    read_head,
    skip_all,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.protocol.headers import SASL_HANDSHAKE

MAX_TOKEN_BYTES = 1 << 20


@device_function
def begin_login(connection: ConnectionRow, expects_tokens: bool) -> None:
    """Begin a login by raw tokens."""
    connection.expects_tokens = expects_tokens
    connection.in_login = True
    connection.expects_first = False


@device_function
def check_frame(state: CorrelatorState, number: int, side: int) -> int:
    """Return whether the held bytes of a stream in sync, at least four, can begin with a frame."""
    connection = state.connections[number]
    stream = connection.sides[side]
    data, at = state.carry_over, origin_of(state, stream)
    size, end = signed32(data, at), at + stream.buffered_bytes
    if side == connection.client:
        if connection.expects_tokens and 0 <= size <= MAX_TOKEN_BYTES:
            return Verdict.YES
        if connection.start_captured and stream.base == 0 and is_kerberos(data, at, end):
            begin_login(connection, True)
            return Verdict.YES
        if size < MIN_REQUEST_BYTES:
            return Verdict.NO
        is_whole = stream.buffered_bytes >= HEADER_BYTES
        return check_in_sync(state, data, at, end) if is_whole else Verdict.YES
    if size > state.counts.max_frame_bytes:
        # There is only a size, and it is impossible.
        if stream.buffered_bytes < 8 or find_request(state, number, signed32(data, at + 4)) < 0:
            return Verdict.NO
        return Verdict.YES
    least = 0 if connection.tokens_seen else MIN_RESPONSE_BYTES
    return Verdict.YES if size >= least else Verdict.NO


@device_function
def check_token(state: CorrelatorState, number: int, length: int) -> int:
    """
    Return whether the next frame of the client, the first held bytes, is a token.

    Args:
        state: Of the correlator.
        number: Of the connection.
        length: Number of its captured bytes.

    Returns:
        YES, NO, or what is to be loaded to tell.
    """
    connection = state.connections[number]
    if not connection.expects_tokens:
        return Verdict.NO
    stream = connection.sides[connection.client]
    data, at = state.carry_over, origin_of(state, stream)
    if length < HEADER_BYTES - 4:
        return Verdict.YES
    # A damaged frame is judged as one of its captured size.
    size = signed32(data, at)
    outcome = Verdict.NO
    if length == size:
        outcome = check_header(state, data, at, at + 4 + length, length)
    else:
        outcome = check_cut_header(state, at, length)
    if outcome == Verdict.YES and not has_client_id(data, at):
        outcome = check_request_body(state, data, at + 4, length)
    if outcome == Verdict.YES:
        return Verdict.NO
    return Verdict.YES if outcome == Verdict.NO else outcome


@device_function
def check_cut_header(state: CorrelatorState, at: int, length: int) -> int:
    """Check the header of a damaged frame as if its size were that of its captured bytes."""
    head, data = state.frame_head, state.carry_over
    for k in range(min(length + 4, len(head))):
        head[k] = data[at + k]
    for k in range(4):
        head[k] = length >> 8 * (3 - k) & 255
    return check_header(state, head, 0, min(length + 4, len(head)), length)


@device_function
def new_frame(state: CorrelatorState, number: int, side: int, address: int, length: int) -> int:
    """
    Return the entry of a frame with its fields but for the packet.

    Args:
        state: Of the correlator.
        number: Of the connection.
        side: Of the stream.
        address: Of its bytes behind the size.
        length: Number of its captured bytes.
    """
    made = new_entry(state, True)
    entry = state.entries[made]
    entry.start = address
    entry.length = length
    entry.is_token = False
    entry.in_login = False
    entry.is_broken_off = False
    is_request = side == state.connections[number].client
    if address >= CARRY_OVER_BASE:
        read_header(state, entry, state.carry_over, address - CARRY_OVER_BASE, is_request)
    else:
        read_header(state, entry, state.data, address, is_request)
    return made


@device_function
def read_header(state: CorrelatorState, entry: Entry, data: U8, at: int, is_request: bool) -> None:
    """Set the fields of a frame from its header, as far as that was captured."""
    if not is_request:
        entry.correlation_id = signed32(data, at) if entry.length >= 4 else 0
        return
    entry.api_key = signed16(data, at) if entry.length >= 4 else -1
    entry.api_version = signed16(data, at + 2) if entry.length >= 4 else -1
    entry.correlation_id = signed32(data, at + 4) if entry.length >= 8 else 0
    entry.is_due = is_response_due(state, data, at - 4, at + entry.length)


@device_function
def mark_login(connection: ConnectionRow, entry: Entry, is_token: bool) -> None:
    """Mark the next frame of the client, and learn from it whether tokens follow."""
    entry.is_token = is_token
    if is_token:
        return
    entry.in_login = connection.in_login
    connection.expects_tokens = is_handshake(entry)
    if connection.expects_tokens:
        begin_login(connection, True)


@device_function
def is_handshake(entry: Entry) -> bool:
    """Return whether a request announces raw tokens."""
    return entry.api_key == SASL_HANDSHAKE and entry.api_version == 0


@device_function
def needs_examination(connection: ConnectionRow) -> bool:
    """Return whether each frame of the client may be a token, or each response a token's."""
    in_login = connection.expects_tokens or connection.in_login
    return bool(in_login or connection.token_count > 0)


@device_function
def is_unknown(outcome: int) -> bool:
    """Return whether a check needs something loaded first."""
    return outcome in (Outcome.NEEDS_API, Outcome.NEEDS_PROGRAM)


MAX_OVERSIZED_HEAD_BYTES = 1 << 16
"""Bytes retained of a frame skipped for its size, to show its header."""


@device_function
def queue_frame(state: CorrelatorState, connection: ConnectionRow, side: int, entry: int) -> None:
    """Append a frame to the ready ones of its side."""
    stream, frame = connection.sides[side], state.entries[entry]
    frame.next = -1
    is_awaited = frame.length >= 8 and frame.correlation_id == connection.awaited_id
    if side == connection.client and is_awaited:
        connection.awaited_id = NEVER
    if stream.last_ready < 0:
        stream.first_ready = entry
    else:
        state.entries[stream.last_ready].next = entry
    stream.last_ready = entry
    connection.ready_count += 1


@device_function
def begin_damaged(state: CorrelatorState, number: int, side: int) -> int:
    """Turn the unfinished frame of a stream into a damaged one; return an `Outcome`."""
    connection = state.connections[number]
    stream = connection.sides[side]
    if stream.skips_damaged or not stream.in_sync or stream.buffered_bytes < 4:
        return Outcome.DONE
    if not has_room(state, connection, 2) or not hold(state, stream, 0, 0, 0, 0):
        return Outcome.TABLE_FULL
    outcome = check_frame(state, number, side)
    if is_unknown(outcome):
        return outcome
    origin, limit = origin_of(state, stream), state.counts.max_frame_bytes
    size, buffered = signed32(state.carry_over, origin), stream.buffered_bytes
    if outcome == Verdict.NO:
        return Outcome.DONE
    if size > limit and buffered < 8:
        lose_sync(stream)
        connection.expects_first &= side == connection.client
        return Outcome.DONE
    available = min(4 + size, buffered)
    length = available - 4
    if size > limit:
        length = min(length, MAX_OVERSIZED_HEAD_BYTES, limit)
    is_token = Verdict.NO
    if side == connection.client:
        is_token = check_token(state, number, length)
        if is_unknown(is_token):
            return is_token
    damaged = new_frame(state, number, side, state.entries[stream.held].start + 4, length)
    entry = state.entries[damaged]
    entry.size = size
    entry.offset = stream.base
    entry.begun_ns = packet_before(state, stream, 1).time_ns
    if side == connection.client:
        mark_login(connection, entry, is_token == Verdict.YES)
    last = packet_before(state, stream, available)
    packet, time_ns = last.packet, last.time_ns
    drop(state, stream, available)
    entry.packet = NEVER
    stream.damaged = damaged
    stream.skips_damaged = True
    stream.bytes_left = 4 + size - available
    end_damaged(state, connection, side, packet, time_ns)
    return Outcome.DONE


@device_function
def end_damaged(
    state: CorrelatorState, connection: ConnectionRow, side: int, packet: int, time_ns: int
) -> None:
    """If all of a damaged frame is skipped it is ready."""
    stream = connection.sides[side]
    if stream.bytes_left > 0:
        return
    stream.skips_damaged = False
    if stream.damaged >= 0:
        entry = state.entries[stream.damaged]
        entry.packet = packet
        entry.time_ns = time_ns
        queue_frame(state, connection, side, stream.damaged)
        stream.damaged = -1


@device_function
def skip_damaged(
    state: CorrelatorState, connection: ConnectionRow, side: int, length: int, packet: int
) -> int:
    """Skip the rest of a damaged frame, which is then ready; return the number of its bytes."""
    stream = connection.sides[side]
    if not stream.skips_damaged:
        return 0
    skipped = min(stream.bytes_left, length)
    stream.bytes_left -= skipped
    stream.base += skipped
    stream.at_packet_start = skipped == length
    end_damaged(state, connection, side, packet, state.piece.time_ns)
    return skipped


@device_function
def take_damaged(state: CorrelatorState, stream: SideRow) -> int:
    """Return a damaged frame whose rest is not awaited, dated by the newest packet; -1: none."""
    damaged = stream.damaged
    if damaged >= 0:
        entry = state.entries[damaged]
        entry.packet = stream.last_packet
        entry.time_ns = stream.last_time_ns
        stream.damaged = -1
    return damaged


@device_function
def finish(state: CorrelatorState, number: int, side: int) -> int:
    """Queue the unfinished frame of a stream that has ended; return an `Outcome`."""
    connection = state.connections[number]
    stream = connection.sides[side]
    is_broken_off = not stream.skips_damaged
    outcome = begin_damaged(state, number, side)
    if outcome == Outcome.DONE:
        damaged = take_damaged(state, stream)
        if damaged >= 0:
            state.entries[damaged].is_broken_off = is_broken_off
            queue_frame(state, connection, side, damaged)
    return outcome


@device_function
def add_gap(state: CorrelatorState, number: int) -> int:
    """Add missing bytes to their stream; return an `Outcome`, all is as before if not DONE."""
    piece, connection = state.piece, state.connections[number]
    stream, length = connection.sides[piece.side], piece.length
    if stream.base == 0 and not hold(state, stream, 0, 0, 0, 0):
        return Outcome.TABLE_FULL  # the first bytes may be those of a proxy
    outcome = begin_damaged(state, number, piece.side)
    if outcome != Outcome.DONE:
        return outcome
    stream.missing += length
    beyond = length - skip_damaged(state, connection, piece.side, length, piece.packet)
    if beyond > 0:
        stream.in_sync = False
        skip_all(state, stream)
        stream.base += beyond
        stream.scanned = stream.base
    stream.at_packet_start = True
    if piece.side != connection.client:
        connection.lost_before = piece.packet
    return outcome


@device_function
def unfinished_id(state: CorrelatorState, stream: SideRow) -> int:
    """Return the correlation id of the unfinished or damaged request; NEVER without one."""
    if stream.damaged >= 0:
        entry = state.entries[stream.damaged]
        return entry.correlation_id if entry.length >= 8 else NEVER
    if not stream.in_sync or stream.skips_damaged or stream.buffered_bytes < 12:
        return NEVER
    if stream.held >= 0:
        return signed32(state.carry_over, origin_of(state, stream) + 8)
    read_head(state, stream, 12)
    return signed32(state.frame_head, 8)
