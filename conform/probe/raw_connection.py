"""A connection for sending arbitrary bytes, which exposes the received frames as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from construct import Container

from conform.probe.raw_exchange import Said, request_frame
from dissector.errors import ReplayError
from dissector.protocol.apis import api_name
from replay.client.auth import Security, authenticate
from replay.client.transport import Connection, connect, written

_FIRST_ID = 1


class Line:
    """
    One connection to a broker, created by `Line.open`.

    Attributes:
        address: `host:port`.
        versions: The offered versions, as far as authentication needs them.
        lost: Why the connection ended; empty while it is open.
        timeout_s: How long a response may take.
        on_sent: Receives the sent data, after authentication; a frame without its size.
        on_lost: Called when the peer ends the connection.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.address = written(host, port)
        self.versions: dict[int, tuple[int, int]] = {}
        self.lost = ""
        self.timeout_s = timeout_s
        self.on_sent: Callable[[bytes], None] = lambda _: None
        self.on_lost: Callable[[], None] = lambda: None
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._connection = Connection(self._arrived.put_nowait, self._lose)
        self._next_id = _FIRST_ID

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        security: Security,
        timeout_s: float,
        versions: Mapping[int, tuple[int, int]] | None = None,
    ) -> Self:
        """
        Connect, and authenticate where the security has a mechanism.

        Args:
            host: Host of the broker.
            port: Port of the broker.
            security: Whether and how to encrypt and to authenticate.
            timeout_s: How long this, and later each response, may take.
            versions: The versions that the broker offers.

        Raises:
            ReplayError: The broker can't be reached or rejects the authentication.
        """
        line = cls(host, port, timeout_s)
        line.versions = dict(versions or {})
        try:
            await connect(line._connection, host, port, security.tls, timeout_s)
            if security.mechanism:
                await authenticate(line, security)
        except BaseException:
            line.close()
            raise
        return line

    def close(self) -> None:
        """Abort the connection."""
        self._connection.abort()
        self.lost = self.lost or "we closed the connection"

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        is_frame = int.from_bytes(data[:4], "big") == len(data) - 4
        self.on_sent(data[4:] if is_frame else data)
        self._connection.send_bytes(data)

    def send(self, frame: bytes) -> None:
        """Send a frame, with its size."""
        self.on_sent(frame)
        self._connection.send(frame)

    async def flushed(self) -> None:
        """Wait until the peer has taken most of the sent bytes, or the connection is lost."""
        await self._connection.room()

    async def frame(self, patience_s: float | None = None) -> bytes | None:
        """
        Wait for the next frame; None where the connection ends instead.

        Raises:
            TimeoutError: Neither happens in time.
        """
        if self.lost and self._arrived.empty():
            return None
        async with asyncio.timeout(self.timeout_s if patience_s is None else patience_s):
            return await self._arrived.get()

    def next_id(self) -> int:
        """Return a correlation id that is unique on this connection."""
        self._next_id += 1
        return self._next_id - 1

    def put(self, name: str, version: int, fields: Mapping[str, Any]) -> Said:
        """Send a request without waiting for its response; `hear` waits."""
        said = request_frame(name, version, fields, self.next_id())
        self.send(said.request)
        return said

    async def hear(self, said: Said, patience_s: float | None = None) -> Said:
        """Take the next frame as the response to a request; record why where there is none."""
        try:
            frame = await self.frame(patience_s)
        except TimeoutError:
            said.stay_silent(self.timeout_s if patience_s is None else patience_s)
            return said
        if frame is None:
            said.nothing = self.lost
        else:
            said.take(frame)
        return said

    async def ask(
        self, name: str, version: int, fields: Mapping[str, Any], patience_s: float | None = None
    ) -> Said:
        """Send a request and wait for its response."""
        return await self.hear(self.put(name, version, fields), patience_s)

    async def ask_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send a request of the authentication; see `replay.client.auth.Asks`."""
        said = await self.ask(api_name(api_key), version, body)
        if said.body is None:
            raise ReplayError(self.address, said.nothing or f"{said} was answered with garbage")
        return said.body

    def _lose(self, what: str, advice: str) -> None:
        self.lost = f"{what} ({advice})" if advice else what
        self._arrived.put_nowait(None)
        self.on_lost()
