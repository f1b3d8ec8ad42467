"""Serving until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from serve.server.cassette_server import CassetteServer


def serve_until_signal(
    server: CassetteServer, exchange_count: int, tell: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `tell` gets the addresses."""
    asyncio.run(_serve(server, exchange_count, tell))


async def _serve(server: CassetteServer, exchange_count: int, tell: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    serving = loop.create_task(_start_and_wait(server, exchange_count, tell))
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, serving.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        await server.close()


async def _start_and_wait(
    server: CassetteServer, exchange_count: int, tell: Callable[[str], None]
) -> None:
    await server.start()
    for node, address in server.addresses.items():
        tell(f"broker {node} listens at {address}")
    tell(f"serving {exchange_count:,} captured exchanges; press Ctrl-C to end")
    await asyncio.get_running_loop().create_future()
