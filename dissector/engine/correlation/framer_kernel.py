"""A chunk of a stream is cut into frames, which are asked and answered: a part of `pairing`."""

from __future__ import annotations

from typing import Any

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.connection_correlator import MAX_EARLY_RESPONSE_NS
from dissector.engine.correlation.frame_checks import HEADER_BYTES
from dissector.engine.correlation.frame_checks_kernel import (
    DUE,
    ODD,
    PLAIN,
    is_plain,
    opens_kafka,
    response_due,
    signed32,
)
from dissector.engine.correlation.linked_lists import (
    TOO_FAR,
    UNFOUND,
    find,
    join,
    keep,
    look,
    new_node,
)
from dissector.engine.correlation.match_kernel import answer, ask, told_address
from dissector.engine.correlation.state_columns import (
    ASKED,
    BASE,
    CLIENT,
    CUT,
    ENTERED,
    FIRST,
    FLAGS,
    FRESH,
    HEAD,
    ID,
    KAFKA,
    KEY,
    LAST_PACKET,
    LENGTH,
    MARKS,
    MODE,
    NOW,
    OFFSET,
    PACKET,
    REST,
    ROW_RESPONSE,
    SIDE_WIDTH,
    SIDES,
    SIZE,
    START,
    STARTS,
    STEP,
    TAKEN,
    THERE,
    TIME,
    VERSION,
    WAIVED_COUNT,
    WHOLE,
    WINDOW,
)
from dissector.kernel import device_function
from dissector.kernel.memcpy import copy_bytes
from dissector.protocol.headers import PRODUCE


@device_function
def take(
    talk: int,
    s: int,
    source: Any,
    start: int,
    far: int,
    length: int,
    packet: int,
    time_ns: int,
    data: Any,
    held: Any,
    numbers: Any,
    talks: Any,
    nodes: Any,
    rows: Any,
    copies: Any,
    tellers: Any,
    rules: Any,
    first: Any,
) -> int:
    """Take a chunk of data, which is in `source` from `start` on; `PLAIN` if that was possible."""
    at = SIDES + s * SIDE_WIDTH
    fresh = talks[talk, MODE] == FRESH
    if fresh:
        said = ODD
        if s == 0 and talks[talk, MARKS] & WHOLE:
            said = opens_kafka(source, start, length, numbers, rules)
        if said != PLAIN:
            return said
    elif talks[talk, at + FLAGS] & (STEP | CUT) != STEP:
        return ODD
    asks = fresh or s == talks[talk, CLIENT]
    there = talks[talk, at + THERE]
    size = talks[talk, at + REST]
    if there < HEADER_BYTES or there + length >= 4 + size:
        ends = lay_out(
            first, source, start, length, data, held, nodes, talks[talk, at + HEAD], there
        )
        said = are_plain(source, start, length, there, first, ends, asks, numbers, rules)
        if said != PLAIN:
            return said
    if fresh:
        enter(talks, talk)
    talks[talk, NOW] = max(talks[talk, NOW], time_ns)
    begins = talks[talk, at + BASE] + there
    # Where the next frame begins, as an offset in the chunk.
    place = -there
    while length - place >= 4:
        head = first if place < 0 else source
        h = 0 if place < 0 else start + place
        if place >= 0 or there < 4:
            size = u32(head, h)
        if length - place < 4 + size:
            break
        previous = UNFOUND
        if not asks:
            number = signed32(head, h + 4)
            previous = find(nodes, talks[talk, FIRST], number)
            if previous == TOO_FAR or (
                previous == UNFOUND and may_be_odd(talks, talk, number, time_ns)
            ):
                if place > 0:
                    stop_at(talks, talk, at, begins + place)
                    numbers[TAKEN] = place
                return ODD
        frame = far + start + place
        if place < 0:
            frame = join(numbers, talks, nodes, copies, talk, at, far + start, 4 + size - there)
        if asks:
            due = DUE
            if u16(head, h + 4) == PRODUCE:
                due = response_due(head, h, min(h + 4 + size, len(head)), rules)
            node = new_node(numbers, nodes)
            nodes[node, START] = frame + 4
            nodes[node, LENGTH] = size
            nodes[node, SIZE] = size
            nodes[node, PACKET] = packet
            nodes[node, TIME] = time_ns
            nodes[node, OFFSET] = begins + place
            nodes[node, KEY] = u16(head, h + 4)
            nodes[node, VERSION] = u16(head, h + 6)
            nodes[node, ID] = signed32(head, h + 8)
            ask(numbers, talks, nodes, rows, tellers, talk, node, due)
        else:
            row = answer(numbers, talks, nodes, rows, tellers, talk, previous, number)
            rows[ROW_RESPONSE, row] = told_address(frame + 4, numbers[WINDOW])
            rows[ROW_RESPONSE + 1, row] = size
            rows[ROW_RESPONSE + 2, row] = size
            rows[ROW_RESPONSE + 3, row] = packet
            rows[ROW_RESPONSE + 4, row] = time_ns
            rows[ROW_RESPONSE + 5, row] = begins + place
        place += 4 + size
    if place >= 0:
        talks[talk, at + FLAGS] = STEP | STARTS if place == 0 or place == length else STEP
    if place < length:
        left = max(place, 0)
        keep(numbers, talks, nodes, talk, at, far + start + left, length - left, packet, time_ns)
    talks[talk, at + BASE] = begins + place
    talks[talk, at + THERE] = length - place
    talks[talk, at + REST] = size if length - place >= 4 else 0
    talks[talk, at + LAST_PACKET] = packet
    return PLAIN


