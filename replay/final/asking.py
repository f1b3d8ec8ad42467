"""Asks the target until what it does in the background is done, for at most one timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cluster.client.cluster import Cluster

_T = TypeVar("_T")

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.5


async def ask_until(
    cluster: Cluster, ask: Callable[[], Awaitable[_T]], is_settled: Callable[[_T], bool]
) -> _T:
    """
    Return the first settled answer, or the last one within a timeout of the target.

    Args:
        cluster: The target.
        ask: Asks it once.
        is_settled: Whether an answer will not change by itself.

    Raises:
        ReplayError: The target does not answer.
    """
    loop, pause_s = asyncio.get_running_loop(), _FIRST_PAUSE_S
    deadline = loop.time() + cluster.timeout_s
    answer = await ask()
    while not is_settled(answer) and loop.time() < deadline:
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
        answer = await ask()
    return answer
