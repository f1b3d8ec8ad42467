"""Frames a chunk of a stream, as device functions: each frame is queued or matched."""

from __future__ import annotations

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.both_paths.correlator_arrays import (
    ChunkColumns,
    CorrelatorArrays,
)
from dissector.engine.correlation.both_paths.frame_checks import HEADER_BYTES
from dissector.engine.correlation.both_paths.frame_checks_kernel import DUE as RESPONSE_DUE
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    FAST_PATH,
    SLOW_PATH,
    check_first_request,
    check_frame,
    response_due,
    signed32,
)
from dissector.engine.correlation.both_paths.state_columns import (
    API_KEY,
    API_VERSION,
    AT_PACKET_START,
    BASE,
    BUFFERED_BYTES,
    CLIENT,
    CONNECTION_FLAGS,
    CORRELATION_ID,
    DUE,
    ENTERED,
    FIRST_FRAGMENT,
    FRAMED_BYTES,
    IN_SYNC,
    KAFKA,
    LAST_PACKET,
    LENGTH,
    MODE,
    NEWEST_TIME,
    OFFSET,
    OLDEST_REQUEST,
    PACKET,
    PENDING,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPING_DAMAGED,
    START,
    START_CAPTURED,
    TIME,
    UNRECOGNISED,
)
from dissector.engine.correlation.fast_path.gap_kernel import (
    check_resync,
    enter_sync,
    skip_damaged,
)
from dissector.engine.correlation.fast_path.linked_lists import (
    NOT_FOUND,
    TOO_FAR,
    append_fragment,
    find_request,
    join_fragments,
    new_entry,
    read_head,
)
from dissector.engine.correlation.fast_path.match_kernel import emit_response, enqueue
from dissector.engine.correlation.fast_path.ready_kernel import (
    is_early,
    match_ready,
    may_pass,
    queue_frame,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.protocol.headers import PRODUCE


@device_function
def frame_chunk(
    state: CorrelatorArrays,
    chunks: ChunkColumns,
    i: int,
    source: U8,
    start: int,
    address_base: int,
) -> int:
    """Frame a chunk of data, which is in `source` from `start` on; return FAST_PATH if possible."""
    connections = state.connections
    connection, side, length = chunks.connection[i], chunks.side[i], chunks.length[i]
    packet, time_ns = chunks.packet[i], chunks.time_ns[i]
    at = SIDES + side * SIDE_WIDTH
    flags = connections[connection, at + SIDE_FLAGS]
    buffered = connections[connection, at + BUFFERED_BYTES]
    outcome = check_state(state, connection, side, source, start, length, packet, time_ns)
    if outcome != FAST_PATH:
        return outcome
    is_unrecognised = connections[connection, MODE] == UNRECOGNISED
    is_request = is_unrecognised or side == connections[connection, CLIENT]
    size = connections[connection, at + PENDING]
    skipped = min(size, length) if flags & SKIPPING_DAMAGED else 0
    start += skipped
    length -= skipped
    if length > 0 and (buffered < HEADER_BYTES or buffered + length >= 4 + size):
        ends = gather_head(state, source, start, length, connection, at, buffered)
        outcome = check_frames(state, source, start, length, buffered, ends, is_request)
        if outcome != FAST_PATH:
            return outcome
    if is_unrecognised:
        sync_from_start(state, connection)
    elif flags & IN_SYNC == 0:
        enter_sync(state, connection, side)
    connections[connection, NEWEST_TIME] = max(connections[connection, NEWEST_TIME], time_ns)
    if skipped > 0:
        skip_damaged(state, connection, side, skipped, packet, time_ns)
    if length > 0:
        outcome = frame_bytes(state, chunks, i, source, start, address_base, skipped)
        if outcome != FAST_PATH:
            return outcome
    else:
        connections[connection, at + SIDE_FLAGS] |= AT_PACKET_START
    connections[connection, at + LAST_PACKET] = packet
    outcome = match_ready(state, connection, time_ns)
    if outcome != FAST_PATH:
        state.counters[FRAMED_BYTES] = chunks.length[i]
    return outcome


@device_function
def check_state(
    state: CorrelatorArrays,
    connection: int,
    side: int,
    source: U8,
    start: int,
    length: int,
    packet: int,
    time_ns: int,
) -> int:
    """Return FAST_PATH if the kernel handles the beginning of a chunk."""
    if state.connections[connection, MODE] == UNRECOGNISED:
        if side == 0 and state.connections[connection, CONNECTION_FLAGS] & START_CAPTURED:
            return check_first_request(source, start, length, state.counters, state.api_limits)
        return SLOW_PATH
    if state.connections[connection, SIDES + side * SIDE_WIDTH + SIDE_FLAGS] & IN_SYNC:
        return FAST_PATH
    return check_resync(state, connection, side, source, start, length, packet, time_ns)


@device_function
def frame_bytes(
    state: CorrelatorArrays,
    chunks: ChunkColumns,
    i: int,
    source: U8,
    start: int,
    address_base: int,
    skipped: int,
) -> int:
    """
    Queue or match all frames that a chunk completes, and retain the beginning of the next.

    `start` is behind the first `skipped` bytes of the chunk, the rest of a damaged frame.
    """
    connection, side, length = chunks.connection[i], chunks.side[i], chunks.length[i] - skipped
    packet, time_ns = chunks.packet[i], chunks.time_ns[i]
    connections, at = state.connections, SIDES + side * SIDE_WIDTH
    is_request = side == connections[connection, CLIENT]
    buffered = connections[connection, at + BUFFERED_BYTES]
    size = connections[connection, at + PENDING]
    stream_offset = connections[connection, at + BASE] + buffered
    # The beginning of the next frame, as an offset in the chunk.
    offset = -buffered
    while length - offset >= 4:
        frame_bytes = state.frame_head if offset < 0 else source
        frame_start = 0 if offset < 0 else start + offset
        if offset >= 0 or buffered < 4:
            size = u32(frame_bytes, frame_start)
        if length - offset < 4 + size:
            break
        previous, is_ready = NOT_FOUND, not may_pass(state, connection, side, packet)
        if not is_request and not is_ready:
            correlation_id = signed32(frame_bytes, frame_start + 4)
            oldest = connections[connection, OLDEST_REQUEST]
            previous = find_request(state.entries, oldest, correlation_id)
            is_ready = previous == NOT_FOUND and is_early(
                state, connection, correlation_id, time_ns
            )
            if previous == TOO_FAR:
                if offset > 0 or skipped > 0:
                    rewind_to(state, connection, at, stream_offset + offset)
                    state.counters[FRAMED_BYTES] = skipped + offset
                return SLOW_PATH
        frame = address_base + start + offset
        if offset < 0:
            rest = 4 + size - buffered
            frame = join_fragments(state, connection, at, address_base + start, rest)
        entry = new_entry(state)
        state.entries[entry, START] = frame + 4
        state.entries[entry, LENGTH] = size
        state.entries[entry, SIZE] = size
        state.entries[entry, PACKET] = packet
        state.entries[entry, TIME] = time_ns
        state.entries[entry, OFFSET] = stream_offset + offset
        if is_request:
            due = read_request(state, entry, frame_bytes, frame_start, size)
            if not is_ready:
                enqueue(state, connection, entry, due)
        else:
            state.entries[entry, CORRELATION_ID] = signed32(frame_bytes, frame_start + 4)
            if not is_ready:
                emit_response(state, connection, entry, previous)
        if is_ready:
            queue_frame(state, connection, side, entry)
        offset += 4 + size
    if offset >= 0:
        starts_packet = (offset == 0 and skipped == 0) or offset == length
        connections[connection, at + SIDE_FLAGS] = (
            IN_SYNC | AT_PACKET_START if starts_packet else IN_SYNC
        )
    if offset < length:
        left = max(offset, 0)
        address = address_base + start + left
        append_fragment(state, connection, at, address, length - left, packet, time_ns)
    connections[connection, at + BASE] = stream_offset + offset
    connections[connection, at + BUFFERED_BYTES] = length - offset
    connections[connection, at + PENDING] = size if length - offset >= 4 else 0
    return FAST_PATH


@device_function
def read_request(
    state: CorrelatorArrays, entry: int, frame_bytes: U8, frame_start: int, size: int
) -> int:
    """Set the header columns of a request's entry; return whether a response is due."""
    due = RESPONSE_DUE
    if u16(frame_bytes, frame_start + 4) == PRODUCE:
        end = min(frame_start + 4 + size, len(frame_bytes))
        due = response_due(frame_bytes, frame_start, end, state.api_limits)
    state.entries[entry, API_KEY] = u16(frame_bytes, frame_start + 4)
    state.entries[entry, API_VERSION] = u16(frame_bytes, frame_start + 6)
    state.entries[entry, CORRELATION_ID] = signed32(frame_bytes, frame_start + 8)
    state.entries[entry, DUE] = due
    return due


@device_function
def gather_head(
    state: CorrelatorArrays,
    source: U8,
    start: int,
    length: int,
    connection: int,
    at: int,
    buffered: int,
) -> int:
    """Copy the first bytes of a fragmented frame to one place, followed by the chunk."""
    if buffered == 0:
        return 0
    head = state.frame_head
    ends = read_head(state, state.connections[connection, at + FIRST_FRAGMENT], len(head))
    more = min(length, len(head) - ends)
    copy_bytes(head, ends, source, start, more)
    return ends + more


@device_function
def check_frames(
    state: CorrelatorArrays,
    source: U8,
    start: int,
    length: int,
    buffered: int,
    ends: int,
    is_request: int,
) -> int:
    """Check all frames that a chunk completes, continues or begins."""
    offset, counters, api_limits = -buffered, state.counters, state.api_limits
    if offset < 0 and length - offset >= 4:
        outcome = check_frame(
            state.frame_head, 0, length - offset, is_request, ends, counters, api_limits
        )
        if outcome != FAST_PATH:
            return outcome
        offset += 4 + u32(state.frame_head, 0)
    while length - offset >= 4 and offset >= 0:
        here = start + offset
        outcome = check_frame(
            source, here, length - offset, is_request, start + length, counters, api_limits
        )
        if outcome != FAST_PATH:
            return outcome
        offset += 4 + u32(source, here)
    return FAST_PATH


@device_function
def sync_from_start(state: CorrelatorArrays, connection: int) -> None:
    """Treat a connection captured from its beginning as Kafka from the first byte on."""
    state.connections[connection, MODE] = KAFKA
    state.connections[connection, CLIENT] = 0
    for side in range(2):
        at = SIDES + side * SIDE_WIDTH
        state.connections[connection, at + SIDE_FLAGS] = IN_SYNC | AT_PACKET_START
        state.connections[connection, at + ENTERED] = 0


@device_function
def rewind_to(state: CorrelatorArrays, connection: int, at: int, offset: int) -> None:
    """Set a stream to the beginning of a frame within a packet, for the slow path."""
    state.connections[connection, at + BASE] = offset
    state.connections[connection, at + BUFFERED_BYTES] = 0
    state.connections[connection, at + PENDING] = 0
    state.connections[connection, at + SIDE_FLAGS] = IN_SYNC
    state.connections[connection, at + LAST_PACKET] = -1
