"""A target that stops: waits for it, unless another of its brokers responds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from cluster.client.broker_connection import BrokerConnection
from dissector.errors import ReplayError

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.05, 1.0


class TargetStopped(ReplayError):
    """No broker of the target responds any more; what should have been sent was not."""


Opening = Callable[[], Awaitable[BrokerConnection]]
"""Opens a connection; raises ReplayError."""


async def until_back(
    broker: Opening, others: Sequence[Opening], timeout_s: float
) -> BrokerConnection | None:
    """
    Open a connection to a broker that refuses them, as soon as it accepts them again.

    Args:
        broker: Connects to the broker.
        others: Connect to the other brokers of the target: if one responds, the target has not
            stopped, and its other brokers take over.
        timeout_s: How long to wait.

    Returns:
        The connection; None if another broker responds, or after the timeout.
    """
    loop = asyncio.get_running_loop()
    deadline, pause_s = loop.time() + timeout_s, _FIRST_PAUSE_S
    while loop.time() < deadline:
        for other in others:
            with suppress(ReplayError):
                (await other()).close()
                return None
        await asyncio.sleep(min(pause_s, max(deadline - loop.time(), 0)))
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
        with suppress(ReplayError):
            return await broker()
    return None
