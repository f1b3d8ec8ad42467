"""A TCP connection that sends and receives frames."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from struct import Struct
from weakref import WeakSet

from dissector.protocol.frame_limits import MAX_FRAME_BYTES

_SIZE = Struct(">i")

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""First bytes of TLS alerts and handshakes, with which a TLS listener responds to plain text."""


_closing: WeakSet[FrameProtocol] = WeakSet()
"""Closed connections with unsent bytes."""


class FrameProtocol(asyncio.Protocol):
    """
    Splits received bytes into frames; joins frames sent in one iteration of the event loop.

    Args:
        on_frame: Called with each frame, without its size field.
        on_lost: Called once when the connection is lost, with the reason and advice.
        max_frame_bytes: A larger size is treated as garbage.
        on_data: Called with the received bytes and the offset of the next frame; may consume whole
            frames from there on, and returns the offset of the first one left.
        max_frames_at_once: The frames that one call processes; others are left for the next.
    """

    def __init__(
        self,
        on_frame: Callable[[bytes], None],
        on_lost: Callable[[str, str], None],
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_data: Callable[[bytes | bytearray, int], int] = lambda _, start: start,
        max_frames_at_once: int = sys.maxsize,
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._on_data = on_data
        self._max_frame_bytes = max_frame_bytes
        self._max_frames_at_once = max_frames_at_once
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._unsent: list[bytes] = []
        self._drained: asyncio.Future[None] | None = None
        self._is_lost = False
        self._is_sent = self._loop.create_future()

    def send(self, frame: bytes) -> None:
        """Write a frame, in the order of the calls; no effect on a lost connection."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += (len(frame).to_bytes(4, "big"), frame)

    def send_bytes(self, data: bytes) -> None:
        """Write raw bytes, in the order of the calls, as `send` does."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)

    async def drain(self) -> None:
        """Wait until most of the write buffer is sent, or the connection is lost."""
        if self._unsent:
            self._flush()
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def write_eof(self) -> None:
        """Flush and close the write side; still receive."""
        self._flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """Close once all is sent, see `flush_closing`; `on_lost` is not called any more."""
        self._is_lost = True
        self._flush()
        self._release_writers()
        if self._transport is None:
            return
        is_tls = self._transport.get_extra_info("ssl_object") is not None
        has_unsent = self._transport.get_write_buffer_size() > 0
        if is_tls and not has_unsent:
            # A TLS close_notify would wait for the peer's.
            self._transport.abort()
        else:
            self._transport.close()
        if has_unsent:
            _closing.add(self)

    def abort(self) -> None:
        """Drop the connection at once; `on_lost` is not called any more."""
        self._is_lost = True
        self._release_writers()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._is_lost:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss of the connection; asyncio calls this."""
        _closing.discard(self)
        if not self._is_sent.done():
            self._is_sent.set_result(None)
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            self._report_loss("reset the connection")
        elif error is not None:
            self._report_loss(f"the connection broke: {error}")
        else:
            self._report_loss("closed the connection")

    def data_received(self, data: bytes) -> None:
        """Split received bytes into frames; asyncio calls this."""
        buffer: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            buffer = self._buffer
        start, end_of_data = self._on_data(buffer, 0), len(buffer)
        left = self._max_frames_at_once
        while end_of_data - start >= 4 and left and not self._is_lost:
            left -= 1
            (size,) = _SIZE.unpack_from(buffer, start)
            if not 4 <= size <= self._max_frame_bytes:
                self._reject_size(bytes(buffer[start : start + 16]), size)
                return
            end = start + 4 + size
            if end > end_of_data:
                break
            self._on_frame(bytes(buffer[start + 4 : end]))
            start = self._on_data(buffer, end)
        if self._buffer:
            del self._buffer[:start]
        else:
            self._buffer += buffer[start:]

    def pause_writing(self) -> None:
        """Hold back writers, as the write buffer is full; asyncio calls this."""
        if self._drained is None:
            self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Release writers, as the write buffer has drained; asyncio calls this."""
        self._release_writers()

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(unsent))

    def _release_writers(self) -> None:
        room, self._drained = self._drained, None
        if room is not None and not room.done():
            room.set_result(None)

    def _reject_size(self, start: bytes, size: int) -> None:
        if start[:2] in _TLS_RECORDS:
            self._report_loss("responds in TLS", "it requires a TLS connection")
        elif start[:5] == b"HTTP/":
            self._report_loss("responds in HTTP", "this is not a Kafka listener")
        else:
            reason = f"sent a frame of {size:,} bytes, beginning {start.hex(' ')}"
            self._report_loss(
                reason, "this is not a Kafka listener, or a larger frame than is allowed"
            )

    def _report_loss(self, reason: str, advice: str = "") -> None:
        self._release_writers()
        if not self._is_lost:
            self.abort()
            self._on_lost(reason, advice)


async def flush_closing(timeout_s: float) -> None:
    """Wait until the connections closed in this event loop have sent all; abort slower ones."""
    loop = asyncio.get_running_loop()
    waiting = [connection for connection in _closing if connection._loop is loop]
    if waiting:
        await asyncio.wait([connection._is_sent for connection in waiting], timeout=timeout_s)
    for connection in waiting:
        if not connection._is_sent.done():
            connection.abort()


def format_address(host: str, port: int) -> str:
    """Format an address as `host:port`, or `[host]:port` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
