"""
Conversations change hands: from the tables that the loop leads to objects, and back.

What is odd about a connection is left to a `Conversation`; when nothing is odd any more, and little
is to be carried, its state goes back to the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.capture.columns import NEVER
from dissector.engine.correlation.connection_correlator import Conversation
from dissector.engine.correlation.frame_checks import HEADER_BYTES, known_version
from dissector.engine.correlation.frame_checks_kernel import KEYS, LEAST_REQUEST, LEAST_RESPONSE
from dissector.engine.correlation.framer import Cut, Frame, Mark, Stream
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
from dissector.engine.correlation.state_tables import Tables
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, SASL_HANDSHAKE

FEW_OPEN = 32
FEW_BYTES = 1 << 14
"""How much a conversation may hold to be given back; both hand it over as often as need be."""


def new_talk(whole: bool, client: int | None = None) -> Ints:
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


def resume(tables: Tables, number: int, talk: Conversation) -> None:
    """Give the state of a talk to a new object; its row is left with what outlives it."""
    row = tables.talks[number].tolist()
    if row[MODE] == KAFKA:
        client = row[CLIENT]
        frames = [frame_of(tables, client, node) for node in tables.chain(row[FIRST])]
        open_requests = OpenRequests()
        open_requests.resume(frames, _take_waived(tables, row), bool(row[MARKS] & TOKENS_SEEN))
        talk.resume(client, row[ASKED], row[NOW], open_requests)
        for stream in talk.streams:
            side = row[SIDES + stream.side * SIDE_WIDTH :][:SIDE_WIDTH]
            _resume_stream(tables, stream, side)
    tables.talks[number, MODE] = OBJECT


def frame_of(tables: Tables, side: int, node: Sequence[int]) -> Frame:
    """Return the frame of a request that waits, by its node."""
    data = tables.bytes_at(node[START], node[LENGTH])
    return Frame(side, data, node[SIZE], node[PACKET], node[TIME], node[OFFSET])


def _take_waived(tables: Tables, row: Sequence[int]) -> list[int]:
    """Return the ids of requests that were due no response, oldest first; free their ring."""
    ids, node = list[int](), row[WAIVED]
    if node < 0:
        return ids
    first = int(tables.nodes[node, NEXT])
    tables.nodes[node, NEXT] = -1
    return [each[ID] for each in tables.chain(first)]


def _resume_stream(tables: Tables, stream: Stream, side: Sequence[int]) -> None:
    end, buffer, marks = side[BASE], bytearray(), list[Mark]()
    for piece in tables.chain(side[HEAD]):
        buffer += tables.bytes_at(piece[START], piece[LENGTH])
        end += piece[LENGTH]
        marks.append(Mark(end, piece[PIECE_PACKET], piece[PIECE_TIME]))
    if not marks and side[LAST_PACKET] >= 0:
        marks.append(Mark(end, side[LAST_PACKET], 0))
    stream.resume(side[BASE], buffer, marks, bool(side[FLAGS] & STARTS))
    stream.in_step = bool(side[FLAGS] & STEP)
    if side[FLAGS] & CUT:
        stream.cut = Cut(b"", 0, 0, side[REST], told=True)
    stream.scanned = side[BASE] if stream.in_step else side[REST]
    stream.skipped, stream.missing = side[SKIPPED], side[MISSING]
    stream.tried, stream.weighed = side[TRIED], side[WEIGHED]
    stream.entered = None if side[ENTERED] == NONE else side[ENTERED]


def settle(tables: Tables, number: int, talk: Conversation) -> bool:
    """Take the state of an object back, if it is one for the tables; tell whether it was."""
    row = tables.talks[number]
    if talk.speaks in ("tls", "other"):
        row[MODE] = TLS if talk.speaks == "tls" else OTHER
        row[SIDES:] = [value for stream in talk.streams for value in _side(stream, (-1, -1), 0)]
        return True
    if talk.speaks == "":
        if talk.is_busy or any(stream.end for stream in talk.streams):
            return False
        row[MODE], row[NOW] = FRESH, talk.now_ns
        return True
    if talk.client is None or not _is_plain(talk):
        return False
    requests = talk.open_requests
    waiting = [
        tables.node(
            tables.hold(each.frame.data),
            len(each.frame.data),
            *each.frame[2:6],
            each.api_key,
            each.api_version,
            each.correlation_id,
        )
        for each in requests.waiting()
    ]
    waived = [tables.node(FAR, 0, 0, NEVER, 0, 0, 0, 0, each) for each in requests.waived_ids()]
    oldest, newest = tables.link(waived)
    if waived:
        tables.nodes[newest, NEXT] = oldest
    marks = int(row[MARKS]) | (TOKENS_SEEN if requests.tokens_seen else 0)
    values = [KAFKA, talk.client, marks, talk.asked, talk.now_ns, *tables.link(waiting)]
    values += [len(waiting), requests.size, newest, len(waived)]
    for stream in talk.streams:
        pieces = _pieces(tables, stream)
        values += _side(stream, tables.link(pieces), len(pieces))
    row[:] = values
    return True


def _pieces(tables: Tables, stream: Stream) -> list[int]:
    """Make nodes of what is in a stream's buffer, packet by packet."""
    base, nodes = stream.base, list[int]()
    if not stream.buffer:
        return nodes
    address = tables.hold(stream.buffer) - base
    for mark in stream.marks:
        place = address + base, mark.end - base
        nodes.append(tables.node(*place, 0, NEVER, 0, 0, mark.packet, mark.time_ns, 0))
        base = mark.end
    return nodes


def _side(stream: Stream, ends: tuple[int, int], pieces: int) -> list[int]:
    """Return the columns of a side."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[:4], "big") if len(buffer) >= 4 else 0
    return [
        stream.base,
        (STEP if stream.in_step else 0)
        | (STARTS if stream.fresh else 0)
        | (CUT if stream.cut else 0),
        len(buffer),
        stream.cut.left if stream.cut else size if stream.in_step else stream.scanned,
        *ends,
        pieces,
        -1 if stream.last_packet is None else stream.last_packet,
        NONE if stream.entered is None else stream.entered,
        stream.skipped,
        stream.missing,
        stream.tried,
        stream.weighed,
    ]


def _is_plain(talk: Conversation) -> bool:
    """Tell whether the loop can lead a conversation."""
    waits = talk.open_requests
    if talk.is_busy or len(waits) > FEW_OPEN or waits.size > FEW_BYTES:
        return False
    if any(each.frame.token or len(each.frame.data) < 8 for each in waits.waiting()):
        return False
    return all(_is_plain_stream(stream, stream.side == talk.client) for stream in talk.streams)


def _is_plain_stream(stream: Stream, asks: bool) -> bool:
    buffer = stream.buffer
    if stream.done or len(buffer) > FEW_BYTES or (stream.cut and not stream.cut.told):
        return False
    if not stream.in_step or len(buffer) < 4:
        return stream.in_step or not buffer
    size = int.from_bytes(buffer[:4], "big", signed=True)
    if not (LEAST_REQUEST if asks else LEAST_RESPONSE) <= size <= stream.limit:
        return False
    if not asks or len(buffer) < HEADER_BYTES:
        return True
    key, version, client_id = (
        int.from_bytes(buffer[at : at + 2], "big", signed=True) for at in (4, 6, 12)
    )
    odd = key >= KEYS or (version == 0 and key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN))
    return known_version(key, version) and not odd and -1 <= client_id <= size - 10
