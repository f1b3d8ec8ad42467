"""
Device functions that hold back the bytes of connections whose protocol is not recognised yet.

Most of them are not Kafka: they have no bytes like the header of a request, which costs one look at
each byte. A candidate, and what may be a response, is left to the slow path (`recognition`).
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlation_limits import (
    MAX_FIRST_REQUEST_OFFSET,
    MIN_RETAINED_BYTES,
)
from dissector.engine.correlation.both_paths.correlator_rows import (
    OTHER,
    ChunkColumns,
    ConnectionRow,
    CorrelatorState,
    SideRow,
)
from dissector.engine.correlation.both_paths.frame_checks import HEADER_BYTES
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    FAST_PATH,
    MIN_RESPONSE_BYTES,
    SLOW_PATH,
)
from dissector.engine.correlation.fast_path.linked_lists import (
    append_fragment,
    drop_fragments,
    fragment_byte,
)
from dissector.engine.correlation.fast_path.ready_kernel import set_barriers
from dissector.kernel import device_function
from dissector.kernel.arrays import U8

_TAIL = HEADER_BYTES - 1
"""Bytes at the end of a chunk that may begin a header."""

_FIRST_BYTES = 32
"""Fewer bytes do not always show whether a stream begins with TLS or Kerberos."""

_FIRST_TLS, _LAST_TLS = 0x14, 0x17
_KERBEROS = 0x60
_PLAUSIBLE = 1000


@device_function
def hold_chunk(
    state: CorrelatorState, chunks: ChunkColumns, i: int, source: U8, start: int, address_base: int
) -> int:
    """Hold back a chunk of data if it holds nothing like Kafka; return FAST_PATH then."""
    connection, side = state.connections[chunks.connection[i]], chunks.side[i]
    stream, length = connection.sides[side], chunks.length[i]
    is_first = stream.base == 0 or stream.scanned <= stream.base
    is_open = is_first and stream.buffered_bytes < _FIRST_BYTES
    if is_open and (stream.buffered_bytes > 0 or not is_foreign(source, start, length)):
        return SLOW_PATH
    is_searched = side == 0 or not connection.start_captured
    end = stream.base + stream.buffered_bytes
    if is_searched and may_hold_request(state, stream, source, start, length):
        return SLOW_PATH
    if stream.buffered_bytes + length > 2 * MIN_RETAINED_BYTES:
        return SLOW_PATH
    connection.newest_time_ns = max(connection.newest_time_ns, chunks.time_ns[i])
    append_fragment(
        state, stream, address_base + start, length, chunks.packet[i], chunks.time_ns[i]
    )
    stream.buffered_bytes += length
    stream.last_packet = chunks.packet[i]
    if is_searched:
        stream.scanned = max(stream.scanned, end + length - _TAIL)
    if connection.start_captured and connection.sides[0].scanned > MAX_FIRST_REQUEST_OFFSET:
        mark_other(state, connection)
    return FAST_PATH


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
    end = stream.base + stream.buffered_bytes
    if end - stream.scanned > _TAIL:
        return True  # an awaited one
    behind = end - stream.scanned
    if behind > 0:
        head = state.frame_head
        if not copy_tail(state, stream, behind):
            return True
        more = min(length, _TAIL)
        for k in range(more):
            head[behind + k] = source[start + k]
        if find_header(head, 0, behind + more - _TAIL):
            return True
    return find_header(source, start, start + length - _TAIL)


@device_function
def copy_tail(state: CorrelatorState, stream: SideRow, count: int) -> bool:
    """Copy the last bytes of a stream to one place; return whether they are in one fragment."""
    last = stream.last_fragment
    if last < 0 or state.entries[last].length < count:
        return False
    first = state.entries[last].length - count
    for k in range(count):
        state.frame_head[k] = fragment_byte(state, last, first + k)
    return True


@device_function
def find_header(data: U8, start: int, end: int) -> bool:
    """Return whether bytes like the header of a request begin in a range, as `_CANDIDATE` says."""
    at = start
    while at < end:
        if data[at + 6] != 0:
            at += 4 if data[at + 7] != 0 else 1  # a header has zeros at 4 and 6
        elif is_header(data, at):
            return True
        else:
            at += 1
    return False


@device_function
def is_header(data: U8, at: int) -> bool:
    """Return whether 14 bytes are like the header of a request."""
    if data[at + 4] != 0 or data[at + 5] >= 128 or data[at + 6] != 0 or data[at + 7] >= 32:
        return False
    if data[at] >= 128:
        return False
    if data[at] == 0 and data[at + 1] == 0 and data[at + 2] == 0 and data[at + 3] < 8:
        return False
    length = data[at + 12] << 8 | data[at + 13]
    return length <= 249 or length == 0xFFFF


@device_function
def mark_other(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Treat a connection as another protocol, and skip its bytes."""
    connection.mode = OTHER
    for side in range(2):
        drop_fragments(state, connection.sides[side])
    set_barriers(state, connection, NEVER, NEVER)


@device_function
def end_unrecognised(state: CorrelatorState, connection: ConnectionRow) -> int:
    """End a connection without a request; return FAST_PATH if it has no responses either."""
    end = 0
    for side in range(2):
        if may_hold_response(state, connection.sides[side]):
            return SLOW_PATH
        end += connection.sides[side].base + connection.sides[side].buffered_bytes
    if end > 0:
        mark_other(state, connection)
    return FAST_PATH


@device_function
def may_hold_response(state: CorrelatorState, stream: SideRow) -> bool:
    """Return whether a response may begin with a packet of a stream, as `find_response_run`."""
    left, number = stream.buffered_bytes, stream.first_fragment
    is_start = bool(stream.at_packet_start)
    while left >= 8:
        size = 0
        if is_start:
            for k in range(4):
                size = size << 8 | fragment_byte(state, number, k)
            if MIN_RESPONSE_BYTES <= size <= left - 4 and fragment_byte(state, number, 4) < 128:
                return True
        left -= state.entries[number].length
        number = state.entries[number].next
        is_start = True
    return False
