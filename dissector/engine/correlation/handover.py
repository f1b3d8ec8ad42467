"""
Moves connections between the fast path (state tables) and the slow path (objects).

A connection that needs the slow path is led by a `ConnectionCorrelator`; when it no longer does,
and its state is small, the state goes back to the tables.
"""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlator_rows import (
    KAFKA,
    ON_SLOW_PATH,
    OTHER,
    TLS,
    UNRECOGNISED,
    ConnectionRow,
    Entry,
    SideRow,
)
from dissector.engine.correlation.both_paths.frame_checks import (
    HEADER_BYTES,
    is_plausible_version,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import DUE as DUE_RESPONSE
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    MAX_KEYS,
    MIN_REQUEST_BYTES,
    MIN_RESPONSE_BYTES,
    NOT_DUE,
    is_response_due,
)
from dissector.engine.correlation.objects.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.objects.framer import (
    DamagedFrame,
    Frame,
    Framer,
    PacketEnd,
)
from dissector.engine.correlation.objects.open_requests import OpenRequests
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel.named_rows import RowArray, dtype_of, row_of
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, SASL_HANDSHAKE

MAX_DEMOTED_FRAMES = 512
MAX_DEMOTED_FRAME_BYTES = 1 << 20
MAX_DEMOTED_BYTES = 1 << 16
"""
Connections with more requests in flight and ready frames, or a longer unfinished frame, than this
stay on the slow path; smaller ones change as often as needed.
"""


def new_connection(start_captured: bool, client: int | None = None) -> RowArray:
    """Return the row of a new connection; its client may be known."""
    made: RowArray = np.zeros((), dtype_of(ConnectionRow))
    row = row_of(made, ConnectionRow)
    row.mode, row.client = (UNRECOGNISED, -1) if client is None else (KAFKA, client)
    row.start_captured, row.highest_id = (True, -1) if start_captured else (False, NEVER)
    row.oldest_request = row.newest_request = row.suppressed_ring = -1
    in_sync = start_captured and client is not None
    for side in (0, 1):
        stream = row.sides[side]
        stream.in_sync, stream.at_packet_start = in_sync, True
        stream.entered = 0 if in_sync else NONE
        stream.last_packet, stream.barrier = -1, NEVER
        _empty_lists(stream)
    return made


def _empty_lists(side: SideRow) -> None:
    side.first_fragment = side.last_fragment = -1
    side.fragment_count = 0
    side.first_ready = side.last_ready = side.damaged = -1


def promote(tables: StateTables, number: int, correlator: ConnectionCorrelator) -> None:
    """Move the state of a connection to a new object; the row keeps what outlives the object."""
    tables.set_barriers(number, (NEVER, NEVER))
    row = tables.connection_rows[number]
    if row.mode == UNRECOGNISED:
        correlator.lost_before = row.lost_before
        for stream in correlator.streams:
            _restore_stream(tables, stream, row.sides[stream.side])
        correlator.continue_unrecognised(row.newest_time_ns)
    if row.mode == KAFKA:
        frames = _frames(tables, row.client, row.oldest_request)
        open_requests = OpenRequests()
        open_requests.restore(frames, tables.take_suppressed(number), bool(row.tokens_seen))
        correlator.lost_before = row.lost_before
        for stream in correlator.streams:
            side = row.sides[stream.side]
            _restore_stream(tables, stream, side)
            ready = _frames(tables, stream.side, side.first_ready)
            correlator.ready_frames[stream.side].extend(ready)
        correlator.restore(row.client, row.highest_id, row.newest_time_ns, open_requests)
    row.mode = ON_SLOW_PATH


def _frames(tables: StateTables, side: int, first: int) -> list[Frame]:
    """Return the frames of a list of entries, which are retained until the frames are emitted."""
    return [
        frame_of(tables, side, entry)._replace(entry=number)
        for number, entry in tables.list_from(first)
    ]


def frame_of(tables: StateTables, side: int, entry: Entry) -> Frame:
    """Return the frame of a request in flight, by its entry."""
    data = tables.bytes_at(entry.start, entry.length)
    return Frame(side, data, entry.size, entry.packet, entry.time_ns, entry.offset)


