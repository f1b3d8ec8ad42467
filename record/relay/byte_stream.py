"""A TCP connection whose bytes are taken as they come."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Protocol


class StreamOwner(Protocol):
    """Takes what happens to a stream; each method gets the stream."""

    def take_data(self, stream: ByteStream, data: bytes) -> None:
        """Take received bytes."""

    def take_end(self, stream: ByteStream) -> None:
        """Note that the peer sends no more."""

    def take_loss(self, stream: ByteStream, *, is_reset: bool) -> None:
        """Note that the connection is gone."""

    def set_full(self, stream: ByteStream, *, is_full: bool) -> None:
        """Note whether what was sent to the peer waits for it."""


class ByteStream(asyncio.Protocol):
    """
    One of the two connections of a forwarded client.

    Args:
        owner: Takes what happens.
        is_paused: Whether it does not read until `resume`.

    Attributes:
        addresses: The peer's and our address, as sockets have them; None before the connection.
        is_closed: Whether the connection is gone, or will not be made.
        is_made: Set once the connection is there, with TLS after its handshake; never if that
            fails.
    """

    def __init__(self, owner: StreamOwner, *, is_paused: bool = False) -> None:
        self.addresses: tuple[Any, Any] | None = None
        self.is_closed = False
        self.is_made = asyncio.Event()
        self._owner = owner
        self._pauses = 1 if is_paused else 0
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        """Send bytes; no effect on a closed connection."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause(self) -> None:
        """Read no more until `resume` was called as often."""
        self._pauses += 1
        if self._transport is not None and self._pauses == 1:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Take back one `pause`."""
        self._pauses -= 1
        if self._transport is not None and not self._pauses:
            self._transport.resume_reading()

    def end(self) -> None:
        """Send no more, once all is sent."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def close(self) -> None:
        """Close once all is sent."""
        if self._transport is not None:
            self._transport.close()
        else:
            self.is_closed = True

    def abort(self) -> None:
        """Close at once, with a reset."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self.is_closed = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.addresses = (peer, own) if peer and own else None
        plain = transport.get_extra_info("socket")
        if plain is not None and plain.family in (socket.AF_INET, socket.AF_INET6):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._pauses:
            transport.pause_reading()
        self.is_made.set()

    def data_received(self, data: bytes) -> None:
        """Give the bytes on; asyncio calls this."""
        self._owner.take_data(self, data)

    def eof_received(self) -> bool:
        """Keep the other direction open, if this is no TLS; asyncio calls this."""
        self._owner.take_end(self)
        return self._transport is not None and self._transport.can_write_eof()

    def connection_lost(self, error: Exception | None) -> None:
        """Give the loss on; asyncio calls this."""
        self.is_closed = True
        self._owner.take_loss(self, is_reset=isinstance(error, ConnectionError))

    def pause_writing(self) -> None:
        """Give on that the peer does not read; asyncio calls this."""
        self._owner.set_full(self, is_full=True)

    def resume_writing(self) -> None:
        """Give on that it reads again; asyncio calls this."""
        self._owner.set_full(self, is_full=False)
