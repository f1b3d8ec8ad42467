"""Fallback to another cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from construct import Container

from cluster.client.allowed_hosts import HostRefused
from cluster.client.auth import Security
from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import Cluster
from cluster.client.fan_in import merge
from cluster.client.pending_request import patience_s
from cluster.client.router import route
from cluster.conversion.version_converter import choose_version
from dissector.errors import ReplayError
from dissector.protocol.apis import api
from serve.answers.answerer import Versions
from serve.answers.client_request import ClientRequest
from serve.answers.foreign_topics import TOPIC_ARRAYS
from serve.forms.canonical_body import (
    TopicNames,
    canonical_schema,
    canonical_version,
    converted,
)

_TIMEOUT_S = 10.0
_SESSIONLESS = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}
"""Values of a Fetch request without a session (KIP-227)."""


class UpstreamCluster:
    """
    A client of another cluster.

    Args:
        targets: Addresses of the cluster.
        security: Encryption and authentication.
        name: Name in the report.
    """

    def __init__(
        self,
        targets: Sequence[str],
        security: Security = Security(),  # noqa: B008 (frozen)
        name: str = "upstream",
    ) -> None:
        self.name = name
        self._targets = targets
        self._security = security
        self._cluster: Cluster | None = None
        self._connecting = asyncio.Lock()
        self._connections: dict[tuple[int, int], BrokerConnection] = {}
        self._topics = TopicNames()

    async def prepare(self) -> Versions:
        """
        Check the hosts of the cluster ahead; one that can't be reached yet may be so later.

        Returns:
            The versions of APIs that it offers; empty if it can't be reached yet.

        Raises:
            HostRefused: The cluster names hosts that are not allowed.
        """
        try:
            return (await self._connected()).versions
        except HostRefused:
            raise
        except ReplayError:
            return {}  # the first miss tries again, and reports it

    async def answer(self, request: ClientRequest) -> Container:
        """
        Return the cluster's canonical response.

        Raises:
            ReplayError: The cluster is unreachable, or lacks the API.
            RewriteError: The version of the cluster cannot express the request.
        """
        cluster = await self._connected()
        key, canonical = request.api_key, canonical_version(request.api_key)
        found = api(key)
        assert found is not None
        version = choose_version(found, min(request.version, canonical), cluster.versions)
        if version is None:
            raise ReplayError(cluster.addresses, f"does not offer {request.api}")
        body = Container(request.body)
        if request.api == "Fetch":
            body |= _SESSIONLESS
        await self._learn_topics(cluster, request)
        sent = converted(found.request, body, canonical, version, self._topics)
        parts = await route(key, version, sent, cluster, cluster.any_node)
        answers = await asyncio.gather(
            *(self._ask(cluster, request, node, version, part) for node, part in parts)
        )
        schema = canonical_schema(key, "response")
        if not all(answers):
            return Container(responses=[])  # a Produce request with acks = 0
        merged = merge(schema, version, [each for each in answers if each is not None])
        return converted(schema, merged, version, canonical, self._topics)

    def forget(self, connection: int) -> None:
        """Close the connections of a client that is gone."""
        for at in [each for each in self._connections if each[0] == connection]:
            self._connections.pop(at).close()

    async def close(self) -> None:
        """Close all connections."""
        if self._cluster is not None:
            self._cluster.close()

    async def _connected(self) -> Cluster:
        async with self._connecting:
            if self._cluster is None:
                self._cluster = await Cluster.connect(self._targets, self._security, _TIMEOUT_S)
            return self._cluster

    async def _learn_topics(self, cluster: Cluster, request: ClientRequest) -> None:
        """Fetch metadata of unknown topics in a request."""
        arrays = TOPIC_ARRAYS.get(request.api)
        if arrays is None or request.api == "Metadata":
            return
        names = {each[arrays.name] for each in request.body[arrays.asked] or ()}
        if not names <= cluster.topics.keys():
            await cluster.refresh(names)

    async def _ask(
        self, cluster: Cluster, request: ClientRequest, node: int, version: int, body: Container
    ) -> Container | None:
        at = request.connection, node
        connection = self._connections.get(at)
        if connection is None or not connection.can_send:
            # One connection per client, as brokers process the requests of a connection in series.
            connection = self._connections[at] = await cluster.open(node)
        is_answered = request.api != "Produce" or bool(body.acks)
        return await connection.request(
            request.api_key, version, body, is_answered, patience_s(body), request.client_id
        )
