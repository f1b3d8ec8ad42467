"""Frames a chunk of a stream, as device functions: each frame is queued or matched."""

from __future__ import annotations

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.both_paths.correlator_rows import (
    KAFKA,
    UNRECOGNISED,
    ChunkColumns,
    ConnectionRow,
    CorrelatorState,
    Entry,
    SideRow,
)
from dissector.engine.correlation.both_paths.frame_checks import HEADER_BYTES
from dissector.engine.correlation.both_paths.frame_checks_kernel import DUE as RESPONSE_DUE
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    FAST_PATH,
    SLOW_PATH,
    check_frame,
    response_due,
    signed32,
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
    is_unfinished_request,
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
    state: CorrelatorState,
    chunks: ChunkColumns,
    i: int,
    source: U8,
    start: int,
    address_base: int,
) -> int:
    """
    Frame a chunk of data, which is in `source` from `start` on; return FAST_PATH if possible.

    On a connection that is not recognised yet it is the first one, and begins with a request.
    """
    number, side, length = chunks.connection[i], chunks.side[i], chunks.length[i]
    packet, time_ns = chunks.packet[i], chunks.time_ns[i]
    connection = state.connections[number]
    stream = connection.sides[side]
    buffered = stream.buffered_bytes
    is_unrecognised = connection.mode == UNRECOGNISED
    if not is_unrecognised and not stream.in_sync:
        outcome = check_resync(state, chunks, i, source, start)
        if outcome != FAST_PATH:
            return outcome
    is_request = is_unrecognised or side == connection.client
    skipped = min(stream.bytes_left, length) if stream.skips_damaged else 0
    start += skipped
    length -= skipped
    if length > 0 and (buffered < HEADER_BYTES or buffered + length >= 4 + stream.frame_size):
        ends = gather_head(state, stream, source, start, length)
        head_start = 0 if buffered > 0 else start
        if (
            not is_request
            and connection.start_captured
            and stream.base == 0
            and buffered < 8 <= buffered + length
            and not is_asked(
                state, connection, state.frame_head if buffered > 0 else source, head_start
            )
        ):
            return SLOW_PATH
        outcome = check_frames(state, source, start, length, buffered, ends, is_request)
        if outcome != FAST_PATH:
            return outcome
    if is_unrecognised:
        sync_from_start(connection)
    elif not stream.in_sync:
        enter_sync(stream)
    connection.newest_time_ns = max(connection.newest_time_ns, time_ns)
    if skipped > 0:
        skip_damaged(state, number, side, skipped, packet, time_ns)
    if length > 0:
        outcome = frame_bytes(state, chunks, i, source, start, address_base, skipped)
        if outcome != FAST_PATH:
            return outcome
    else:
        stream.at_packet_start = True
    stream.last_packet = packet
    outcome = match_ready(state, number, time_ns)
    if outcome != FAST_PATH:
        state.counts.framed_bytes = chunks.length[i]
    return outcome


