"""
Exchanges with registries in the bytes of a capture's connections.

Each connection is read as long as it looks like HTTP/1.1; Kafka's own are left after their first
bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dissector.values.registry.http_messages import HttpMessage, HttpStream, NotHttp

_METHODS = (b"GET ", b"POST ", b"PUT ", b"DELETE ", b"HEAD ")
_MAX_HELD = 64 << 20
_MAX_CONNECTIONS = 10_000


class _Connection:
    """Both directions of a connection."""

    def __init__(self, client_side: int) -> None:
        self.client_side = client_side
        self.streams = HttpStream(), HttpStream()
        self.requests: deque[HttpMessage] = deque()

    @property
    def held(self) -> int:
        return sum(each.held for each in self.streams) + sum(
            len(each.body) for each in self.requests
        )


class HttpExchanges:
    """
    Finds requests and their responses; `feed` is a tap of a capture's streams.

    Attributes:
        left: Connections that are not read on, unless their plaintext begins.
    """

    def __init__(self, see: Callable[[HttpMessage, HttpMessage], None]) -> None:
        """Start; `see` is called with each request and its response."""
        self._see = see
        self._open: dict[int, _Connection] = {}
        self.left: set[int] = set()
        self._held = 0

    def feed(self, connection: int, side: int, content: bytes | None, length: int) -> None:
        """
        Take the next bytes of a stream; None for a gap.

        A gap of a negative length: what came before was encrypted, and its plaintext follows.
        """
        if content is None:
            if length:
                self._leave(connection)
            if length < 0:
                self.left.discard(connection)
            return
        if connection in self.left:
            return
        found = self._open.get(connection)
        if found is None:
            if not _may_begin(content) or len(self._open) >= _MAX_CONNECTIONS:
                self._leave(connection)
                return
            found = self._open[connection] = _Connection(side)
        before = found.held
        try:
            for message in found.streams[side].feed(content):
                self._take(found, side, message)
        except NotHttp:
            self._held += found.held - before
            self._leave(connection)
            return
        self._held += found.held - before
        if self._held > _MAX_HELD:
            self._leave(connection)

    def _take(self, found: _Connection, side: int, message: HttpMessage) -> None:
        if side == found.client_side:
            found.requests.append(message)
        elif not message.start[1].startswith("1") and found.requests:
            self._see(found.requests.popleft(), message)

    def _leave(self, connection: int) -> None:
        found = self._open.pop(connection, None)
        if found is not None:
            self._held -= found.held
        self.left.add(connection)


def _may_begin(content: bytes) -> bool:
    """Return whether these may be the first bytes of a request."""
    return any(content[: len(each)] == each[: len(content)] for each in _METHODS)
