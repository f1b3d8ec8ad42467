"""Listeners of our servers, and what the clients of one server may hold together."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from dissector.protocol.frame_limits import MAX_FRAME_BYTES

MAX_UNFINISHED_BYTES = 2 * MAX_FRAME_BYTES
"""Default limit of the bytes in unfinished frames, for all connections of a server."""

_BACKLOG = 1_024
_ACCEPTS_AT_ONCE = 16
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.05, 1.0


def log_warning(text: str) -> None:
    """Log a warning; without a configuration of logging, Python prints it to stderr."""
    logging.getLogger("kafkashark").warning(text)


def why_not_open(error: Exception) -> str:
    """Return why a listener could not be opened, and what to do."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "address in use: choose another port, or port 0 for a free one"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error)


class Listener:
    """
    Accepts connections at one address, in the running event loop.

    `asyncio.Server` is not used: if the process is out of file handles, it tries a thousand times
    in a row, prints a traceback each time, and gets to nothing else. A listener pauses instead,
    until handles are free again.

    Args:
        make_protocol: Makes the protocol of an accepted connection.
        tls: The TLS context; None for plain TCP.
        warn: Called with a message when connections can't be accepted, once until they can.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None = None,
        warn: Callable[[str], None] = log_warning,
    ) -> None:
        self._make_protocol = make_protocol
        self._tls = tls
        self._warn = warn
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._attaching: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        self._pause_s = _FIRST_PAUSE_S

    async def open(self, host: str, port: int) -> int:
        """
        Listen; return the port, which was chosen if the given one is 0.

        Raises:
            OSError: The address is in use, or not of this machine.
            OverflowError: The port is out of range.
        """
        bound = await self._loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        try:
            return self._listen([each.dup() for each in bound.sockets])
        finally:
            bound.close()

    def open_now(self, address: str, port: int) -> int:
        """Listen as `open` does, at an IP address, which needs no look-up."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return self._listen([socket.create_server((address, port), family=family)])

    def _listen(self, sockets: list[socket.socket]) -> int:
        self._sockets = sockets
        for each in sockets:
            each.setblocking(False)
            each.listen(_BACKLOG)
            self._loop.add_reader(each, self._accept, each)
        return int(sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Listen no more; connections that were just accepted reach their protocols first."""
        for pause in self._pauses.values():
            pause.cancel()
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets.clear()
        for _ in range(3):  # they attach, reach their protocol, and start a task
            await asyncio.sleep(0)
        for task in self._attaching:
            task.cancel()  # a TLS handshake that the client does not finish
        await asyncio.gather(*self._attaching, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        """Accept some waiting connections; the rest waits for the next turn of the loop."""
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # EMFILE, ENFILE, ENOBUFS, ENOMEM
                self._pause(listening, error)
                return
            self._pause_s = _FIRST_PAUSE_S
            connection.setblocking(False)
            task = self._loop.create_task(self._attach(connection))
            self._attaching.add(task)
            task.add_done_callback(self._attaching.discard)

    async def _attach(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # no TLS, or the client has gone
            await self._loop.connect_accepted_socket(self._make_protocol, connection, ssl=self._tls)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        if self._pause_s == _FIRST_PAUSE_S:
            reason = os.strerror(error.errno or 0)
            self._warn(f"no connections can be accepted at the moment: {reason}")
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(self._pause_s, self._resume, listening)
        self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)


class FrameHolder(Protocol):
    """A connection that holds the beginning of a frame."""

    def drop(self) -> None:
        """Close the connection, and forget the bytes."""


class UnfinishedFrames:
    """
    The bytes that all connections of a server hold of frames whose end has not come yet.

    Beyond the limit, the connection that holds most is dropped: it is the one that waits for most,
    and the others go on. If reading paused instead, clients that never finish would stop all.

    Args:
        max_bytes: The limit.

    Attributes:
        total: The bytes held now.
    """

    def __init__(self, max_bytes: int = MAX_UNFINISHED_BYTES) -> None:
        self.total = 0
        self._max_bytes = max_bytes
        self._held: dict[FrameHolder, int] = {}

    def hold(self, holder: FrameHolder, size: int) -> None:
        """Record how much a connection holds; 0 once its frame is complete, or it is closed."""
        self.total += size - self._held.pop(holder, 0)
        if size:
            self._held[holder] = size
        while self.total > self._max_bytes:
            largest = max(self._held, key=self._held.__getitem__)
            self.total -= self._held.pop(largest)
            largest.drop()