@device_function
def frame_bytes(
    state: CorrelatorState,
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
    number, side, length = chunks.connection[i], chunks.side[i], chunks.length[i] - skipped
    packet, time_ns = chunks.packet[i], chunks.time_ns[i]
    connection = state.connections[number]
    stream = connection.sides[side]
    is_request = side == connection.client
    buffered, size = stream.buffered_bytes, stream.frame_size
    stream_offset = stream.base + buffered
    # The beginning of the next frame, as an offset in the chunk.
    offset = -buffered
    while length - offset >= 4:
        head = state.frame_head if offset < 0 else source
        head_start = 0 if offset < 0 else start + offset
        if offset >= 0 or buffered < 4:
            size = u32(head, head_start)
        if length - offset < 4 + size:
            break
        previous, is_ready = NOT_FOUND, not may_pass(connection, side, packet)
        if not is_request and not is_ready:
            correlation_id = signed32(head, head_start + 4)
            previous = find_request(state.entries, connection.oldest_request, correlation_id)
            is_ready = previous == NOT_FOUND and is_early(connection, correlation_id, time_ns)
            is_missing = previous == NOT_FOUND and not is_ready
            if previous == TOO_FAR or (
                is_missing and is_unfinished_request(state, connection, correlation_id)
            ):
                if offset > 0 or skipped > 0:
                    rewind_to(stream, stream_offset + offset)
                    state.counts.framed_bytes = skipped + offset
                return SLOW_PATH
        address = address_base + start + offset
        if offset < 0:
            rest = 4 + size - buffered
            address = join_fragments(state, stream, address_base + start, rest)
        frame = new_entry(state, True)
        entry = state.entries[frame]
        entry.start = address + 4
        entry.length = size
        entry.size = size
        entry.packet = packet
        entry.time_ns = time_ns
        entry.offset = stream_offset + offset
        if is_request:
            read_request(state, entry, head, head_start)
            if not is_ready:
                enqueue(state, number, frame, entry.due)
        else:
            entry.correlation_id = signed32(head, head_start + 4)
            if not is_ready:
                emit_response(state, number, frame, previous)
        if is_ready:
            queue_frame(state, connection, side, frame)
        offset += 4 + size
    if offset >= 0:
        stream.in_sync = True
        stream.skips_damaged = False
        stream.at_packet_start = (offset == 0 and skipped == 0) or offset == length
    if offset < length:
        left = max(offset, 0)
        address = address_base + start + left
        append_fragment(state, stream, address, length - left, packet, time_ns)
    stream.base = stream_offset + offset
    stream.buffered_bytes = length - offset
    stream.frame_size = size if length - offset >= 4 else 0
    return FAST_PATH


@device_function
def read_request(state: CorrelatorState, entry: Entry, head: U8, start: int) -> None:
    """Set the fields of a request from its header."""
    entry.api_key = u16(head, start + 4)
    entry.api_version = u16(head, start + 6)
    entry.correlation_id = signed32(head, start + 8)
    entry.due = RESPONSE_DUE
    if entry.api_key == PRODUCE:
        end = min(start + 4 + entry.size, len(head))
        entry.due = response_due(head, start, end, state.api_limits)


@device_function
def gather_head(
    state: CorrelatorState, stream: SideRow, source: U8, start: int, length: int
) -> int:
    """Copy the first bytes of a fragmented frame to one place, followed by the chunk."""
    if stream.buffered_bytes == 0:
        return 0
    head = state.frame_head
    ends = read_head(state, stream.first_fragment, len(head))
    more = min(length, len(head) - ends)
    copy_bytes(head, ends, source, start, more)
    return ends + more


@device_function
def is_asked(state: CorrelatorState, connection: ConnectionRow, head: U8, start: int) -> bool:
    """Return whether a request with the id of the first response waits for it."""
    correlation_id = signed32(head, start + 4)
    found = find_request(state.entries, connection.oldest_request, correlation_id)
    return found not in (NOT_FOUND, TOO_FAR)


@device_function
def check_frames(
    state: CorrelatorState,
    source: U8,
    start: int,
    length: int,
    buffered: int,
    ends: int,
    is_request: int,
) -> int:
    """Check all frames that a chunk completes, continues or begins."""
    offset, head = -buffered, state.frame_head
    if offset < 0 and length - offset >= 4:
        outcome = check_frame(state, head, 0, length - offset, ends, is_request)
        if outcome != FAST_PATH:
            return outcome
        offset += 4 + u32(head, 0)
    while length - offset >= 4 and offset >= 0:
        here = start + offset
        outcome = check_frame(state, source, here, length - offset, start + length, is_request)
        if outcome != FAST_PATH:
            return outcome
        offset += 4 + u32(source, here)
    return FAST_PATH


@device_function
def sync_from_start(connection: ConnectionRow) -> None:
    """Treat a connection captured from its beginning as Kafka from the first byte on."""
    connection.mode = KAFKA
    connection.client = 0
    for side in range(2):
        stream = connection.sides[side]
        stream.in_sync = True
        stream.at_packet_start = True
        stream.entered = 0


@device_function
def rewind_to(stream: SideRow, offset: int) -> None:
    """Set a stream to the beginning of a frame within a packet, for the slow path."""
    stream.base = offset
    stream.buffered_bytes = 0
    stream.frame_size = 0
    stream.at_packet_start = False
    stream.last_packet = -1
