"""
Moves connections between the fast path (state tables) and the slow path (objects).

A connection that needs the slow path is led by a `ConnectionCorrelator`; when it no longer does,
and its state is small, the state goes back to the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.capture.columns import NEVER
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
from dissector.engine.correlation.both_paths.state_columns import (
    AT_PACKET_START,
    BARRIER,
    BASE,
    CHECKED_BYTES,
    CLIENT,
    CONNECTION_FLAGS,
    CONNECTION_WIDTH,
    DAMAGED,
    ENTERED,
    FIRST_FRAGMENT,
    FIRST_READY,
    FRAGMENT_PACKET,
    FRAGMENT_TIME,
    HIGHEST_ID,
    IN_SYNC,
    KAFKA,
    LAST_FRAGMENT,
    LAST_PACKET,
    LAST_READY,
    LENGTH,
    LOST_BEFORE,
    MISSING,
    MODE,
    NEWEST_REQUEST,
    NEWEST_TIME,
    OFFSET,
    OLDEST_REQUEST,
    ON_SLOW_PATH,
    OTHER,
    PACKET,
    PENDING,
    READY_COUNT,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPED,
    SKIPPING_DAMAGED,
    START,
    START_CAPTURED,
    SUPPRESSED_RING,
    TIME,
    TLS,
    TOKENS_SEEN,
    TRIED_BYTES,
    UNRECOGNISED,
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
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, SASL_HANDSHAKE

MAX_DEMOTED_FRAMES = 512
MAX_DEMOTED_FRAME_BYTES = 1 << 20
MAX_DEMOTED_BYTES = 1 << 16
"""
Connections with more requests in flight and ready frames, or a longer unfinished frame, than this
stay on the slow path; smaller ones change as often as needed.
"""


def new_connection(start_captured: bool, client: int | None = None) -> Ints:
    """Return the row of a new connection; its client may be known."""
    row = np.zeros(CONNECTION_WIDTH, np.int64)
    row[[MODE, CLIENT]] = (UNRECOGNISED, -1) if client is None else (KAFKA, client)
    row[[CONNECTION_FLAGS, HIGHEST_ID]] = (START_CAPTURED, -1) if start_captured else (0, NEVER)
    row[[OLDEST_REQUEST, NEWEST_REQUEST, SUPPRESSED_RING]] = -1
    in_sync = start_captured and client is not None
    sides = row[SIDES:].reshape(2, SIDE_WIDTH)
    sides[:, [FIRST_FRAGMENT, LAST_FRAGMENT, LAST_PACKET]] = -1
    sides[:, [FIRST_READY, LAST_READY, DAMAGED]], sides[:, BARRIER] = -1, NEVER
    sides[:, SIDE_FLAGS] = IN_SYNC | AT_PACKET_START if in_sync else AT_PACKET_START
    sides[:, ENTERED] = 0 if in_sync else NONE
    return row


def promote(tables: StateTables, number: int, correlator: ConnectionCorrelator) -> None:
    """Move the state of a connection to a new object; the row keeps what outlives the object."""
    tables.set_barriers(number, (NEVER, NEVER))
    row = tables.connections[number].tolist()
    if row[MODE] == KAFKA:
        client = row[CLIENT]
        frames = _frames(tables, client, row[OLDEST_REQUEST])
        open_requests = OpenRequests()
        open_requests.restore(
            frames, tables.take_suppressed(number), bool(row[CONNECTION_FLAGS] & TOKENS_SEEN)
        )
        correlator.lost_before = row[LOST_BEFORE]
        correlator.restore(client, row[HIGHEST_ID], row[NEWEST_TIME], open_requests)
        for stream in correlator.streams:
            side = row[SIDES + stream.side * SIDE_WIDTH :][:SIDE_WIDTH]
            _restore_stream(tables, stream, side)
            ready = _frames(tables, stream.side, side[FIRST_READY])
            correlator.ready_frames[stream.side].extend(ready)
    tables.connections[number, MODE] = ON_SLOW_PATH


def _frames(tables: StateTables, side: int, first: int) -> list[Frame]:
    """Return the frames of a list of entries, which are retained until the frames are emitted."""
    return [
        frame_of(tables, side, entry)._replace(entry=number)
        for number, entry in tables.list_from(first)
    ]


def frame_of(tables: StateTables, side: int, entry: Sequence[int]) -> Frame:
    """Return the frame of a request in flight, by its entry."""
    data = tables.bytes_at(entry[START], entry[LENGTH])
    return Frame(side, data, entry[SIZE], entry[PACKET], entry[TIME], entry[OFFSET])


def _restore_stream(tables: StateTables, stream: Framer, side: Sequence[int]) -> None:
    end, buffer, packet_ends = side[BASE], bytearray(), list[PacketEnd]()
    for fragment in tables.pop_list(side[FIRST_FRAGMENT]):
        buffer += tables.bytes_at(fragment[START], fragment[LENGTH])
        end += fragment[LENGTH]
        packet_ends.append(PacketEnd(end, fragment[FRAGMENT_PACKET], fragment[FRAGMENT_TIME]))
    damaged = next(tables.pop_list(side[DAMAGED]), None)
    if not packet_ends and side[LAST_PACKET] >= 0:
        packet_ends.append(
            PacketEnd(end, side[LAST_PACKET], 0 if damaged is None else damaged[TIME])
        )
    stream.restore(side[BASE], buffer, packet_ends, bool(side[SIDE_FLAGS] & AT_PACKET_START))
    stream.in_sync = bool(side[SIDE_FLAGS] & IN_SYNC)
    if side[SIDE_FLAGS] & SKIPPING_DAMAGED:
        stream.damaged = DamagedFrame(b"", 0, 0, side[PENDING], is_emitted=True)
    if damaged is not None:
        data = tables.bytes_at(damaged[START], damaged[LENGTH])
        stream.damaged = DamagedFrame(data, damaged[SIZE], damaged[OFFSET], side[PENDING])
    stream.scanned = side[BASE] if stream.in_sync else side[PENDING]
    stream.skipped, stream.missing = side[SKIPPED], side[MISSING]
    stream.tried_bytes, stream.checked_bytes = side[TRIED_BYTES], side[CHECKED_BYTES]
    stream.entered = None if side[ENTERED] == NONE else side[ENTERED]


def demote(tables: StateTables, number: int, correlator: ConnectionCorrelator) -> bool:
    """Move the state of an object back to the tables if it fits them; return whether it did."""
    row = tables.connections[number]
    if correlator.speaks in ("tls", "other"):
        row[MODE] = TLS if correlator.speaks == "tls" else OTHER
        row[SIDES:] = [
            value
            for stream in correlator.streams
            for value in _side(stream, (-1, -1), 0, (-1, -1), -1)
        ]
        row[READY_COUNT] = 0
        return True
    if correlator.speaks == "":
        if correlator.needs_slow_path or any(stream.end for stream in correlator.streams):
            return False
        row[MODE], row[NEWEST_TIME] = UNRECOGNISED, correlator.now_ns
        tables.set_barriers(number, correlator.barriers)
        return True
    if correlator.client is None or not _fits_tables(correlator):
        return False
    requests = correlator.open_requests
    in_flight = [
        _frame_entry(tables, request.frame, is_request=True) for request in requests.oldest_first()
    ]
    flags = int(row[CONNECTION_FLAGS]) | (TOKENS_SEEN if requests.tokens_seen else 0)
    values = [
        KAFKA,
        correlator.client,
        flags,
        correlator.highest_id,
        correlator.now_ns,
        *tables.link_entries(in_flight),
    ]
    ready = [
        [_frame_entry(tables, frame, frame.side == correlator.client) for frame in frames]
        for frames in correlator.ready_frames
    ]
    values += [len(in_flight), requests.total_bytes, -1, 0, sum(map(len, ready))]
    values.append(correlator.lost_before)
    for stream in correlator.streams:
        fragments, damaged = _fragments(tables, stream), -1
        if stream.damaged and not stream.damaged.is_emitted:
            frame = stream.damaged_frame()
            damaged = _frame_entry(tables, frame, stream.side == correlator.client)
            tables.entries[damaged, PACKET] = NEVER
        values += _side(
            stream,
            tables.link_entries(fragments),
            len(fragments),
            tables.link_entries(ready[stream.side]),
            damaged,
        )
    tables.connections[number] = values
    tables.put_suppressed(number, requests.suppressed)
    tables.set_barriers(number, correlator.barriers)
    return True


def _frame_entry(tables: StateTables, frame: Frame, is_request: bool) -> int:
    """Return the entry of a frame, a new one if needed."""
    if frame.entry >= 0:
        return frame.entry
    data = frame.data
    header = 0, 0, int.from_bytes(data[:4], "big", signed=True), DUE_RESPONSE
    if is_request:
        key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
        due = DUE_RESPONSE if is_response_due(data) else NOT_DUE
        header = key, version, int.from_bytes(data[4:8], "big", signed=True), due
    return tables.new_entry(tables.carry(data), len(data), *frame[2:6], *header)


def _fragments(tables: StateTables, stream: Framer) -> list[int]:
    """Create entries for the buffer of a stream, packet by packet."""
    base, entries = stream.base, list[int]()
    if not stream.buffer:
        return entries
    address = tables.carry(stream.buffer) - base
    for packet_end in stream.packet_ends:
        span = address + base, packet_end.end - base
        entries.append(
            tables.new_entry(*span, 0, NEVER, 0, 0, packet_end.packet, packet_end.time_ns, 0, 0)
        )
        base = packet_end.end
    return entries


def _side(
    stream: Framer,
    fragments: tuple[int, int],
    fragment_count: int,
    ready: tuple[int, int],
    damaged: int,
) -> list[int]:
    """Return the columns of a side."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[:4], "big") if len(buffer) >= 4 else 0
    return [
        stream.base,
        (IN_SYNC if stream.in_sync else 0)
        | (AT_PACKET_START if stream.at_packet_start else 0)
        | (SKIPPING_DAMAGED if stream.damaged else 0),
        len(buffer),
        stream.damaged.bytes_left if stream.damaged else size if stream.in_sync else stream.scanned,
        *fragments,
        fragment_count,
        -1 if stream.last_packet is None else stream.last_packet,
        NONE if stream.entered is None else stream.entered,
        stream.skipped,
        stream.missing,
        stream.tried_bytes,
        stream.checked_bytes,
        *ready,
        damaged,
        NEVER,
    ]


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
