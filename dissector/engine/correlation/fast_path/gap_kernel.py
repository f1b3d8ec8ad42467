"""Device functions for gaps in a stream: damaged frames, and streams that are out of sync."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.integers import u16
from dissector.engine.correlation.both_paths.correlator_arrays import CorrelatorArrays
from dissector.engine.correlation.both_paths.frame_checks import HEADER_BYTES
from dissector.engine.correlation.both_paths.frame_checks_kernel import DUE as RESPONSE_DUE
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    FAST_PATH,
    MIN_RESPONSE_BYTES,
    SLOW_PATH,
    UNDECIDED,
    check_first_request,
    response_due,
    signed32,
)
from dissector.engine.correlation.both_paths.state_columns import (
    API_KEY,
    API_VERSION,
    AT_PACKET_START,
    BARRIER,
    BASE,
    BUFFERED_BYTES,
    CLIENT,
    CORRELATION_ID,
    DAMAGED,
    DUE,
    ENTERED,
    FIRST_FRAGMENT,
    FRAGMENT_COUNT,
    IN_SYNC,
    LAST_FRAGMENT,
    LAST_PACKET,
    LENGTH,
    LOST_BEFORE,
    MAX_FRAME_SIZE,
    MISSING,
    NEXT,
    OFFSET,
    OLDEST_REQUEST,
    PACKET,
    PENDING,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPED,
    SKIPPING_DAMAGED,
    START,
    TIME,
)
from dissector.engine.correlation.fast_path.linked_lists import (
    LIST_HEAD,
    NOT_FOUND,
    TOO_FAR,
    find_request,
    free_entry,
    join_fragments,
    new_entry,
    read_head,
)
from dissector.engine.correlation.fast_path.ready_kernel import match_ready, queue_frame
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.protocol.headers import PRODUCE


@device_function
def add_gap(
    state: CorrelatorArrays, connection: int, side: int, length: int, packet: int, time_ns: int
) -> int:
    """Process missing bytes of a stream; return FAST_PATH if possible, else all is as before."""
    at, connections = SIDES + side * SIDE_WIDTH, state.connections
    flags = connections[connection, at + SIDE_FLAGS]
    buffered = connections[connection, at + BUFFERED_BYTES]
    begins_damaged = flags & (IN_SYNC | SKIPPING_DAMAGED) == IN_SYNC and buffered >= 4
    due = RESPONSE_DUE
    if begins_damaged:
        due = damaged_due(state, connection, side, buffered)
        if due == UNDECIDED:
            return SLOW_PATH
    connections[connection, at + MISSING] += length
    if side != connections[connection, CLIENT]:
        connections[connection, LOST_BEFORE] = packet
    if begins_damaged:
        begin_damaged(state, connection, side, buffered, due)
    else:
        drop_fragments(state, connection, at)
    beyond = length - skip_damaged(state, connection, side, length, packet, time_ns)
    connections[connection, at + LAST_PACKET] = packet
    connections[connection, at + SIDE_FLAGS] |= AT_PACKET_START
    if beyond > 0:
        connections[connection, at + BASE] += beyond
        connections[connection, at + SIDE_FLAGS] = AT_PACKET_START
        connections[connection, at + PENDING] = connections[connection, at + BASE]
    return FAST_PATH


@device_function
def damaged_due(state: CorrelatorArrays, connection: int, side: int, buffered: int) -> int:
    """Return whether a response is due to an unfinished frame; UNDECIDED: the slow path decides."""
    if buffered < HEADER_BYTES:
        return UNDECIDED
    if side != state.connections[connection, CLIENT]:
        return RESPONSE_DUE
    fragment = state.connections[connection, SIDES + side * SIDE_WIDTH + FIRST_FRAGMENT]
    head = state.frame_head
    end = read_head(state, fragment, len(head))
    if u16(head, 4) != PRODUCE:
        return RESPONSE_DUE
    if u16(head, 6) > state.api_limits[PRODUCE, 0]:
        return UNDECIDED  # not loaded yet, as the slow path began this frame, or never loaded
    return response_due(head, 0, end, state.api_limits)


@device_function
def begin_damaged(
    state: CorrelatorArrays, connection: int, side: int, buffered: int, due: int
) -> None:
    """Turn the unfinished frame of a side into a damaged one with a skipped rest."""
    at, connections = SIDES + side * SIDE_WIDTH, state.connections
    head = state.frame_head
    read_head(state, connections[connection, at + FIRST_FRAGMENT], HEADER_BYTES)
    frame = join_fragments(state, connection, at, 0, 0)
    size = connections[connection, at + PENDING]
    entry = new_entry(state)
    state.entries[entry, START] = frame + 4
    state.entries[entry, LENGTH] = buffered - 4
    state.entries[entry, SIZE] = size
    state.entries[entry, PACKET] = NEVER
    state.entries[entry, OFFSET] = connections[connection, at + BASE]
    if side == connections[connection, CLIENT]:
        state.entries[entry, API_KEY] = u16(head, 4)
        state.entries[entry, API_VERSION] = u16(head, 6)
        state.entries[entry, CORRELATION_ID] = signed32(head, 8)
    else:
        state.entries[entry, CORRELATION_ID] = signed32(head, 4)
    state.entries[entry, DUE] = due
    connections[connection, at + DAMAGED] = entry
    connections[connection, at + SIDE_FLAGS] |= SKIPPING_DAMAGED
    connections[connection, at + BASE] += buffered
    connections[connection, at + BUFFERED_BYTES] = 0
    connections[connection, at + PENDING] = 4 + size - buffered


@device_function
def drop_fragments(state: CorrelatorArrays, connection: int, at: int) -> None:
    """Skip the first bytes of a frame, too few to know its size."""
    connections = state.connections
    buffered = connections[connection, at + BUFFERED_BYTES]
    connections[connection, at + SKIPPED] += buffered
    connections[connection, at + BASE] += buffered
    connections[connection, at + BUFFERED_BYTES] = 0
    fragment = connections[connection, at + FIRST_FRAGMENT]
    while fragment >= 0:
        after = state.entries[fragment, NEXT]
        free_entry(state, fragment)
        fragment = after
    connections[connection, at + FIRST_FRAGMENT] = -1
    connections[connection, at + LAST_FRAGMENT] = -1
    connections[connection, at + FRAGMENT_COUNT] = 0


@device_function
def skip_damaged(
    state: CorrelatorArrays, connection: int, side: int, length: int, packet: int, time_ns: int
) -> int:
    """Skip the rest of a damaged frame, which is then ready; return the number of its bytes."""
    at, connections = SIDES + side * SIDE_WIDTH, state.connections
    if not connections[connection, at + SIDE_FLAGS] & SKIPPING_DAMAGED:
        return 0
    skipped = min(connections[connection, at + PENDING], length)
    connections[connection, at + PENDING] -= skipped
    connections[connection, at + BASE] += skipped
    entry = connections[connection, at + DAMAGED]
    if entry >= 0:
        state.entries[entry, TIME] = time_ns
    if connections[connection, at + PENDING] == 0:
        connections[connection, at + SIDE_FLAGS] &= ~SKIPPING_DAMAGED
        if entry >= 0:
            connections[connection, at + DAMAGED] = -1
            state.entries[entry, PACKET] = packet
            queue_frame(state, connection, side, entry)
    return int(skipped)


@device_function
def check_resync(
    state: CorrelatorArrays,
    connection: int,
    side: int,
    source: U8,
    start: int,
    length: int,
    packet: int,
    time_ns: int,
) -> int:
    """
    Return FAST_PATH if a stream out of sync certainly continues with the frame that begins here.

    The chunk is the first after a gap. `resync` decides all other cases.
    """
    at = SIDES + side * SIDE_WIDTH
    if not state.connections[connection, at + SIDE_FLAGS] & AT_PACKET_START:
        return SLOW_PATH
    if side == state.connections[connection, CLIENT]:
        return check_first_request(source, start, length, state.counters, state.api_limits)
    if length < 8 or match_ready(state, connection, time_ns) != FAST_PATH:
        return SLOW_PATH
    size = signed32(source, start)
    is_whole = MIN_RESPONSE_BYTES <= size <= state.counters[MAX_FRAME_SIZE] and 4 + size == length
    barrier = state.connections[connection, SIDES + (1 - side) * SIDE_WIDTH + BARRIER]
    if not is_whole or packet >= barrier:
        return SLOW_PATH
    oldest = state.connections[connection, OLDEST_REQUEST]
    previous = find_request(state.entries, oldest, signed32(source, start + 4))
    if previous in (NOT_FOUND, TOO_FAR):
        return SLOW_PATH
    request = oldest if previous == LIST_HEAD else state.entries[previous, NEXT]
    return FAST_PATH if packet > state.entries[request, PACKET] else SLOW_PATH


@device_function
def enter_sync(state: CorrelatorArrays, connection: int, side: int) -> None:
    """Synchronise a stream at its next byte."""
    at = SIDES + side * SIDE_WIDTH
    state.connections[connection, at + SIDE_FLAGS] |= IN_SYNC
    state.connections[connection, at + PENDING] = 0
    if state.connections[connection, at + ENTERED] == NONE:
        state.connections[connection, at + ENTERED] = state.connections[connection, at + BASE]