def _restore_stream(tables: StateTables, stream: Framer, side: SideRow) -> None:
    end, buffer, packet_ends = side.base, bytearray(), list[PacketEnd]()
    for _, fragment in tables.list_from(side.first_fragment):
        buffer += tables.bytes_at(fragment.start, fragment.length)
        end += fragment.length
        packet_ends.append(PacketEnd(end, fragment.packet, fragment.time_ns))
    time_ns = 0
    if side.skips_damaged:
        stream.damaged = DamagedFrame(b"", 0, 0, side.bytes_left, is_emitted=True)
    if side.damaged >= 0:
        entry = tables.entry_rows[side.damaged]
        data, time_ns = tables.bytes_at(entry.start, entry.length), entry.time_ns
        stream.damaged = DamagedFrame(data, entry.size, entry.offset, side.bytes_left)
    if not packet_ends and side.last_packet >= 0:
        packet_ends.append(PacketEnd(end, side.last_packet, time_ns))
    tables.free_list(side.first_fragment)
    tables.free_list(side.damaged)
    stream.restore(side.base, buffer, packet_ends, bool(side.at_packet_start))
    stream.in_sync = bool(side.in_sync)
    stream.scanned = side.base if side.in_sync else side.scanned
    stream.skipped, stream.missing = side.skipped, side.missing
    stream.tried_bytes, stream.checked_bytes = side.tried_bytes, side.checked_bytes
    stream.entered = None if side.entered == NONE else side.entered


def demote(tables: StateTables, number: int, correlator: ConnectionCorrelator) -> bool:
    """Move the state of an object back to the tables if it fits them; return whether it did."""
    row = tables.connection_rows[number]
    if correlator.speaks in ("tls", "other"):
        row.mode = TLS if correlator.speaks == "tls" else OTHER
        row.ready_count = 0
        for stream in correlator.streams:
            side = row.sides[stream.side]
            _empty_lists(side)
            _store_stream(stream, side)
        return True
    if correlator.speaks == "":
        held = sum(len(stream.buffer) for stream in correlator.streams)
        if correlator.needs_slow_path or held > MAX_DEMOTED_BYTES:
            return False
        row.mode, row.newest_time_ns = UNRECOGNISED, correlator.now_ns
        row.lost_before = correlator.lost_before
        for stream in correlator.streams:
            side, fragments = row.sides[stream.side], _fragments(tables, stream)
            _empty_lists(side)
            _store_stream(stream, side)
            side.fragment_count = len(fragments)
            side.first_fragment, side.last_fragment = tables.link_entries(fragments)
        tables.set_barriers(number, correlator.barriers)
        return True
    if correlator.client is None or not _fits_tables(correlator):
        return False
    requests = correlator.open_requests
    row.mode, row.client = KAFKA, correlator.client
    row.tokens_seen |= requests.tokens_seen
    row.highest_id, row.newest_time_ns = correlator.highest_id, correlator.now_ns
    in_flight = [_entry_of(tables, each.frame, is_request=True) for each in requests.oldest_first()]
    row.oldest_request, row.newest_request = tables.link_entries(in_flight)
    row.open_count, row.open_bytes = len(in_flight), requests.total_bytes
    row.ready_count = sum(map(len, correlator.ready_frames))
    row.lost_before = correlator.lost_before
    row.suppressed_ring, row.suppressed_count = -1, 0
    for stream in correlator.streams:
        side, is_request = row.sides[stream.side], stream.side == correlator.client
        fragments = _fragments(tables, stream)
        ready = correlator.ready_frames[stream.side]
        frames = [_entry_of(tables, frame, is_request) for frame in ready]
        _store_stream(stream, side)
        side.fragment_count = len(fragments)
        side.first_fragment, side.last_fragment = tables.link_entries(fragments)
        side.first_ready, side.last_ready = tables.link_entries(frames)
        side.damaged, side.barrier = -1, NEVER
        if stream.damaged and not stream.damaged.is_emitted:
            side.damaged = _entry_of(tables, stream.damaged_frame(), is_request)
            tables.entry_rows[side.damaged].packet = NEVER
    tables.put_suppressed(number, requests.suppressed)
    tables.set_barriers(number, correlator.barriers)
    return True