@device_function
def lay_out(
    first: Any,
    source: Any,
    start: int,
    length: int,
    data: Any,
    held: Any,
    nodes: Any,
    piece: int,
    there: int,
) -> int:
    """Lay the first bytes of a frame in pieces side by side, with the chunk behind them."""
    if there == 0:
        return 0
    ends = look(first, data, held, nodes, piece, len(first))
    more = min(length, len(first) - ends)
    copy_bytes(first, ends, source, start, more)
    return ends + more


@device_function
def are_plain(
    source: Any,
    start: int,
    length: int,
    there: int,
    first: Any,
    ends: int,
    asks: Any,
    numbers: Any,
    rules: Any,
) -> int:
    """Tell whether all frames that a chunk completes, continues or begins are plain."""
    place = -there
    if place < 0 and length - place >= 4:
        said = is_plain(first, 0, length - place, asks, ends, numbers, rules)
        if said != PLAIN:
            return said
        place += 4 + u32(first, 0)
    while length - place >= 4 and place >= 0:
        here = start + place
        said = is_plain(source, here, length - place, asks, start + length, numbers, rules)
        if said != PLAIN:
            return said
        place += 4 + u32(source, here)
    return PLAIN


@device_function
def enter(talks: Any, talk: int) -> None:
    """Believe a whole connection to be Kafka from its first byte on."""
    talks[talk, MODE] = KAFKA
    talks[talk, CLIENT] = 0
    for s in range(2):
        talks[talk, SIDES + s * SIDE_WIDTH + FLAGS] = STEP | STARTS
        talks[talk, SIDES + s * SIDE_WIDTH + ENTERED] = 0


@device_function
def may_be_odd(talks: Any, talk: int, number: int, time_ns: int) -> bool:
    """Tell whether a response that nobody asked for may be early, or to a request due none."""
    early = talks[talk, ASKED] < number and talks[talk, NOW] - time_ns < MAX_EARLY_RESPONSE_NS
    return bool(early or talks[talk, WAIVED_COUNT] > 0)


@device_function
def stop_at(talks: Any, talk: int, at: int, offset: int) -> None:
    """Leave a stream before a frame that begins within a packet."""
    talks[talk, at + BASE] = offset
    talks[talk, at + THERE] = 0
    talks[talk, at + REST] = 0
    talks[talk, at + FLAGS] = STEP
    talks[talk, at + LAST_PACKET] = -1
