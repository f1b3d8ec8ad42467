"""The server's side of a connection that carries frames, with bounds on what a client may cause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cluster.client.listener import UnfinishedFrames
from cluster.client.transport import FrameProtocol

_FRAMES_AT_ONCE = 64
"""Frames of one connection that are processed before others get their turn."""

_TURN = "others have their turn"


class ServedFrames(FrameProtocol):
    """
    A connection to a client, or the connection behind it to the server that it is passed on to.

    It reads no more while frames wait for their turn, and while its holder says so (`pause`).

    Args:
        on_frame: Called with each frame, without its size field.
        on_lost: Called once when the connection is lost, with the reason and advice.
        unfinished: Counts the bytes of unfinished frames of all connections.
        on_full: Called with true when the peer does not read what is sent to it, and with false
            when it does again.
    """

    def __init__(
        self,
        on_frame: Callable[[bytes], None],
        on_lost: Callable[[str, str], None],
        unfinished: UnfinishedFrames,
        on_full: Callable[[bool], None] = lambda is_full: None,
    ) -> None:
        super().__init__(on_frame, on_lost, max_frames_at_once=_FRAMES_AT_ONCE)
        self._unfinished = unfinished
        self._on_full = on_full
        self._pauses: set[str] = set()

    def pause(self, reason: str) -> None:
        """Read no more until `resume` with the same reason."""
        self._pauses.add(reason)
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self, reason: str) -> None:
        """Read again, unless there are other reasons not to."""
        if reason in self._pauses:
            self._pauses.discard(reason)
            self._go_on()

    def drop(self) -> None:
        """Close the connection, and forget the bytes of an unfinished frame."""
        self._buffer.clear()
        self._report_loss("sent too many bytes of unfinished frames")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this."""
        super().connection_made(transport)
        if self._pauses and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss of the connection; asyncio calls this."""
        self._unfinished.hold(self, 0)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Split received bytes into frames; asyncio calls this."""
        if self._pauses:  # early Pythons 3.11 read on if they were paused in `connection_made`
            self._buffer += data
            self._unfinished.hold(self, len(self._buffer))
            return
        super().data_received(data)
        self._unfinished.hold(self, 0 if self._is_lost else len(self._buffer))
        if self._has_whole_frame:
            self.pause(_TURN)
            self._loop.call_soon(self.resume, _TURN)

    def pause_writing(self) -> None:
        """Tell that the peer does not read; asyncio calls this."""
        super().pause_writing()
        self._on_full(True)

    def resume_writing(self) -> None:
        """Tell that the peer reads again; asyncio calls this."""
        super().resume_writing()
        self._on_full(False)

    @property
    def _has_whole_frame(self) -> bool:
        """Whether a frame waits; one of an invalid size waits to be refused."""
        size = int.from_bytes(self._buffer[:4], "big", signed=True)
        return len(self._buffer) >= max(size, 0) + 4

    def _go_on(self) -> None:
        """Process what has waited, then read again."""
        if self._pauses or self._is_lost or self._transport is None:
            return
        if self._buffer:
            self.data_received(b"")
        if not self._pauses and not self._is_lost:
            self._transport.resume_reading()
