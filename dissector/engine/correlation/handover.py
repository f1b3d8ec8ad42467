"""
Moves connections between the fast path (state tables) and the slow path (objects).

A connection that needs the slow path is led by a `ConnectionCorrelator`; when it no longer does,
and its state is small, the state goes back to the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.capture.columns import NEVER
from dissector.engine.correlation.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.frame_checks import HEADER_BYTES, is_plausible_version
from dissector.engine.correlation.frame_checks_kernel import (
    MAX_KEYS,
    MIN_REQUEST_BYTES,
    MIN_RESPONSE_BYTES,
)
from dissector.engine.correlation.framer import DamagedFrame, Frame, Framer, PacketEnd
from dissector.engine.correlation.open_requests import OpenRequests
from dissector.engine.correlation.state_columns import (
    AT_PACKET_START,
    BASE,
    CARRY_OVER_BASE,
    CHECKED_BYTES,
    CLIENT,
    CONNECTION_FLAGS,
    CONNECTION_WIDTH,
    CORRELATION_ID,
    ENTERED,
    FIRST_FRAGMENT,
    FRAGMENT_PACKET,
    FRAGMENT_TIME,
    HIGHEST_ID,
    IN_SYNC,
    KAFKA,
    LAST_FRAGMENT,
    LAST_PACKET,
    LENGTH,
    MISSING,
    MODE,
    NEWEST_REQUEST,
    NEWEST_SUPPRESSED,
    NEWEST_TIME,
    NEXT,
    OFFSET,
    OLDEST_REQUEST,
    ON_SLOW_PATH,
    OTHER,
    PACKET,
    PENDING,
    SIDE_FLAGS,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPED,
    SKIPPING_DAMAGED,
    START,
    START_CAPTURED,
    TIME,
    TLS,
    TOKENS_SEEN,
    TRIED_BYTES,
    UNRECOGNISED,
)
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, SASL_HANDSHAKE

MAX_DEMOTED_REQUESTS = 32
MAX_DEMOTED_BYTES = 1 << 14
"""
Connections with more open state than this stay on the slow path; smaller ones change as often as
needed.
"""


def new_connection(start_captured: bool, client: int | None = None) -> Ints:
    """Return the row of a new connection; its client may be known."""
    row = np.zeros(CONNECTION_WIDTH, np.int64)
    row[[MODE, CLIENT]] = (UNRECOGNISED, -1) if client is None else (KAFKA, client)
    row[[CONNECTION_FLAGS, HIGHEST_ID]] = (START_CAPTURED, -1) if start_captured else (0, NEVER)
    row[[OLDEST_REQUEST, NEWEST_REQUEST, NEWEST_SUPPRESSED]] = -1
    in_sync = start_captured and client is not None
    sides = row[SIDES:].reshape(2, SIDE_WIDTH)
    sides[:, [FIRST_FRAGMENT, LAST_FRAGMENT, LAST_PACKET]] = -1
    sides[:, SIDE_FLAGS] = IN_SYNC | AT_PACKET_START if in_sync else AT_PACKET_START
    sides[:, ENTERED] = 0 if in_sync else NONE
    return row


def promote(tables: StateTables, number: int, correlator: ConnectionCorrelator) -> None:
    """Move the state of a connection to a new object; the row keeps what outlives the object."""
    row = tables.connections[number].tolist()
    if row[MODE] == KAFKA:
        client = row[CLIENT]
        frames = [frame_of(tables, client, entry) for entry in tables.pop_list(row[OLDEST_REQUEST])]
        open_requests = OpenRequests()
        open_requests.restore(
            frames, _take_suppressed(tables, row), bool(row[CONNECTION_FLAGS] & TOKENS_SEEN)
        )
        correlator.restore(client, row[HIGHEST_ID], row[NEWEST_TIME], open_requests)
        for stream in correlator.streams:
            side = row[SIDES + stream.side * SIDE_WIDTH :][:SIDE_WIDTH]
            _restore_stream(tables, stream, side)
    tables.connections[number, MODE] = ON_SLOW_PATH


def frame_of(tables: StateTables, side: int, entry: Sequence[int]) -> Frame:
    """Return the frame of a request in flight, by its entry."""
    data = tables.bytes_at(entry[START], entry[LENGTH])
    return Frame(side, data, entry[SIZE], entry[PACKET], entry[TIME], entry[OFFSET])


def _take_suppressed(tables: StateTables, row: Sequence[int]) -> list[int]:
    """Return the suppressed ids, oldest first; free their ring."""
    ids, newest = list[int](), row[NEWEST_SUPPRESSED]
    if newest < 0:
        return ids
    first = int(tables.entries[newest, NEXT])
    tables.entries[newest, NEXT] = -1
    return [entry[CORRELATION_ID] for entry in tables.pop_list(first)]


def _restore_stream(tables: StateTables, stream: Framer, side: Sequence[int]) -> None:
    end, buffer, packet_ends = side[BASE], bytearray(), list[PacketEnd]()
    for fragment in tables.pop_list(side[FIRST_FRAGMENT]):
        buffer += tables.bytes_at(fragment[START], fragment[LENGTH])
        end += fragment[LENGTH]
        packet_ends.append(PacketEnd(end, fragment[FRAGMENT_PACKET], fragment[FRAGMENT_TIME]))
    if not packet_ends and side[LAST_PACKET] >= 0:
        packet_ends.append(PacketEnd(end, side[LAST_PACKET], 0))
    stream.restore(side[BASE], buffer, packet_ends, bool(side[SIDE_FLAGS] & AT_PACKET_START))
    stream.in_sync = bool(side[SIDE_FLAGS] & IN_SYNC)
    if side[SIDE_FLAGS] & SKIPPING_DAMAGED:
        stream.damaged = DamagedFrame(b"", 0, 0, side[PENDING], is_emitted=True)
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
            value for stream in correlator.streams for value in _side(stream, (-1, -1), 0)
        ]
        return True
    if correlator.speaks == "":
        if correlator.needs_slow_path or any(stream.end for stream in correlator.streams):
            return False
        row[MODE], row[NEWEST_TIME] = UNRECOGNISED, correlator.now_ns
        return True
    if correlator.client is None or not _fits_tables(correlator):
        return False
    requests = correlator.open_requests
    in_flight = [
        tables.new_entry(
            tables.carry(request.frame.data),
            len(request.frame.data),
            *request.frame[2:6],
            request.api_key,
            request.api_version,
            request.correlation_id,
        )
        for request in requests.oldest_first()
    ]
    suppressed = [
        tables.new_entry(CARRY_OVER_BASE, 0, 0, NEVER, 0, 0, 0, 0, correlation_id)
        for correlation_id in requests.suppressed_ids()
    ]
    oldest, newest = tables.link_entries(suppressed)
    if suppressed:
        tables.entries[newest, NEXT] = oldest
    flags = int(row[CONNECTION_FLAGS]) | (TOKENS_SEEN if requests.tokens_seen else 0)
    values = [
        KAFKA,
        correlator.client,
        flags,
        correlator.highest_id,
        correlator.now_ns,
        *tables.link_entries(in_flight),
    ]
    values += [len(in_flight), requests.total_bytes, newest, len(suppressed)]
    for stream in correlator.streams:
        fragments = _fragments(tables, stream)
        values += _side(stream, tables.link_entries(fragments), len(fragments))
    row[:] = values
    return True


def _fragments(tables: StateTables, stream: Framer) -> list[int]:
    """Create entries for the buffer of a stream, packet by packet."""
    base, entries = stream.base, list[int]()
    if not stream.buffer:
        return entries
    address = tables.carry(stream.buffer) - base
    for packet_end in stream.packet_ends:
        span = address + base, packet_end.end - base
        entries.append(
            tables.new_entry(*span, 0, NEVER, 0, 0, packet_end.packet, packet_end.time_ns, 0)
        )
        base = packet_end.end
    return entries


def _side(stream: Framer, ends: tuple[int, int], fragment_count: int) -> list[int]:
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
        *ends,
        fragment_count,
        -1 if stream.last_packet is None else stream.last_packet,
        NONE if stream.entered is None else stream.entered,
        stream.skipped,
        stream.missing,
        stream.tried_bytes,
        stream.checked_bytes,
    ]


def _fits_tables(correlator: ConnectionCorrelator) -> bool:
    """Return whether a connection fits the fast path."""
    requests = correlator.open_requests
    if (
        correlator.needs_slow_path
        or len(requests) > MAX_DEMOTED_REQUESTS
        or requests.total_bytes > MAX_DEMOTED_BYTES
    ):
        return False
    if any(
        request.frame.token or len(request.frame.data) < 8 for request in requests.oldest_first()
    ):
        return False
    return all(
        _stream_fits_tables(stream, stream.side == correlator.client)
        for stream in correlator.streams
    )


def _stream_fits_tables(stream: Framer, is_request: bool) -> bool:
    buffer = stream.buffer
    if (
        stream.damaged_frames
        or len(buffer) > MAX_DEMOTED_BYTES
        or (stream.damaged and not stream.damaged.is_emitted)
    ):
        return False
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
