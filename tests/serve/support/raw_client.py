"""A client for arbitrary bytes and decoded responses."""

from __future__ import annotations

import select
import socket
from types import TracebackType
from typing import Any, Self

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message, decode_response
from tests.default_frames import request
from tests.replay.support.closing import assert_closed
from tests.waiting import PATIENCE_S


class RawClient:
    """One connection to the first broker of `bootstrap`."""

    def __init__(self, bootstrap: str, client_id: str = "raw") -> None:
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, api: str, version: int, /, **values: Any) -> Any:
        """Send a request; return the body of the response."""
        self.send_request(api, version, **values)
        return self.receive_response(api, version)

    def send_request(self, api: str, version: int, /, **values: Any) -> None:
        """Send a request."""
        self._correlation_id += 1
        self.send(request(KEYS[api], version, self._correlation_id, self._client_id, **values))

    def receive_response(self, api: str, version: int) -> Any:
        """Return the body of the response to the last request."""
        message = self.response(KEYS[api], version)
        assert message.correlation_id == self._correlation_id
        assert not message.problems
        return message.body

    def response(self, key: int, version: int) -> Message:
        return decode_response(self.frame(), key, version)

    def frame(self) -> bytes:
        size = int.from_bytes(self.exactly(4), "big")
        return self.exactly(size)

    def exactly(self, size: int) -> bytes:
        """Receive bytes; fewer if the server closes the connection."""
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                break
            data += piece
        return data

    def is_answered(self) -> bool:
        """Return whether something has come that was not received yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def is_closed(self) -> bool:
        """Wait until the server closes the connection, or sends something."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def assert_closed(self) -> None:
        """Read what the server still sends, until it ends the connection."""
        assert_closed(self._socket)
