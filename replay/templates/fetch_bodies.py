"""
Bodies of Fetch responses, decoded once for all readers that get the same bytes.

Consumers at the end of a log get the same batches between the same bounds. Their responses differ
in throttle time, error and session, which stand before all else, so the rest is found by its bytes.
"""

from __future__ import annotations

from struct import Struct

from construct import Container

from cluster.client.pending_request import codecs_of
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.errors import DecodeError
from dissector.protocol.headers import FETCH

_HEAD = Struct(">ihi")
"""Throttle time, error code and session id (KIP-227)."""
_HEAD_NAMES = "throttle_time_ms", "error_code", "session_id"

_FIRST_WITH_SESSION = 7
_MAX_BYTES = 1 << 14
"""Larger responses are decoded each time: for them that costs little beside their records."""

_MAX_BODIES = 128


class SharedTopics(list[Container]):
    """The topics of a small response, one object for all responses with these bytes."""


class FetchBodies:
    """The bodies of the newest responses; those of equal bytes share their topics."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], Container] = {}

    def captured(self, exchange: CapturedExchange) -> Container | None:
        """Return the body of a captured response, not to be modified; None without one."""
        frame, version = exchange.response, exchange.api_version
        if frame is None:
            return None
        start = 4 + codecs_of(FETCH, version).response_header
        found = self._find(frame, start, version)
        if found is not None:
            return found
        message = exchange.response_message()
        body = None if message is None else message.body
        if body is None or message is None or message.body_start != start:
            return body
        return self._kept(frame, start, version, Container(body))

    def live(self, frame: bytes, version: int) -> Container | None:
        """Return the body of a usual response, not to be modified; None for others."""
        codecs = codecs_of(FETCH, version)
        start = 4 + codecs.response_header
        if frame[4:start] != bytes(codecs.response_header):
            return None
        found = self._find(frame, start, version)
        if found is not None:
            return found
        try:
            body = codecs.parse_response(frame[start:])
        except DecodeError:
            return None
        return self._kept(frame, start, version, body)

    def _find(self, frame: bytes, start: int, version: int) -> Container | None:
        """Return a body as a known one, with the head of this response."""
        if version < _FIRST_WITH_SESSION or len(frame) > _MAX_BYTES:
            return None
        known = self._known.get((version, frame[start + _HEAD.size :]))
        if known is None or frame[4:start] != bytes(start - 4):
            return None
        body = Container(known)
        body.update(zip(_HEAD_NAMES, _HEAD.unpack_from(frame, start), strict=True))
        return body

    def _kept(self, frame: bytes, start: int, version: int, body: Container) -> Container:
        """Keep a small body; return it."""
        if version < _FIRST_WITH_SESSION or len(frame) > _MAX_BYTES:
            return body
        body["responses"] = SharedTopics(body["responses"])
        if len(self._known) >= _MAX_BODIES:
            del self._known[next(iter(self._known))]
        self._known[version, frame[start + _HEAD.size :]] = body
        return body
