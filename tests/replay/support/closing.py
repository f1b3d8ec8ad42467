"""The end of servers in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


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
