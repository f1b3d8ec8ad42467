"""The end of servers in tests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from tests.waiting import PATIENCE_S


async def close_listeners(servers: Iterable[asyncio.Server]) -> None:
    """
    Close listeners and wait for the handlers of accepted connections to start.

    `Server.close` alone would leak the sockets of connections that were accepted in this very
    iteration of the event loop: asyncio refuses to attach them to a closed server.
    """
    servers = list(servers)
    loop = asyncio.get_running_loop()
    for server in servers:
        for listener in server.sockets:
            loop.remove_reader(listener.fileno())
    for _ in range(3):  # accepted connections attach, reach their protocol, and start a task
        await asyncio.sleep(0)
    for server in servers:
        server.close()


def assert_closed(client: socket.socket) -> None:
    """Read what a server still sends, until it ends the connection."""
    client.settimeout(PATIENCE_S)
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
