"""
Conversations change hands: from the tables that the loop leads to objects, and back.

What is odd about a connection is left to a `ConnectionCorrelator`; when nothing is odd any more,
and little is to be carried, its state goes back to the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.capture.columns import NEVER
from dissector.engine.correlation.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.frame_checks import HEADER_BYTES, is_plausible_version
from dissector.engine.correlation.frame_checks_kernel import KEYS, LEAST_REQUEST, LEAST_RESPONSE
from dissector.engine.correlation.framer import DamagedFrame, Frame, Framer, PacketEnd
from dissector.engine.correlation.open_requests import OpenRequests
from dissector.engine.correlation.state_columns import (
    ASKED,
    BASE,
    CLIENT,
    CUT,
    ENTERED,
    FAR,
    FIRST,
    FLAGS,
    FRESH,
    HEAD,
    ID,
    KAFKA,
    LAST,
    LAST_PACKET,
    LENGTH,
    MARKS,
    MISSING,
    MODE,
    NEXT,
    NOW,
    OBJECT,
    OFFSET,
    OTHER,
    PACKET,
    PIECE_PACKET,
    PIECE_TIME,
    REST,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    SKIPPED,
    START,
    STARTS,
    STEP,
    TAIL,
    TIME,
    TLS,
    TOKENS_SEEN,
    TRIED,
    WAIVED,
    WEIGHED,
    WHOLE,
    WIDTH,
)
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, SASL_HANDSHAKE

MAX_DEMOTED_REQUESTS = 32
MAX_DEMOTED_BYTES = 1 << 14
"""How much a conversation may hold to be given back; both hand it over as often as need be."""


def new_connection(whole: bool, client: int | None = None) -> Ints:
    """Return the row of a connection of which nothing is known, or only who is the client."""
    row = np.zeros(WIDTH, np.int64)
    row[[MODE, CLIENT]] = (FRESH, -1) if client is None else (KAFKA, client)
    row[[MARKS, ASKED]] = (WHOLE, -1) if whole else (0, NEVER)
    row[[FIRST, LAST, WAIVED]] = -1
    sure = whole and client is not None
    sides = row[SIDES:].reshape(2, SIDE_WIDTH)
    sides[:, [HEAD, TAIL, LAST_PACKET]] = -1
    sides[:, FLAGS] = STEP | STARTS if sure else STARTS
    sides[:, ENTERED] = 0 if sure else NONE
    return row


def promote(tables: StateTables, number: int, talk: ConnectionCorrelator) -> None:
    """Give the state of a talk to a new object; its row is left with what outlives it."""
    row = tables.connections[number].tolist()
    if row[MODE] == KAFKA:
        client = row[CLIENT]
        frames = [frame_of(tables, client, node) for node in tables.pop_list(row[FIRST])]
        open_requests = OpenRequests()
        open_requests.restore(frames, _take_waived(tables, row), bool(row[MARKS] & TOKENS_SEEN))
        talk.restore(client, row[ASKED], row[NOW], open_requests)
        for stream in talk.streams:
            side = row[SIDES + stream.side * SIDE_WIDTH :][:SIDE_WIDTH]
            _resume_stream(tables, stream, side)
    tables.connections[number, MODE] = OBJECT


def frame_of(tables: StateTables, side: int, node: Sequence[int]) -> Frame:
    """Return the frame of a request that waits, by its node."""
    data = tables.bytes_at(node[START], node[LENGTH])
    return Frame(side, data, node[SIZE], node[PACKET], node[TIME], node[OFFSET])


def _take_waived(tables: StateTables, row: Sequence[int]) -> list[int]:
    """Return the ids of requests that were due no response, oldest first; free their ring."""
    ids, node = list[int](), row[WAIVED]
    if node < 0:
        return ids
    first = int(tables.entries[node, NEXT])
    tables.entries[node, NEXT] = -1
    return [each[ID] for each in tables.pop_list(first)]


def _resume_stream(tables: StateTables, stream: Framer, side: Sequence[int]) -> None:
    end, buffer, marks = side[BASE], bytearray(), list[PacketEnd]()
    for piece in tables.pop_list(side[HEAD]):
        buffer += tables.bytes_at(piece[START], piece[LENGTH])
        end += piece[LENGTH]
        marks.append(PacketEnd(end, piece[PIECE_PACKET], piece[PIECE_TIME]))
    if not marks and side[LAST_PACKET] >= 0:
        marks.append(PacketEnd(end, side[LAST_PACKET], 0))
    stream.restore(side[BASE], buffer, marks, bool(side[FLAGS] & STARTS))
    stream.in_sync = bool(side[FLAGS] & STEP)
    if side[FLAGS] & CUT:
        stream.damaged = DamagedFrame(b"", 0, 0, side[REST], is_emitted=True)
    stream.scanned = side[BASE] if stream.in_sync else side[REST]
    stream.skipped, stream.missing = side[SKIPPED], side[MISSING]
    stream.tried_bytes, stream.checked_bytes = side[TRIED], side[WEIGHED]
    stream.entered = None if side[ENTERED] == NONE else side[ENTERED]


def demote(tables: StateTables, number: int, talk: ConnectionCorrelator) -> bool:
    """Take the state of an object back, if it is one for the tables; tell whether it was."""
    row = tables.connections[number]
    if talk.speaks in ("tls", "other"):
        row[MODE] = TLS if talk.speaks == "tls" else OTHER
        row[SIDES:] = [value for stream in talk.streams for value in _side(stream, (-1, -1), 0)]
        return True
    if talk.speaks == "":
        if talk.needs_slow_path or any(stream.end for stream in talk.streams):
            return False
        row[MODE], row[NOW] = FRESH, talk.now_ns
        return True
    if talk.client is None or not _is_plain(talk):
        return False
    requests = talk.open_requests
    waiting = [
        tables.new_entry(
            tables.carry(each.frame.data),
            len(each.frame.data),
            *each.frame[2:6],
            each.api_key,
            each.api_version,
            each.correlation_id,
        )
        for each in requests.oldest_first()
    ]
    waived = [
        tables.new_entry(FAR, 0, 0, NEVER, 0, 0, 0, 0, each) for each in requests.suppressed_ids()
    ]
    oldest, newest = tables.link_entries(waived)
    if waived:
        tables.entries[newest, NEXT] = oldest
    marks = int(row[MARKS]) | (TOKENS_SEEN if requests.tokens_seen else 0)
    values = [
        KAFKA,
        talk.client,
        marks,
        talk.highest_id,
        talk.now_ns,
        *tables.link_entries(waiting),
    ]
    values += [len(waiting), requests.total_bytes, newest, len(waived)]
    for stream in talk.streams:
        pieces = _pieces(tables, stream)
        values += _side(stream, tables.link_entries(pieces), len(pieces))
    row[:] = values
    return True


def _pieces(tables: StateTables, stream: Framer) -> list[int]:
    """Make nodes of what is in a stream's buffer, packet by packet."""
    base, nodes = stream.base, list[int]()
    if not stream.buffer:
        return nodes
    address = tables.carry(stream.buffer) - base
    for mark in stream.packet_ends:
        place = address + base, mark.end - base
        nodes.append(tables.new_entry(*place, 0, NEVER, 0, 0, mark.packet, mark.time_ns, 0))
        base = mark.end
    return nodes


