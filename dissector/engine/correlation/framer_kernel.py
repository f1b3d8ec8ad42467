"""Frames a chunk of a stream, as device functions: each frame is queued or matched."""

from __future__ import annotations

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.connection_correlator import MAX_EARLY_RESPONSE_NS
from dissector.engine.correlation.frame_checks import HEADER_BYTES
from dissector.engine.correlation.frame_checks_kernel import (
    DUE,
    FAST_PATH,
    SLOW_PATH,
    check_first_request,
    check_frame,
    response_due,
    signed32,
)
from dissector.engine.correlation.linked_lists import (
    NOT_FOUND,
    TOO_FAR,
    append_fragment,
    find_request,
    join_fragments,
    new_entry,
    read_head,
)
from dissector.engine.correlation.match_kernel import emitted_address, enqueue, match_response
from dissector.engine.correlation.state_columns import (
    API_KEY,
    API_VERSION,
    AT_PACKET_START,
    BASE,
    BUFFERED_BYTES,
    CLIENT,
    CONNECTION_FLAGS,
    CORRELATION_ID,
    ENTERED,
    FIRST_FRAGMENT,
    FRAMED_BYTES,
    HIGHEST_ID,
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
    ROW_RESPONSE,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPING_DAMAGED,
    START,
    START_CAPTURED,
    SUPPRESSED_COUNT,
    TIME,
    UNRECOGNISED,
    WINDOW_LENGTH,
)
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.kernel.memcpy import copy_bytes
from dissector.protocol.headers import PRODUCE


@device_function
def frame_chunk(
    connection: int,
    side: int,
    source: U8,
    start: int,
    address_base: int,
    length: int,
    packet: int,
    time_ns: int,
    data: U8,
    carry_over: U8,
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    rows: I64Table,
    copies: I64Table,
    emitters: I64,
    api_limits: I64Table,
    frame_head: U8,
) -> int:
    """Frame a chunk of data, which is in `source` from `start` on; return FAST_PATH if possible."""
    at = SIDES + side * SIDE_WIDTH
    is_unrecognised = connections[connection, MODE] == UNRECOGNISED
    if is_unrecognised:
        outcome = SLOW_PATH
        if side == 0 and connections[connection, CONNECTION_FLAGS] & START_CAPTURED:
            outcome = check_first_request(source, start, length, counters, api_limits)
        if outcome != FAST_PATH:
            return outcome
    elif connections[connection, at + SIDE_FLAGS] & (IN_SYNC | SKIPPING_DAMAGED) != IN_SYNC:
        return SLOW_PATH
    is_request = is_unrecognised or side == connections[connection, CLIENT]
    buffered = connections[connection, at + BUFFERED_BYTES]
    size = connections[connection, at + PENDING]
    if buffered < HEADER_BYTES or buffered + length >= 4 + size:
        ends = gather_head(
            frame_head,
            source,
            start,
            length,
            data,
            carry_over,
            entries,
            connections[connection, at + FIRST_FRAGMENT],
            buffered,
        )
        outcome = check_frames(
            source, start, length, buffered, frame_head, ends, is_request, counters, api_limits
        )
        if outcome != FAST_PATH:
            return outcome
    if is_unrecognised:
        sync_from_start(connections, connection)
    connections[connection, NEWEST_TIME] = max(connections[connection, NEWEST_TIME], time_ns)
    stream_offset = connections[connection, at + BASE] + buffered
    # The beginning of the next frame, as an offset in the chunk.
    offset = -buffered
    while length - offset >= 4:
        frame_bytes = frame_head if offset < 0 else source
        frame_start = 0 if offset < 0 else start + offset
        if offset >= 0 or buffered < 4:
            size = u32(frame_bytes, frame_start)
        if length - offset < 4 + size:
            break
        previous = NOT_FOUND
        if not is_request:
            correlation_id = signed32(frame_bytes, frame_start + 4)
            previous = find_request(
                entries, connections[connection, OLDEST_REQUEST], correlation_id
            )
            if previous == TOO_FAR or (
                previous == NOT_FOUND
                and may_be_early_or_suppressed(connections, connection, correlation_id, time_ns)
            ):
                if offset > 0:
                    rewind_to(connections, connection, at, stream_offset + offset)
                    counters[FRAMED_BYTES] = offset
                return SLOW_PATH
        frame = address_base + start + offset
        if offset < 0:
            frame = join_fragments(
                counters,
                connections,
                entries,
                copies,
                connection,
                at,
                address_base + start,
                4 + size - buffered,
            )
        if is_request:
            due = DUE
            if u16(frame_bytes, frame_start + 4) == PRODUCE:
                due = response_due(
                    frame_bytes,
                    frame_start,
                    min(frame_start + 4 + size, len(frame_bytes)),
                    api_limits,
                )
            entry = new_entry(counters, entries)
            entries[entry, START] = frame + 4
            entries[entry, LENGTH] = size
            entries[entry, SIZE] = size
            entries[entry, PACKET] = packet
            entries[entry, TIME] = time_ns
            entries[entry, OFFSET] = stream_offset + offset
            entries[entry, API_KEY] = u16(frame_bytes, frame_start + 4)
            entries[entry, API_VERSION] = u16(frame_bytes, frame_start + 6)
            entries[entry, CORRELATION_ID] = signed32(frame_bytes, frame_start + 8)
            enqueue(counters, connections, entries, rows, emitters, connection, entry, due)
        else:
            row = match_response(
                counters, connections, entries, rows, emitters, connection, previous, correlation_id
            )
            rows[ROW_RESPONSE, row] = emitted_address(frame + 4, counters[WINDOW_LENGTH])
            rows[ROW_RESPONSE + 1, row] = size
            rows[ROW_RESPONSE + 2, row] = size
            rows[ROW_RESPONSE + 3, row] = packet
            rows[ROW_RESPONSE + 4, row] = time_ns
            rows[ROW_RESPONSE + 5, row] = stream_offset + offset
        offset += 4 + size
    if offset >= 0:
        connections[connection, at + SIDE_FLAGS] = (
            IN_SYNC | AT_PACKET_START if offset == 0 or offset == length else IN_SYNC
        )
    if offset < length:
        left = max(offset, 0)
        append_fragment(
            counters,
            connections,
            entries,
            connection,
            at,
            address_base + start + left,
            length - left,
            packet,
            time_ns,
        )
    connections[connection, at + BASE] = stream_offset + offset
    connections[connection, at + BUFFERED_BYTES] = length - offset
    connections[connection, at + PENDING] = size if length - offset >= 4 else 0
    connections[connection, at + LAST_PACKET] = packet
    return FAST_PATH


