"""
Bodies that can be relied on, decoded once for all messages with the same bytes.

Clients repeat themselves, and brokers answer with the same: Metadata, ApiVersions, heartbeats and
empty Fetches differ in nothing but their correlation ids.
"""

from __future__ import annotations

from typing import Any

from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.protocol.api import Kind
from dissector.protocol.context import using
from dissector.protocol.definitions.schemas import Schemas
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.undeclared_nulls import has_undeclared_null

_MAX_FRAME_BYTES = 16 << 10
"""Larger messages are seldom repeated."""

_MOST_BYTES = 2 << 20
"""Amount of frames that are remembered: decoded, they take many times as much."""

_LEAST_BYTES = 8
"""The shortest header of a request."""

_Key = tuple[Kind, int, int, bytes]
"""Side, API and version of a message, and its bytes behind the correlation id."""


class ReliableBodies:
    """
    The latest bodies, by the bytes of their messages.

    What it returns is shared, and must not be changed.

    Args:
        schemas: The definitions of messages; None: those built in.
    """

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas
        self._bodies: dict[_Key, Any] = {}
        self._bytes = 0

    @staticmethod
    def has_whole(table: Exchanges, row: int, kind: Kind) -> bool:
        """Return whether a message is whole, and its bytes and API are all that it depends on."""
        frames = table.request if kind == "request" else table.response
        size = frames.captured_bytes[row]
        is_whole = frames.start[row] != NONE and size == frames.size[row] and size >= _LEAST_BYTES
        is_named = table.request.captured_bytes[row] >= _LEAST_BYTES and table.api_key[row] != NONE
        is_expected = kind == "request" or not table.answers_acks_0[row]
        return bool(is_whole and is_named and is_expected and not table.token[row])

    def read(self, table: Exchanges, row: int, kind: Kind) -> Any:
        """Return the body of such a message; None if it is unreliable."""
        frames = table.request if kind == "request" else table.response
        frame = table.bytes_at(int(frames.start[row]), int(frames.captured_bytes[row]))
        api_key, version = int(table.api_key[row]), int(table.api_version[row])
        if len(frame) > _MAX_FRAME_BYTES:
            return self._decode(kind, frame, api_key, version)
        key = kind, api_key, version, frame[8 if kind == "request" else 4 :]
        if key in self._bodies:
            body = self._bodies.pop(key)
        else:
            body = self._decode(kind, frame, api_key, version)
            self._bytes += len(frame)
        self._bodies[key] = body
        while self._bytes > _MOST_BYTES:
            oldest = next(iter(self._bodies))
            del self._bodies[oldest]
            self._bytes -= len(oldest[-1]) + (8 if oldest[0] == "request" else 4)
        return body

    def _decode(self, kind: Kind, frame: bytes, api_key: int, version: int) -> Any:
        with using(self._schemas):
            if kind == "request":
                return reliable_body(decode_request(frame))
            return reliable_body(decode_response(frame, api_key, version))


def reliable_body(message: Message | None) -> Any:
    """Return the body of a complete message that matches its declaration, else None."""
    if (
        message is None
        or message.body is None
        or message.size > len(message.frame)
        or message.is_assumed
        or message.faults
        or has_undeclared_null(message)
    ):
        return None
    return message.body
