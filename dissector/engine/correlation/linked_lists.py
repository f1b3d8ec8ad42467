"""What the loop in `pairing` does with nodes, their chains, and the bytes that they refer to."""

from __future__ import annotations

from typing import Any

from dissector.capture.columns import NEVER
from dissector.engine.correlation.state_columns import (
    COPIES,
    FAR,
    FREE,
    HEAD,
    HELD,
    ID,
    LENGTH,
    LIVE,
    NEXT,
    PACKET,
    PIECE_PACKET,
    PIECE_TIME,
    PIECES,
    START,
    TAIL,
    USED,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.memcpy import copy_bytes

FOREMOST, UNFOUND, TOO_FAR = -1, -2, -3
"""
Instead of the node before one: that is the first of its chain; there is none; or none was found
within `MOST_STEPS`.
"""

MOST_STEPS = 64
"""Requests that are compared with a response; objects look it up where more wait before it."""


@Kernel
def copy(copies: Any, count: int, data: Any, held: Any, target: Any) -> None:
    """Copy bytes of the window, and of what is held."""
    for i in range(count):
        if copies[i, 0] < FAR:
            copy_bytes(target, copies[i, 1], data, copies[i, 0], copies[i, 2])
        else:
            copy_bytes(target, copies[i, 1], held, copies[i, 0] - FAR, copies[i, 2])


@device_function
def new_node(numbers: Any, nodes: Any) -> int:
    """Return a node for use."""
    node = numbers[FREE]
    if node < 0:
        node = numbers[USED]
        numbers[USED] = node + 1
    else:
        numbers[FREE] = nodes[node, NEXT]
    numbers[LIVE] += 1
    nodes[node, NEXT] = -1
    return int(node)


@device_function
def free(numbers: Any, nodes: Any, node: int) -> None:
    """Give a node back."""
    nodes[node, START] = FAR
    nodes[node, LENGTH] = 0
    nodes[node, PACKET] = NEVER
    nodes[node, NEXT] = numbers[FREE]
    numbers[FREE] = node
    numbers[LIVE] -= 1


@device_function
def find(nodes: Any, first: int, number: int) -> int:
    """Return the node before the first with an id, or one of the numbers above."""
    previous, node = FOREMOST, first
    for _ in range(MOST_STEPS):
        if node < 0:
            return UNFOUND
        if nodes[node, ID] == number:
            return previous
        previous, node = node, nodes[node, NEXT]
    return TOO_FAR if node >= 0 else UNFOUND


@device_function
def look(first: Any, data: Any, held: Any, nodes: Any, piece: int, count: int) -> int:
    """Lay the first bytes of a frame side by side, up to `count`; return how many there are."""
    end = 0
    while piece >= 0 and end < count:
        length = min(nodes[piece, LENGTH], count - end)
        if nodes[piece, START] < FAR:
            copy_bytes(first, end, data, nodes[piece, START], length)
        else:
            copy_bytes(first, end, held, nodes[piece, START] - FAR, length)
        end += length
        piece = nodes[piece, NEXT]
    return end


@device_function
def join(
    numbers: Any, talks: Any, nodes: Any, copies: Any, talk: int, at: int, address: int, length: int
) -> int:
    """Put a frame together, of its pieces and so many bytes more; return its address."""
    begins = numbers[HELD]
    end = begins
    count = numbers[COPIES]
    piece = talks[talk, at + HEAD]
    while piece >= 0:
        copies[count, 0] = nodes[piece, START]
        copies[count, 1] = end
        copies[count, 2] = nodes[piece, LENGTH]
        end += nodes[piece, LENGTH]
        count += 1
        after = nodes[piece, NEXT]
        free(numbers, nodes, piece)
        piece = after
    copies[count, 0] = address
    copies[count, 1] = end
    copies[count, 2] = length
    numbers[HELD] = end + length
    numbers[COPIES] = count + 1
    talks[talk, at + HEAD] = -1
    talks[talk, at + TAIL] = -1
    talks[talk, at + PIECES] = 0
    return int(FAR + begins)


@device_function
def keep(
    numbers: Any,
    talks: Any,
    nodes: Any,
    talk: int,
    at: int,
    address: int,
    length: int,
    packet: int,
    time_ns: int,
) -> None:
    """Keep bytes as the newest piece of a side's frame that is not all there."""
    piece = new_node(numbers, nodes)
    nodes[piece, START] = address
    nodes[piece, LENGTH] = length
    nodes[piece, PACKET] = NEVER
    nodes[piece, PIECE_PACKET] = packet
    nodes[piece, PIECE_TIME] = time_ns
    if talks[talk, at + TAIL] < 0:
        talks[talk, at + HEAD] = piece
    else:
        nodes[talks[talk, at + TAIL], NEXT] = piece
    talks[talk, at + TAIL] = piece
    talks[talk, at + PIECES] += 1
