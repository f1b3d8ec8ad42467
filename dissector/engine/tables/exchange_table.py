"""
Exchanges in columns: the correlator's result for one window of a capture.

Columns are numpy arrays, a row per exchange, in the order of ends. The bytes of a frame stay where
they are in the window, or lie in the carry-over buffer if they had to be joined; a body is decoded
on demand (`Exchange`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.logins import NO_SIGNS, Logins
from dissector.kernel.arrays import NONE as NONE
from dissector.protocol.login_secrets import NOTHING_KNOWN, KnownSecrets

ANSWERED, UNANSWERED, NO_RESPONSE, ORPHAN, WAITING, ONE_SIDED = range(6)
STATUS = ("answered", "unanswered", "no_response", "orphan", "waiting", "one_sided")
"""
`waiting` marks requests in flight in a live capture, until their exchanges end; `one_sided` a
message whose counterpart went in a direction that was not captured.
"""

BROKEN_REQUEST, BROKEN_RESPONSE, ENDING_AT = 1, 2, 2
"""Flags of `Exchanges.broken_off`, and the first bit of its index into `END_REASONS`."""

Ints: TypeAlias = NDArray[np.int64]


@dataclass(slots=True, eq=False, repr=False)
class Frames:
    """
    Frames in columns; NONE in every column if an exchange lacks the frame.

    Attributes:
        start: Where the frame begins (behind its size): an offset in `Exchanges.data`, or, from its
            end on, in `Exchanges.carry_over`.
        captured_bytes: Bytes that were captured.
        size: Its declared size; more than `captured_bytes` where some were not captured.
        packet: The packet that completed it.
        time_ns: When that packet was captured.
        offset: Offset of the frame in its stream.
    """

    start: Ints
    captured_bytes: Ints
    size: Ints
    packet: Ints
    time_ns: Ints
    offset: Ints


@dataclass(slots=True, eq=False, repr=False)
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
        answers_acks_0: Whether this is a response to a request that expects none (acks = 0).
        broken_off: The messages interrupted by the end of the connection, BROKEN_REQUEST and
            BROKEN_RESPONSE, and from bit ENDING_AT on the kind of end, an index into `END_REASONS`;
            0 if it did not.
        api_key: Of the request; NONE for orphans, tokens, and where fewer than 8 bytes were
            captured.
        api_version: NONE as for `api_key`.
        correlation_id: Of the request, likewise; of an orphan the response's, NONE if fewer than 4
            bytes were captured.
        server_ns: How long the broker had the request; the rest of the latency is the network's;
            NONE where the capture does not show it.
        request: Columns of the request's frame.
        response: Columns of the response's frame.
        logins: The secrets that logins showed so far; None: none were looked for.
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
    server_ns: Ints
    request: Frames
    response: Frames
    logins: Logins | None = None

    def __len__(self) -> int:
        return len(self.connection)

    def rows(self, rows: Ints) -> Exchanges:
        """Return some of the exchanges, of the same buffers."""

        def selected(table: Any, *excluded: str) -> Any:
            names = [each.name for each in fields(table) if each.name not in excluded]
            return replace(table, **{name: getattr(table, name)[rows] for name in names})

        sides = {"request": selected(self.request), "response": selected(self.response)}
        rest: Exchanges = selected(self, "data", "carry_over", "logins", *sides)
        return replace(rest, **sides)

    def detached(self, row: int) -> Exchanges:
        """Return one exchange with its own bytes, independent of the window."""
        table, carry_over = self.rows(np.array([row])), bytearray()
        for frames in (table.request, table.response):
            data = self.frame(frames, 0)
            if data is not None:
                frames.start[0] = len(carry_over)
                carry_over += data
        own_bytes = np.frombuffer(bytes(carry_over), np.uint8)
        return replace(table, data=np.zeros(0, np.uint8), carry_over=own_bytes)

    def frame(self, frames: Frames, row: int) -> bytes | None:
        """Return the bytes of one frame, or None without one."""
        start = int(frames.start[row])
        return None if start == NONE else self.bytes_at(start, int(frames.captured_bytes[row]))

    def int16_at(self, starts: Ints) -> Ints:
        """Return the 16-bit integers at places in frames; both bytes of each must be there."""
        values = np.zeros(len(starts), np.int64)
        for buffer, first in ((self.data, 0), (self.carry_over, len(self.data))):
            inside = (starts >= first) & (starts < first + len(buffer))
            at = starts[inside] - first
            values[inside] = buffer[at].astype(np.int8).astype(np.int64) << 8 | buffer[at + 1]
        return values

    def bytes_at(self, start: int, length: int) -> bytes:
        """Return some bytes of a frame."""
        offset = start - len(self.data)
        if offset >= 0:
            return self.carry_over[offset : offset + length].tobytes()
        return self.data[start : start + length].tobytes()

    def known_secrets(self, row: int) -> KnownSecrets:
        """Return the secrets that logins on the connection of an exchange showed."""
        return NOTHING_KNOWN if self.logins is None else self.logins.of(int(self.connection[row]))

    @property
    def login_signs(self) -> NDArray[np.uint8]:
        """`Logins.signs` of the known secrets."""
        return NO_SIGNS if self.logins is None else self.logins.signs

    def api_and_version(self, row: int) -> tuple[int, int] | None:
        """Return API key and version of a request, or None where they were not captured."""
        key = int(self.api_key[row])
        return None if key == NONE else (key, int(self.api_version[row]))
