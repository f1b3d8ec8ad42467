"""Device functions that frame the bytes of a stream: each frame is paired, or waits for that."""

from __future__ import annotations

from dissector.capture.integers import signed32, u32
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Mode,
    Outcome,
    SideRow,
    Verdict,
)
from dissector.engine.correlation.entries import (
    copy_address,
    has_room,
    may_have_asked,
    new_entry,
    reserve,
)
from dissector.engine.correlation.frame_checks import HEADER_BYTES, check_usual
from dissector.engine.correlation.frame_rules import (
    begin_damaged,
    check_frame,
    check_token,
    is_unknown,
    mark_login,
    needs_examination,
    new_frame,
    queue_frame,
)
from dissector.engine.correlation.pairing_kernel import (
    MAX_EARLY_RESPONSE_NS,
    add_request,
    is_early,
    may_pass,
    pair_response,
    prepare_response,
)
from dissector.engine.correlation.unframed_bytes import (
    append_fragment,
    copy_fragments,
    drop,
    drop_fragments,
    lose_sync,
    origin_of,
    packet_before,
    read_head,
    to_fragments,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes

_MAX_EARLY_IDS = 100
"""How far above all requests the id of a first response may be, if it was captured before them."""


@device_function
def is_regular(connection: ConnectionRow, side: int) -> bool:
    """Return whether the frames of a stream need no examination, and are framed where they are."""
    stream, other = connection.sides[side], connection.sides[1 - side]
    if not stream.in_sync or stream.held >= 0 or needs_examination(connection):
        return False
    if other.held >= 0:
        return False  # it may hold earlier frames
    return side == connection.client or not connection.expects_first


@device_function
def frame_piece(state: CorrelatorState, number: int, source: U8, start: int, base: int) -> int:
    """
    Frame the piece of a stream in sync, up to a frame that has to be examined.

    Args:
        state: Of the correlator.
        number: Of the connection.
        source: Holds the bytes of the piece.
        start: Where they begin in it.
        base: The address of its begin.
    """
    piece, connection = state.piece, state.connections[number]
    stream = connection.sides[piece.side]
    is_request = piece.side == connection.client
    buffered, size = stream.buffered_bytes, stream.frame_size
    start += piece.framed_bytes
    length = piece.length - piece.framed_bytes
    head_bytes, outcome = 0, Verdict.YES
    # The beginning of the next frame, as an offset in the rest of the piece.
    offset = -buffered
    if buffered > 0 and (buffered < HEADER_BYTES or length - offset >= 4 + size):
        head_bytes = gather_head(state, stream, source, start, length)
        if not reserve(state, buffered + length):
            return Outcome.TABLE_FULL
    while length - offset >= 4:
        if offset >= 0:
            outcome = check_usual(state, source, start + offset, length - offset, is_request)
            size = u32(source, start + offset)
        elif head_bytes > 0:
            outcome = check_usual(state, state.frame_head, 0, length - offset, is_request)
            size = u32(state.frame_head, 0)
        if outcome != Verdict.YES or length - offset < 4 + size:
            break
        address, begun_ns = base + start + offset, piece.time_ns
        if offset < 0:
            begun_ns = state.entries[stream.first_fragment].time_ns
            address = join(state, stream, base + start, 4 + size - buffered)
        frame = new_frame(state, number, piece.side, address + 4, size)
        entry = state.entries[frame]
        entry.size = size
        entry.packet = piece.packet
        entry.time_ns = piece.time_ns
        entry.begun_ns = begun_ns
        entry.offset = stream.base + buffered + offset
        add_frame(state, number, piece.side, frame)
        offset += 4 + size
    if offset > -buffered:
        stream.at_packet_start = offset == length
        stream.base += buffered + offset
        piece.framed_bytes += offset
        stream.frame_size = 0
    if outcome != Verdict.YES:
        return outcome if is_unknown(outcome) else Outcome.DONE
    left = length - max(offset, 0)
    if left > 0:
        address = base + start + length - left
        append_fragment(state, stream, address, left, piece.packet, piece.time_ns)
    stream.frame_size = size if stream.buffered_bytes >= 4 else 0
    piece.framed_bytes = piece.length
    return Outcome.DONE


@device_function
def gather_head(
    state: CorrelatorState, stream: SideRow, source: U8, start: int, length: int
) -> int:
    """Copy the first bytes of a fragmented frame to one place; return their number."""
    end = read_head(state, stream, HEADER_BYTES)
    more = min(length, HEADER_BYTES - end)
    copy_bytes(state.frame_head, end, source, start, more)
    return end + more


@device_function
def join(state: CorrelatorState, stream: SideRow, address: int, length: int) -> int:
    """Copy a fragmented frame to one place, with its last bytes; return the address."""
    start = state.counts.carried_bytes
    end = copy_fragments(state, stream, start)
    copy_address(state, end, address, length)
    state.counts.carried_bytes = end + length
    drop_fragments(state, stream)
    return CARRY_OVER_BASE + start


@device_function
def add_frame(state: CorrelatorState, number: int, side: int, frame: int) -> None:
    """Pair a frame, or queue it until its turn."""
    connection, entry = state.connections[number], state.entries[frame]
    if not may_pass(connection, side, entry.packet):
        queue_frame(state, connection, side, frame)
    elif side == connection.client:
        add_request(state, number, frame)
    elif is_early(connection, entry) or prepare_response(state, number, frame) != Outcome.DONE:
        queue_frame(state, connection, side, frame)
    else:
        pair_response(state, number, frame)


@device_function
def frame_held(state: CorrelatorState, number: int, side: int) -> int:
    """Queue the complete frames of held bytes in sync; return an `Outcome`."""
    connection = state.connections[number]
    stream, limit = connection.sides[side], state.counts.max_frame_bytes
    while stream.in_sync and stream.held >= 0 and stream.buffered_bytes >= 4:
        if side != connection.client and awaits_first_response(state, number):
            return Outcome.DONE
        if not stream.in_sync:
            return Outcome.DONE
        if not has_room(state, connection, 2):
            return Outcome.TABLE_FULL
        outcome = check_frame(state, number, side)
        if is_unknown(outcome):
            return outcome
        if outcome == Verdict.NO:
            lose_sync(stream)
            connection.expects_first &= side == connection.client
            return Outcome.DONE
        size = signed32(state.carry_over, origin_of(state, stream))
        if size > limit:
            outcome = begin_damaged(state, number, side)
            if outcome != Outcome.DONE:
                return outcome
            continue
        if stream.buffered_bytes < 4 + size:
            break
        outcome = take_held(state, number, side, size)
        if outcome != Outcome.DONE:
            return outcome
    if stream.in_sync and stream.held >= 0 and is_usual(state, number, side):
        to_fragments(state, stream)
    return Outcome.DONE


@device_function
def take_held(state: CorrelatorState, number: int, side: int, size: int) -> int:
    """Queue the complete frame at the begin of held bytes."""
    connection = state.connections[number]
    stream, is_token = connection.sides[side], Verdict.NO
    if side == connection.client:
        is_token = check_token(state, number, size)
        if is_unknown(is_token):
            return is_token
    frame = new_frame(state, number, side, state.entries[stream.held].start + 4, size)
    entry, last = state.entries[frame], packet_before(state, stream, 4 + size)
    entry.begun_ns = packet_before(state, stream, 1).time_ns
    if side == connection.client:
        mark_login(connection, entry, is_token == Verdict.YES)
    entry.size = size
    entry.packet = last.packet
    entry.time_ns = last.time_ns
    entry.offset = stream.base
    drop(state, stream, 4 + size)
    queue_frame(state, connection, side, frame)
    return Outcome.DONE


@device_function
def is_usual(state: CorrelatorState, number: int, side: int) -> bool:
    """Return whether the unfinished frame that is held needs no examination."""
    connection = state.connections[number]
    stream = connection.sides[side]
    if needs_examination(connection):
        return False
    if stream.buffered_bytes < 4:
        return True
    at, is_request = origin_of(state, stream), side == connection.client
    available = stream.buffered_bytes
    if check_usual(state, state.carry_over, at, available, is_request) != Verdict.YES:
        return False
    stream.frame_size = u32(state.carry_over, at)
    return True


@device_function
def awaits_first_response(state: CorrelatorState, number: int) -> bool:
    """
    Return whether the first response waits for the request that has its id.

    A stream that begins otherwise loses sync.
    """
    connection = state.connections[number]
    stream = connection.sides[1 - connection.client]
    if not connection.expects_first:
        return False
    if stream.base > 0 or connection.tokens_seen:
        connection.expects_first = False
        return False
    if stream.buffered_bytes < 8:
        return False
    correlation_id = signed32(state.carry_over, origin_of(state, stream) + 4)
    is_asked = may_have_asked(state, number, correlation_id)
    highest = connection.highest_id
    if not is_asked and highest < correlation_id <= highest + _MAX_EARLY_IDS:
        first = packet_before(state, stream, 1)
        if connection.newest_time_ns - first.time_ns < MAX_EARLY_RESPONSE_NS:
            return True
        is_asked = highest < 0  # without any request it can't be told
    connection.expects_first = False
    if not is_asked:
        lose_sync(stream)
    return False


@device_function
def must_wait(connection: ConnectionRow, side: int, packet: int) -> bool:
    """
    Return whether bytes of the broker must wait for requests captured before them.

    A gap ends the search for a frame, so the bytes before it must have met all requests.
    """
    if connection.client < 0 or side == connection.client:
        return False
    return connection.first_delayed >= 0 or is_undecided(connection, side, packet)


@device_function
def is_undecided(connection: ConnectionRow, side: int, packet: int) -> bool:
    """Return whether the search for a frame before these bytes may lack requests."""
    stream = connection.sides[side]
    is_behind = packet >= connection.sides[1 - side].barrier
    return is_behind and stream.buffered_bytes > 0 and not stream.in_sync


@device_function
def delay(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Delay the piece."""
    piece, number = state.piece, new_entry(state, True)
    entry = state.entries[number]
    if not piece.is_gap:
        entry.start = piece.start
        entry.length = piece.length
    else:
        entry.start = CARRY_OVER_BASE
        entry.length = 0
    entry.size = piece.length
    entry.packet = piece.packet
    entry.time_ns = piece.time_ns
    if connection.last_delayed < 0:
        connection.first_delayed = number
    else:
        state.entries[connection.last_delayed].next = number
    connection.last_delayed = number


@device_function
def may_add_delayed(state: CorrelatorState, connection: ConnectionRow) -> bool:
    """Return whether the first delayed piece need wait no longer."""
    first = connection.first_delayed
    if first < 0 or connection.mode != Mode.KAFKA:
        return False
    return not is_undecided(connection, 1 - connection.client, state.entries[first].packet)