def _entry_of(tables: StateTables, frame: Frame, is_request: bool) -> int:
    """Return the entry of a frame, a new one if needed."""
    if frame.entry >= 0:
        return frame.entry
    data, number = frame.data, tables.new_entry()
    entry = tables.entry_rows[number]
    entry.is_frame, entry.start, entry.length = True, tables.carry(data), len(data)
    entry.size, entry.packet, entry.time_ns, entry.offset = frame[2:6]
    entry.due, at = DUE_RESPONSE, 0
    if is_request:
        entry.due, at = DUE_RESPONSE if is_response_due(data) else NOT_DUE, 4
        entry.api_key = int.from_bytes(data[:2], "big", signed=True)
        entry.api_version = int.from_bytes(data[2:4], "big", signed=True)
    entry.correlation_id = int.from_bytes(data[at : at + 4], "big", signed=True)
    return number


def _fragments(tables: StateTables, stream: Framer) -> list[int]:
    """Create entries for the buffer of a stream, packet by packet."""
    base, numbers = stream.base, list[int]()
    if not stream.buffer:
        return numbers
    address = tables.carry(stream.buffer) - base
    for packet_end in stream.packet_ends:
        number = tables.new_entry()
        entry = tables.entry_rows[number]
        entry.is_frame, entry.start, entry.length = False, address + base, packet_end.end - base
        entry.packet, entry.time_ns = packet_end.packet, packet_end.time_ns
        numbers.append(number)
        base = packet_end.end
    return numbers


def _store_stream(stream: Framer, side: SideRow) -> None:
    """Store all of a stream but its lists."""
    buffer = stream.buffer
    side.base, side.buffered_bytes = stream.base, len(buffer)
    side.in_sync, side.at_packet_start = stream.in_sync, stream.at_packet_start
    side.skips_damaged = stream.damaged is not None
    side.bytes_left = stream.damaged.bytes_left if stream.damaged else 0
    has_size = stream.in_sync and not stream.damaged and len(buffer) >= 4
    side.frame_size = int.from_bytes(buffer[:4], "big") if has_size else 0
    side.scanned = stream.scanned
    side.last_packet = -1 if stream.last_packet is None else stream.last_packet
    side.entered = NONE if stream.entered is None else stream.entered
    side.skipped, side.missing = stream.skipped, stream.missing
    side.tried_bytes, side.checked_bytes = stream.tried_bytes, stream.checked_bytes


def _fits_tables(correlator: ConnectionCorrelator) -> bool:
    """Return whether a connection fits the fast path."""
    if correlator.needs_slow_path:
        return False
    for stream in correlator.streams:
        if not _stream_fits_tables(stream, stream.side == correlator.client):
            return False
    requests = correlator.open_requests.oldest_first()
    ready = (frame for frames in correlator.ready_frames for frame in frames)
    frames = [*(request.frame for request in requests), *ready]
    return (
        len(frames) <= MAX_DEMOTED_FRAMES
        and sum(len(frame.data) for frame in frames) <= MAX_DEMOTED_FRAME_BYTES
        and not any(frame.token or len(frame.data) < 8 for frame in frames)
    )


def _stream_fits_tables(stream: Framer, is_request: bool) -> bool:
    buffer = stream.buffer
    if stream.damaged_frames or len(buffer) > MAX_DEMOTED_BYTES:
        return False
    if stream.damaged and not stream.damaged.is_emitted:
        return len(stream.damaged.data) >= HEADER_BYTES
    if not stream.in_sync or len(buffer) < 4:
        return stream.in_sync or not buffer
    size = int.from_bytes(buffer[:4], "big", signed=True)
    if not (MIN_REQUEST_BYTES if is_request else MIN_RESPONSE_BYTES) <= size <= stream.limit:
        return False
    if not is_request or len(buffer) < HEADER_BYTES:
        return True
    key, version, client_id = (
        int.from_bytes(buffer[at : at + 2], "big", signed=True) for at in (4, 6, 12)
    )
    needs_slow_path = key >= MAX_KEYS or (
        version == 0 and key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN)
    )
    return (
        is_plausible_version(key, version) and not needs_slow_path and -1 <= client_id <= size - 10
    )
