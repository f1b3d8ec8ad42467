"""Fallback to an embedded broker, started at the first miss."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

from construct import Container

from cluster.mock.embedded_broker import EmbeddedBroker
from serve.answers.answerer import Versions
from serve.answers.client_request import ClientRequest
from serve.fallback.upstream_cluster import UpstreamCluster

NAME = "embedded broker"


def is_installed() -> bool:
    """Return whether librdkafka's mock cluster is installed."""
    return find_spec("confluent_kafka") is not None


class EmbeddedCluster:
    """An embedded broker with a client."""

    name = NAME

    def __init__(self) -> None:
        self._broker: EmbeddedBroker | None = None
        self._client: UpstreamCluster | None = None
        self._starting = asyncio.Lock()

    async def prepare(self) -> Versions:
        """Do nothing: the broker starts when it is needed."""
        return {}

    async def answer(self, request: ClientRequest) -> Container:
        """Return the broker's canonical response; see `UpstreamCluster.answer`."""
        async with self._starting:
            if self._client is None:
                broker = EmbeddedBroker()
                self._broker = await asyncio.to_thread(broker.__enter__)
                self._client = UpstreamCluster(broker.addresses, name=NAME)
        return await self._client.answer(request)

    def forget(self, connection: int) -> None:
        """Close the connections of a client that is gone."""
        if self._client is not None:
            self._client.forget(connection)

    async def close(self) -> None:
        """Stop the broker."""
        if self._client is not None:
            await self._client.close()
        if self._broker is not None:
            await asyncio.to_thread(self._broker.__exit__)
