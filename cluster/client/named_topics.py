"""The names of topic ids that a cluster has, for captures that lack them."""

from __future__ import annotations

from uuid import UUID

from cluster.client.cluster import Cluster
from cluster.client.loop_thread import LoopThread


def topic_names(address: str) -> dict[UUID, str]:
    """
    Ask a broker for the names of all topic ids; nothing but this address is contacted.

    Args:
        address: `host:port` of a listener without TLS and login.

    Raises:
        ReplayError: The broker does not respond.
    """
    with LoopThread("topic-names", daemon=True) as loop:
        return loop.run(_asked(address))


async def _asked(address: str) -> dict[UUID, str]:
    cluster = Cluster([address])
    try:
        await cluster.refresh()
        return dict(cluster.topic_names)
    finally:
        cluster.close()