@device_function
def gather_head(
    frame_head: U8,
    source: U8,
    start: int,
    length: int,
    data: U8,
    carry_over: U8,
    entries: I64Table,
    fragment: int,
    buffered: int,
) -> int:
    """Copy the first bytes of a fragmented frame to one place, followed by the chunk."""
    if buffered == 0:
        return 0
    ends = read_head(frame_head, data, carry_over, entries, fragment, len(frame_head))
    more = min(length, len(frame_head) - ends)
    copy_bytes(frame_head, ends, source, start, more)
    return ends + more


@device_function
def check_frames(
    source: U8,
    start: int,
    length: int,
    buffered: int,
    frame_head: U8,
    ends: int,
    is_request: int,
    counters: I64,
    api_limits: I64Table,
) -> int:
    """Check all frames that a chunk completes, continues or begins."""
    offset = -buffered
    if offset < 0 and length - offset >= 4:
        outcome = check_frame(
            frame_head, 0, length - offset, is_request, ends, counters, api_limits
        )
        if outcome != FAST_PATH:
            return outcome
        offset += 4 + u32(frame_head, 0)
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
def sync_from_start(connections: I64Table, connection: int) -> None:
    """Take a connection captured from its beginning for Kafka from the first byte on."""
    connections[connection, MODE] = KAFKA
    connections[connection, CLIENT] = 0
    for side in range(2):
        connections[connection, SIDES + side * SIDE_WIDTH + SIDE_FLAGS] = IN_SYNC | AT_PACKET_START
        connections[connection, SIDES + side * SIDE_WIDTH + ENTERED] = 0


@device_function
def may_be_early_or_suppressed(
    connections: I64Table, connection: int, correlation_id: int, time_ns: int
) -> bool:
    """Return whether a response without a request may be early, or may belong to acks = 0."""
    early = (
        connections[connection, HIGHEST_ID] < correlation_id
        and connections[connection, NEWEST_TIME] - time_ns < MAX_EARLY_RESPONSE_NS
    )
    return bool(early or connections[connection, SUPPRESSED_COUNT] > 0)


@device_function
def rewind_to(connections: I64Table, connection: int, at: int, offset: int) -> None:
    """Set a stream to the beginning of a frame within a packet, for the slow path."""
    connections[connection, at + BASE] = offset
    connections[connection, at + BUFFERED_BYTES] = 0
    connections[connection, at + PENDING] = 0
    connections[connection, at + SIDE_FLAGS] = IN_SYNC
    connections[connection, at + LAST_PACKET] = -1
