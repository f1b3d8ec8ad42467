"""
Exchanges in columns: what pairing gives for one window of a capture.

Columns are numpy arrays, a row per exchange, in the order in which exchanges end. The bytes of all
frames lie in one buffer; a body is decoded only when somebody looks at it (`Exchange` in
`dissector.engine.capture`, the tables of `dissector.engine.table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.frames import Frame

ANSWERED, UNANSWERED, NO_RESPONSE, ORPHAN = range(4)
STATUS = ("answered", "unanswered", "no_response", "orphan")

NONE = -(2**63)
"""Stands in an integer column where there is no value."""

Ints: TypeAlias = NDArray[np.int64]


class Row(NamedTuple):
    """
    One exchange as it comes out of pairing.

    Attributes:
        connection: Number of the connection.
        status: ANSWERED, UNANSWERED, NO_RESPONSE or ORPHAN.
        client: The side that sends requests, 0 or 1.
        request: Its frame.
        response: Its frame.
        token: Whether these are raw SASL tokens, which have no Kafka header.
        unasked: Whether this is a response to a request that was due none (acks = 0).
    """

    connection: int
    status: int
    client: int
    request: Frame | None
    response: Frame | None
    token: bool = False
    unasked: bool = False


@dataclass(slots=True)
class Frames:
    """
    Frames in columns; NONE in every column where an exchange has no such frame.

    Attributes:
        start: Offset of the frame (behind its size) in `Exchanges.data`.
        there: Bytes that are there.
        size: Bytes by its size; more than `there` where some were not captured.
        packet: The packet that completed it.
        time_ns: When that packet was captured.
        offset: Where the frame begins in its stream.
    """

    start: Ints
    there: Ints
    size: Ints
    packet: Ints
    time_ns: Ints
    offset: Ints


@dataclass(slots=True)
class Exchanges:
    """
    The exchanges of one window, a row each.

    Attributes:
        data: The bytes of all frames.
        connection: Number of the connection.
        status: Index into `STATUS`.
        client: The side that sends requests.
        token: Whether these are raw SASL tokens.
        unasked: Whether this is a response to a request that was due none.
        request: Columns of the request's frame.
        response: Columns of the response's frame.
    """

    data: bytes
    connection: Ints
    status: NDArray[np.int8]
    client: NDArray[np.int8]
    token: NDArray[np.bool_]
    unasked: NDArray[np.bool_]
    request: Frames
    response: Frames

    def __len__(self) -> int:
        return len(self.connection)

    def frame(self, frames: Frames, row: int) -> bytes | None:
        """Return the bytes of one frame, or None where the exchange has none."""
        start = int(frames.start[row])
        return None if start == NONE else self.data[start : start + int(frames.there[row])]

    def asked(self, row: int) -> tuple[int, int] | None:
        """Return API key and version of a request, or None where they are not there."""
        start = int(self.request.start[row])
        if start == NONE or self.token[row] or self.request.there[row] < 4:
            return None
        head = self.data[start : start + 4]
        return int.from_bytes(head[:2], "big", signed=True), int.from_bytes(
            head[2:], "big", signed=True
        )


def columns(rows: Sequence[Row]) -> Exchanges:
    """Lay exchanges out in columns."""
    data = bytearray()
    request = _frames([row.request for row in rows], data)
    response = _frames([row.response for row in rows], data)
    return Exchanges(
        data=bytes(data),
        connection=np.array([row.connection for row in rows], np.int64),
        status=np.array([row.status for row in rows], np.int8),
        client=np.array([row.client for row in rows], np.int8),
        token=np.array([row.token for row in rows], np.bool_),
        unasked=np.array([row.unasked for row in rows], np.bool_),
        request=request,
        response=response,
    )


def _frames(frames: Sequence[Frame | None], data: bytearray) -> Frames:
    """Append the bytes of frames to a buffer and return their columns."""
    table = np.full((6, len(frames)), NONE, np.int64)
    for at, frame in enumerate(frames):
        if frame is None:
            continue
        there = len(frame.data)
        table[:, at] = (
            len(data),
            there,
            frame.size,
            frame.packet,
            frame.time_ns,
            frame.offset,
        )
        data += frame.data
    return Frames(*table)
