"""
Exchanges in columns: what pairing gives for one window of a capture.

Columns are numpy arrays, a row per exchange, in the order in which exchanges end. The bytes of a
frame stay where they are in the window, or lie in a second buffer if they had to be put together;
a body is decoded only when somebody looks at it (`Exchange`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

ANSWERED, UNANSWERED, NO_RESPONSE, ORPHAN, WAITING = range(5)
STATUS = ("answered", "unanswered", "no_response", "orphan", "waiting")
"""Of these, `waiting` is only that of requests in a live capture, until their exchanges end."""

BROKEN_REQUEST, BROKEN_RESPONSE = 1, 2

NONE = -(2**63)
"""Stands in an integer column where there is no value."""

Ints: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class Frames:
    """
    Frames in columns; NONE in every column where an exchange has no such frame.

    Attributes:
        start: Where the frame begins (behind its size): an offset in `Exchanges.data`, or, from its
            end on, in `Exchanges.held`.
        captured_bytes: Bytes that are there.
        size: Bytes by its size; more than `captured_bytes` where some were not captured.
        packet: The packet that completed it.
        time_ns: When that packet was captured.
        offset: Where the frame begins in its stream.
    """

    start: Ints
    captured_bytes: Ints
    size: Ints
    packet: Ints
    time_ns: Ints
    offset: Ints


@dataclass(slots=True)
class Exchanges:
    """
    The exchanges of one window, a row each.

    Attributes:
        data: The bytes of the window.
        carry_over: The bytes of frames that do not lie in it in one piece.
        connection: Number of the connection.
        status: Index into `STATUS`.
        client: The side that sends requests.
        token: Whether these are raw SASL tokens.
        answers_acks_0: Whether this is a response to a request that was due none.
        broken_off: BROKEN_REQUEST and BROKEN_RESPONSE, of which the connection ended within.
        api_key: Of the request; NONE for orphans, tokens, and where 8 bytes of it are not there.
        api_version: Likewise.
        correlation_id: Of the request, likewise; of an orphan that of the response, NONE where
            4 bytes of it are not there.
        request: Columns of the request's frame.
        response: Columns of the response's frame.
    """

    data: NDArray[np.uint8]
    carry_over: NDArray[np.uint8]
    connection: Ints
    status: NDArray[np.int8]
    client: NDArray[np.int8]
    token: NDArray[np.bool_]
    answers_acks_0: NDArray[np.bool_]
    broken_off: NDArray[np.int8]
    api_key: Ints
    api_version: Ints
    correlation_id: Ints
    request: Frames
    response: Frames

    def __len__(self) -> int:
        return len(self.connection)

    def rows(self, rows: Ints) -> Exchanges:
        """Return some of the exchanges, of the same bytes."""

        def chosen(part: Any, *other: str) -> Any:
            names = [each.name for each in fields(part) if each.name not in other]
            return replace(part, **{name: getattr(part, name)[rows] for name in names})

        sides = {"request": chosen(self.request), "response": chosen(self.response)}
        rest: Exchanges = chosen(self, "data", "carry_over", *sides)
        return replace(rest, **sides)

    def detached(self, row: int) -> Exchanges:
        """Return one of the exchanges with its own bytes, so that the window's may go."""
        table, held = self.rows(np.array([row])), bytearray()
        for frames in (table.request, table.response):
            data = self.frame(frames, 0)
            if data is not None:
                frames.start[0] = len(held)
                held += data
        own = np.frombuffer(bytes(held), np.uint8)
        return replace(table, data=np.zeros(0, np.uint8), carry_over=own)

    def frame(self, frames: Frames, row: int) -> bytes | None:
        """Return the bytes of one frame, or None where the exchange has none."""
        start = int(frames.start[row])
        return None if start == NONE else self.bytes_at(start, int(frames.captured_bytes[row]))

    def int16_at(self, starts: Ints) -> Ints:
        """Return the numbers of two bytes at places in frames; both bytes of each are there."""
        out = np.zeros(len(starts), np.int64)
        for buffer, first in ((self.data, 0), (self.carry_over, len(self.data))):
            inside = (starts >= first) & (starts < first + len(buffer))
            at = starts[inside] - first
            out[inside] = buffer[at].astype(np.int8).astype(np.int64) << 8 | buffer[at + 1]
        return out

    def bytes_at(self, start: int, length: int) -> bytes:
        """Return some bytes of a frame."""
        beyond = start - len(self.data)
        if beyond >= 0:
            return self.carry_over[beyond : beyond + length].tobytes()
        return self.data[start : start + length].tobytes()

    def api_and_version(self, row: int) -> tuple[int, int] | None:
        """Return API key and version of a request, or None where they are not there."""
        key = int(self.api_key[row])
        return None if key == NONE else (key, int(self.api_version[row]))
