"""A connection for arbitrary bytes, with access to the received frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from construct import Container

from cluster.client.auth import Security, authenticate
from cluster.client.endpoint import Endpoint, connect
from cluster.client.transport import FrameProtocol
from conform.probe.raw_exchange import RawExchange, encode_request
from dissector.errors import ReplayError
from dissector.protocol.apis import api_name

_FIRST_CORRELATION_ID = 1


class RawConnection:
    """
    One connection to a broker, created by `RawConnection.open`.

    Attributes:
        address: `host:port`.
        versions: Offered versions of APIs for authentication.
        end_reason: Reason for the end of the connection; empty while it is open.
        timeout_s: Timeout of each response.
        on_sent: Receives the sent data, after authentication; a frame without its size.
        on_end: Called when the peer ends the connection.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self.end_reason = ""
        self.timeout_s = timeout_s
        self.on_sent: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[], None] = lambda: None
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._transport = FrameProtocol(self._frames.put_nowait, self._handle_end)
        self._next_correlation_id = _FIRST_CORRELATION_ID

    @classmethod
    async def open(
        cls,
        endpoint: Endpoint,
        security: Security,
        timeout_s: float,
        versions: Mapping[int, tuple[int, int]] | None = None,
    ) -> Self:
        """
        Connect, and authenticate where the security has a mechanism.

        Args:
            endpoint: The broker, as `AllowedHosts.permit` returns it.
            security: Whether and how to encrypt and to authenticate.
            timeout_s: Timeout of connecting, and later of each response.
            versions: The versions that the broker offers.

        Raises:
            ReplayError: The broker can't be reached or rejects the authentication.
        """
        connection = cls(str(endpoint), timeout_s)
        connection.versions = dict(versions or {})
        try:
            await connect(connection._transport, endpoint, security.tls, timeout_s)
            if security.mechanism:
                await authenticate(connection, security)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Abort the connection."""
        self._transport.abort()
        self.end_reason = self.end_reason or "we closed the connection"

    def write(self, data: bytes) -> None:
        """Send raw bytes."""
        is_frame = int.from_bytes(data[:4], "big") == len(data) - 4
        self.on_sent(data[4:] if is_frame else data)
        self._transport.send_bytes(data)

    def send(self, frame: bytes) -> None:
        """Send a frame, with its size."""
        self.on_sent(frame)
        self._transport.send(frame)

    async def drain(self) -> None:
        """Wait until the peer has taken most of the sent bytes, or the connection is lost."""
        await self._transport.drain()

    async def receive_frame(self, timeout_s: float | None = None) -> bytes | None:
        """
        Wait for the next frame; None where the connection ends instead.

        Raises:
            TimeoutError: Neither happens in time.
        """
        if self.end_reason and self._frames.empty():
            return None
        async with asyncio.timeout(self.timeout_s if timeout_s is None else timeout_s):
            return await self._frames.get()

    def next_correlation_id(self) -> int:
        """Return a correlation id that is unique on this connection."""
        self._next_correlation_id += 1
        return self._next_correlation_id - 1

    def send_request(self, name: str, version: int, fields: Mapping[str, Any]) -> RawExchange:
        """Send a request without waiting for its response; `receive_response` waits."""
        exchange = encode_request(name, version, fields, self.next_correlation_id())
        self.send(exchange.request)
        return exchange

    async def receive_response(
        self, exchange: RawExchange, timeout_s: float | None = None
    ) -> RawExchange:
        """Use the next frame as the response to a request; record the reason of a missing one."""
        try:
            frame = await self.receive_frame(timeout_s)
        except TimeoutError:
            exchange.record_timeout(self.timeout_s if timeout_s is None else timeout_s)
            return exchange
        if frame is None:
            exchange.failure = self.end_reason
        else:
            exchange.set_response(frame)
        return exchange

    async def request(
        self, name: str, version: int, fields: Mapping[str, Any], timeout_s: float | None = None
    ) -> RawExchange:
        """Send a request and wait for its response."""
        return await self.receive_response(self.send_request(name, version, fields), timeout_s)

    async def request_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send a request of the authentication; see `cluster.client.auth.RequestSender`."""
        exchange = await self.request(api_name(api_key), version, body)
        if exchange.body is None:
            raise ReplayError(
                self.address, exchange.failure or f"{exchange} got an unreadable response"
            )
        return exchange.body

    def _handle_end(self, what: str, advice: str) -> None:
        self.end_reason = f"{what} ({advice})" if advice else what
        self._frames.put_nowait(None)
        self.on_end()