def _side(stream: Framer, ends: tuple[int, int], pieces: int) -> list[int]:
    """Return the columns of a side."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[:4], "big") if len(buffer) >= 4 else 0
    return [
        stream.base,
        (STEP if stream.in_sync else 0)
        | (STARTS if stream.at_packet_start else 0)
        | (CUT if stream.damaged else 0),
        len(buffer),
        stream.damaged.bytes_left if stream.damaged else size if stream.in_sync else stream.scanned,
        *ends,
        pieces,
        -1 if stream.last_packet is None else stream.last_packet,
        NONE if stream.entered is None else stream.entered,
        stream.skipped,
        stream.missing,
        stream.tried_bytes,
        stream.checked_bytes,
    ]


def _is_plain(talk: ConnectionCorrelator) -> bool:
    """Tell whether the loop can lead a conversation."""
    waits = talk.open_requests
    if (
        talk.needs_slow_path
        or len(waits) > MAX_DEMOTED_REQUESTS
        or waits.total_bytes > MAX_DEMOTED_BYTES
    ):
        return False
    if any(each.frame.token or len(each.frame.data) < 8 for each in waits.oldest_first()):
        return False
    return all(_is_plain_stream(stream, stream.side == talk.client) for stream in talk.streams)


def _is_plain_stream(stream: Framer, asks: bool) -> bool:
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
    if not (LEAST_REQUEST if asks else LEAST_RESPONSE) <= size <= stream.limit:
        return False
    if not asks or len(buffer) < HEADER_BYTES:
        return True
    key, version, client_id = (
        int.from_bytes(buffer[at : at + 2], "big", signed=True) for at in (4, 6, 12)
    )
    odd = key >= KEYS or (version == 0 and key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN))
    return is_plausible_version(key, version) and not odd and -1 <= client_id <= size - 10
