"""Device functions for gaps in a stream: damaged frames, and streams that are out of sync."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.integers import u16
from dissector.engine.correlation.both_paths.correlator_rows import (
    ChunkColumns,
    CorrelatorState,
    SideRow,
)
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
from dissector.engine.correlation.fast_path.linked_lists import (
    LIST_HEAD,
    NOT_FOUND,
    TOO_FAR,
    drop_fragments,
    find_request,
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
def add_gap(state: CorrelatorState, chunks: ChunkColumns, i: int) -> int:
    """Process missing bytes of a stream; return FAST_PATH if possible, else all is as before."""
    number, side, length = chunks.connection[i], chunks.side[i], chunks.length[i]
    packet, connection = chunks.packet[i], state.connections[number]
    stream = connection.sides[side]
    begins_damaged = stream.in_sync and not stream.skips_damaged and stream.buffered_bytes >= 4
    due = RESPONSE_DUE
    if begins_damaged:
        due = damaged_due(state, stream, side == connection.client)
        if due == UNDECIDED:
            return SLOW_PATH
    stream.missing += length
    if side != connection.client:
        connection.lost_before = packet
    if begins_damaged:
        begin_damaged(state, stream, side == connection.client, due)
    else:
        drop_fragments(state, stream)
    beyond = length - skip_damaged(state, number, side, length, packet, chunks.time_ns[i])
    stream.last_packet = packet
    stream.at_packet_start = True
    if beyond > 0:
        stream.base += beyond
        stream.in_sync = False
        stream.skips_damaged = False
        stream.frame_size = 0
        stream.scanned = stream.base
    return FAST_PATH


@device_function
def damaged_due(state: CorrelatorState, stream: SideRow, is_request: bool) -> int:
    """Return whether a response is due to an unfinished frame; UNDECIDED: the slow path decides."""
    if stream.buffered_bytes < HEADER_BYTES:
        return UNDECIDED
    if not is_request:
        return RESPONSE_DUE
    head = state.frame_head
    end = read_head(state, stream.first_fragment, len(head))
    if u16(head, 4) != PRODUCE:
        return RESPONSE_DUE
    if u16(head, 6) > state.api_limits.newest[PRODUCE]:
        return UNDECIDED  # not loaded yet, as the slow path began this frame, or never loaded
    return response_due(head, 0, end, state.api_limits)


@device_function
def begin_damaged(state: CorrelatorState, stream: SideRow, is_request: bool, due: int) -> None:
    """Turn the unfinished frame of a side into a damaged one with a skipped rest."""
    head, size, buffered = state.frame_head, stream.frame_size, stream.buffered_bytes
    read_head(state, stream.first_fragment, HEADER_BYTES)
    frame = join_fragments(state, stream, 0, 0)
    number = new_entry(state, True)
    entry = state.entries[number]
    entry.start = frame + 4
    entry.length = buffered - 4
    entry.size = size
    entry.packet = NEVER
    entry.offset = stream.base
    if is_request:
        entry.api_key = u16(head, 4)
        entry.api_version = u16(head, 6)
        entry.correlation_id = signed32(head, 8)
    else:
        entry.correlation_id = signed32(head, 4)
    entry.due = due
    stream.damaged = number
    stream.skips_damaged = True
    stream.base += buffered
    stream.buffered_bytes = 0
    stream.frame_size = 0
    stream.bytes_left = 4 + size - buffered


@device_function
def skip_damaged(
    state: CorrelatorState, number: int, side: int, length: int, packet: int, time_ns: int
) -> int:
    """Skip the rest of a damaged frame, which is then ready; return the number of its bytes."""
    connection = state.connections[number]
    stream = connection.sides[side]
    if not stream.skips_damaged:
        return 0
    skipped = min(stream.bytes_left, length)
    stream.bytes_left -= skipped
    stream.base += skipped
    if stream.damaged >= 0:
        state.entries[stream.damaged].time_ns = time_ns
    if stream.bytes_left == 0:
        stream.skips_damaged = False
        if stream.damaged >= 0:
            state.entries[stream.damaged].packet = packet
            queue_frame(state, connection, side, stream.damaged)
            stream.damaged = -1
    return skipped


@device_function
def check_resync(
    state: CorrelatorState, chunks: ChunkColumns, i: int, source: U8, start: int
) -> int:
    """
    Return FAST_PATH if a stream out of sync certainly continues with the frame that begins here.

    The chunk is the first after a gap. `resync` decides all other cases.
    """
    number, side, length = chunks.connection[i], chunks.side[i], chunks.length[i]
    packet, connection = chunks.packet[i], state.connections[number]
    if not connection.sides[side].at_packet_start:
        return SLOW_PATH
    if side == connection.client:
        return check_first_request(source, start, length, state.counts, state.api_limits)
    if length < 8 or match_ready(state, number, chunks.time_ns[i]) != FAST_PATH:
        return SLOW_PATH
    size = signed32(source, start)
    is_whole = MIN_RESPONSE_BYTES <= size <= state.counts.max_frame_bytes and 4 + size == length
    if not is_whole or packet >= connection.sides[1 - side].barrier:
        return SLOW_PATH
    oldest = connection.oldest_request
    previous = find_request(state.entries, oldest, signed32(source, start + 4))
    if previous in (NOT_FOUND, TOO_FAR):
        return SLOW_PATH
    request = oldest if previous == LIST_HEAD else state.entries[previous].next
    return FAST_PATH if packet > state.entries[request].packet else SLOW_PATH


@device_function
def enter_sync(stream: SideRow) -> None:
    """Synchronise a stream at its next byte."""
    stream.in_sync = True
    stream.frame_size = 0
    if stream.entered == NONE:
        stream.entered = stream.base
