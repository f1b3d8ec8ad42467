"""
The loop that cuts streams into frames and pairs them, as long as all goes by the rules.

It does for whole windows what `Conversation` does for one connection, on the tables of `talks`, and
gives the same rows. It takes a chunk wholly or, where anything about it is odd, leaves it alone and
stops before it: gaps and what waits behind them, streams that are out of step, sizes and headers
that can't be, raw tokens, responses that came too early, ends in the middle of a frame. One
exception: the frames before an odd response are taken (`TAKEN` says how many bytes of the chunk).
"""

from __future__ import annotations

from typing import Any

from dissector.capture.columns import END, GAP, IN_WINDOW, NEVER
from dissector.engine.correlation.frame_checks_kernel import PLAIN, UNREAD
from dissector.engine.correlation.framer_kernel import take
from dissector.engine.correlation.match_kernel import end
from dissector.engine.correlation.state_columns import (
    AT,
    COPIES,
    COUNT,
    CUT,
    FAR,
    FLAGS,
    FRESH,
    LIVE,
    MODE,
    NOW,
    OBJECT,
    OTHER,
    PIECES,
    ROWS,
    SIDE_WIDTH,
    SIDES,
    STEP,
    TAKEN,
    TELLERS,
    THERE,
    TLS,
    UNBEGUN,
)
from dissector.kernel import Kernel, device_function

WHOLLY, STOPPED, FULL, WANTS = range(4)
"""
What the loop returns: all was taken; the next chunk is for the objects; a table may be too short
for it; or the versions of API `WANTED` are wanted.
"""


@Kernel
def begin(connection: Any, talks: Any, begun: Any, count: int) -> Any:
    """List the talks that these chunks begin, behind `count`; return how many there are then."""
    for i in range(len(connection)):
        talk = connection[i]
        if talks[talk, MODE] == UNBEGUN:
            talks[talk, MODE] = FRESH
            begun[count] = talk
            count += 1
    return count


@Kernel
def pair(
    connection: Any,
    side: Any,
    kind: Any,
    origin: Any,
    start: Any,
    length: Any,
    packet: Any,
    time_ns: Any,
    horizon: Any,
    held_from: int,
    room: int,
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
) -> Any:
    """Take the chunks from `AT` on, as far as they go by the rules; see the module."""
    while numbers[AT] < len(connection):
        i = numbers[AT]
        talk = connection[i]
        mode = talks[talk, MODE]
        numbers[TAKEN] = 0
        if mode != TLS and mode != OTHER:
            if mode == OBJECT or kind[i] == GAP:
                return STOPPED
            if horizon[i, 0] != NEVER or horizon[i, 1] != NEVER:
                return STOPPED
            more = length[i] // 8 + 2
            pieces = talks[talk, SIDES + side[i] * SIDE_WIDTH + PIECES]
            if (
                numbers[ROWS] + talks[talk, COUNT] + more > room
                or numbers[LIVE] + more > len(nodes)
                or numbers[COPIES] + pieces + 2 > len(copies)
                or numbers[TELLERS] == len(tellers)
            ):
                return FULL
            if kind[i] == END:
                if is_amid(talks, talk):
                    return STOPPED
                end(numbers, talks, nodes, rows, tellers, talk)
            elif length[i] == 0:
                talks[talk, NOW] = max(talks[talk, NOW], time_ns[i])
            else:
                near = origin[i] == IN_WINDOW
                said = take(
                    talk,
                    side[i],
                    data if near else held,
                    start[i] if near else held_from + start[i],
                    0 if near else FAR,
                    length[i],
                    packet[i],
                    time_ns[i],
                    data,
                    held,
                    numbers,
                    talks,
                    nodes,
                    rows,
                    copies,
                    tellers,
                    rules,
                    first,
                )
                if said != PLAIN:
                    return WANTS if said == UNREAD else STOPPED
        numbers[AT] = i + 1
    return WHOLLY


@device_function
def is_amid(talks: Any, talk: int) -> bool:
    """Tell whether a side has begun a frame that would be told as damaged if this were the end."""
    for s in range(2):
        at = SIDES + s * SIDE_WIDTH
        if talks[talk, at + FLAGS] & (STEP | CUT) == STEP and talks[talk, at + THERE] >= 4:
            return True
    return False
