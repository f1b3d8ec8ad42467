"""The probed broker: its offered versions, its cluster, and the dispatch of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from cluster.client.allowed_hosts import AllowedHosts
from cluster.client.auth import Security
from cluster.client.cluster import CoordinatorType, first_coordinator
from cluster.client.endpoint import parse_address
from conform.probe.raw_connection import RawConnection
from conform.probe.raw_exchange import RawExchange
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import Facts, collect

CLIENT_SOFTWARE = {"client_software_name": "kafkashark", "client_software_version": "conform"}
"""Fields of ApiVersions about the client."""

TRANSIENT_ERRORS = frozenset(
    {
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
    }
)
"""Transient errors, for which requests are retried."""

CONTROLLER_APIS = frozenset(
    {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
        "UpdateFeatures",
    }
)
"""
APIs for the controller; other brokers may reject them. Since KIP-590 any broker of Kafka forwards
them, and Metadata names one of the brokers as the controller.
"""

_NOT_CONTROLLER = "NOT_CONTROLLER"
RETURN_TIMEOUTS = 3
"""Waiting time for an unavailable broker, as a multiple of the timeout."""

_PAUSE_S = 0.1
MAX_CLOSE_WAIT_S = 3.0
_MAX_TIMEOUTS = 3


class NotJudged(Exception):
    """A case can't be judged here; the text gives the reason."""


class NoResponse(NotJudged):
    """
    A request got no response, which the rest of the probe requires.

    Attributes:
        exchange: The request.
    """

    def __init__(self, exchange: RawExchange) -> None:
        super().__init__(f"{exchange}: {exchange.failure}")
        self.exchange = exchange


def require_response(exchange: RawExchange) -> RawExchange:
    """
    Return an exchange that the rest of a probe needs.

    Raises:
        NoResponse: There was no response.
    """
    if exchange.failure:
        raise NoResponse(exchange)
    return exchange


class BrokerLost(NotJudged):
    """The broker became unavailable, and did not recover in time."""


class Target:
    """
    The broker at one address, created by `Target.connect`, and the brokers in its metadata.

    Attributes:
        address: The address, as the user gave it.
        security: How connections are encrypted and authenticated.
        timeout_s: Timeout of each response.
        allow_writes: Whether the probes may create topics, groups and transactions.
        offered: API key -> lowest and highest version.
        nodes: Node id -> host and port, from Metadata.
        controller: Node id of the controller, from Metadata; None where that is unknown.
        timeouts: Number of requests without a response since `reset_counters`.
        closed_connections: Number of connections that the brokers ended since `reset_counters`.
        last_sent: The last data sent since `reset_counters`.
    """

    def __init__(
        self, target: str, security: Security, timeout_s: float, allow_writes: bool
    ) -> None:
        self.address = target
        self.security = security
        self.timeout_s = timeout_s
        self.allow_writes = allow_writes
        self.offered: dict[int, tuple[int, int]] = {}
        self.nodes: dict[int, tuple[str, int]] = {}
        self.controller: int | None = None
        self.timeouts = self.closed_connections = 0
        self.last_sent = b""
        self._api_versions_version = 3
        self._host_port = parse_address(target)
        self._hosts = AllowedHosts([target], security)
        self._late_wait_s = 0.0
        self._connections: dict[int | None, RawConnection] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @classmethod
    async def connect(
        cls, target: str, security: Security, timeout_s: float, allow_writes: bool
    ) -> Self:
        """
        Connect to a broker, and request its versions and the brokers of its cluster.

        Raises:
            UsageError: The target is not an address.
            ReplayError: It can't be reached, is not a broker, or names hosts that are not allowed.
        """
        self = cls(target, security, timeout_s, allow_writes)
        await self._negotiate()
        if KEYS["Metadata"] in self.offered:
            await self._refresh_metadata()
            try:
                await self._hosts.check(self.nodes.values(), timeout_s)
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Close the reused connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def reset_counters(self) -> None:
        """Reset the counters before the next rule."""
        self.timeouts = self.closed_connections = 0
        self.last_sent = b""

    async def unavailable_reason(self) -> str:
        """Return why the broker can't be used; empty: it responds on a new connection."""
        try:
            endpoint = await self._hosts.permit(*self._host_port, self.timeout_s)
            connection = await RawConnection.open(
                endpoint, Security(self.security.tls), self.timeout_s
            )
        except ReplayError as error:
            return f"it {error.what}"
        try:
            exchange = await connection.request(
                "ApiVersions", self._api_versions_version, CLIENT_SOFTWARE
            )
        finally:
            connection.close()
        return f"{exchange} on a new connection: {exchange.failure}" if exchange.failure else ""

    async def wait_for_return(self) -> bool:
        """Wait for the broker, and refresh its metadata; return whether it is available again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETURN_TIMEOUTS * self.timeout_s
        self._late_wait_s = 0.0
        self.close()
        self._coordinators.clear()
        while await self.unavailable_reason():
            if loop.time() > deadline:
                return False
            await asyncio.sleep(_PAUSE_S)
        await self._refresh_metadata()
        return True

    async def has_returned(self) -> bool:
        """
        Return whether a lost broker is available after all, and refresh its metadata.

        All calls together wait no longer than `wait_for_return` does.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        if self._late_wait_s > RETURN_TIMEOUTS * self.timeout_s or await self.unavailable_reason():
            self._late_wait_s += loop.time() - begin
            return False
        await self._refresh_metadata()
        return True

    @property
    def close_timeout_s(self) -> float:
        """Waiting time for the end of a connection."""
        return min(self.timeout_s, MAX_CLOSE_WAIT_S)

    def versions(self, name: str, since: int = 0, until: int = 32767) -> range:
        """Return the versions of an API, within bounds, that are both offered and declared."""
        declaration = api(KEYS[name])
        low, high = self.offered.get(KEYS[name], (0, -1))
        assert declaration is not None
        declared = declaration.request.versions
        return range(max(low, declared.low, since), min(high, declared.high, until) + 1)

    def newest_version(self, name: str, since: int = 0, until: int = 32767) -> int:
        """
        Return the newest version of an API, within bounds, that is both offered and declared.

        Raises:
            NotJudged: No coordinator answered.
        """
        versions = self.versions(name, since, until)
        if not versions:
            bounds = "" if (since, until) == (0, 32767) else " in a required version"
            raise NotJudged(f"the broker offers no {name}{bounds}")
        return versions[-1]

    async def open_connection(
        self, node: int | None = None, *, authenticated: bool = True
    ) -> RawConnection:
        """
        Open a separate connection; the caller closes it.

        Args:
            node: The broker to connect to; None: the target's address.
            authenticated: Whether to authenticate where the security has a mechanism.

        Raises:
            ReplayError: It can't be reached, or its host is not allowed.
        """
        host, port = self._host_port if node is None else self.nodes.get(node, self._host_port)
        endpoint = await self._hosts.permit(host, port, self.timeout_s)
        security = self.security if authenticated else Security(self.security.tls)
        connection = await RawConnection.open(endpoint, security, self.timeout_s, self.offered)
        connection.on_sent, connection.on_end = self._record_sent, self._record_closed
        return connection

    def _record_sent(self, data: bytes) -> None:
        self.last_sent = data

    def _record_closed(self) -> None:
        self.closed_connections += 1

    async def request(
        self,
        name: str,
        fields: Mapping[str, Any],
        version: int | None = None,
        node: int | None = None,
        *,
        retry: bool = True,
    ) -> RawExchange:
        """
        Send a request on a reused connection; retry while the broker returns a transient error.

        Args:
            name: Name of the API.
            fields: Fields of any version.
            version: The newest by default.
            node: The broker to send to; None: the controller for its APIs, else the target's
                address.
            retry: Whether to retry after transient errors.

        Raises:
            NotJudged: The API is not offered.
            ReplayError: The broker can't be reached.
        """
        chosen_version = self.newest_version(name) if version is None else version
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        is_routed = node is None and name in CONTROLLER_APIS
        while True:
            receiver = self.controller if is_routed else node
            exchange = await (await self._connection_to(receiver)).request(
                name, chosen_version, fields
            )
            if exchange.failure:
                self._connections.pop(receiver).close()
                self._record_timeout(exchange)
            errors = error_names(exchange)
            if is_routed and _NOT_CONTROLLER in errors and loop.time() < deadline:
                await self._refresh_metadata()
                if self.controller != receiver:
                    continue
            if not (retry and errors & TRANSIENT_ERRORS) or loop.time() > deadline:
                return exchange
            await asyncio.sleep(_PAUSE_S)

    def _record_timeout(self, exchange: RawExchange) -> None:
        """Abort a rule after several missing responses: each costs the whole timeout."""
        if exchange.is_timeout:
            self.timeouts += 1
            if self.timeouts > _MAX_TIMEOUTS:
                raise NotJudged(f"the broker did not answer {_MAX_TIMEOUTS} requests before")

    async def coordinator(self, kind: CoordinatorType, key: str) -> int:
        """
        Return the node id of the coordinator of a group or a transactional id.

        Raises:
            NoResponse: The broker does not respond.
            NotJudged: The broker names none.
        """
        node_id = self._coordinators.get((kind, key))
        if node_id is not None:
            return node_id
        since = 1 if kind is CoordinatorType.TRANSACTION else 0
        version = self.newest_version("FindCoordinator", since)
        fields = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        exchange = await self.request("FindCoordinator", fields, version)
        require_response(exchange)
        found = None if exchange.body is None else first_coordinator(exchange.body)
        if found is None or found.error_code:
            reason = (
                error_name(found.error_code) if found is not None else "the response names none"
            )
            raise NotJudged(f"there is no coordinator of a {kind.name.lower()}: {reason}")
        self._coordinators[kind, key] = found.node_id
        self.nodes.setdefault(found.node_id, (found.host, found.port))
        return int(found.node_id)

    async def _connection_to(self, node: int | None) -> RawConnection:
        connection = self._connections.get(node)
        if connection is None or connection.end_reason:
            connection = self._connections[node] = await self.open_connection(node)
        return connection

    async def _negotiate(self) -> None:
        """Request the offered versions in v3; in v0 where v3 is rejected or unreadable."""
        connection = await self.open_connection(authenticated=False)
        try:
            exchange = await connection.request(
                "ApiVersions", self._api_versions_version, CLIENT_SOFTWARE
            )
            if exchange.field("error_code") == 35 or exchange.body is None:
                connection.close()
                connection = await self.open_connection(authenticated=False)
                self._api_versions_version = 0
                exchange = await connection.request("ApiVersions", 0, CLIENT_SOFTWARE)
        finally:
            connection.close()
        if exchange.body is None or exchange.body.error_code:
            reason = (
                exchange.failure or ", ".join(error_names(exchange)) or "the response can't be read"
            )
            raise ReplayError(connection.address, f"ApiVersions failed: {reason}")
        self.offered = {
            each.api_key: (each.min_version, each.max_version) for each in exchange.body.api_keys
        }

    async def _refresh_metadata(self) -> None:
        """Request the brokers of the cluster and its controller."""
        exchange = await self.request("Metadata", {"topics": []})
        self.nodes = {
            each.node_id: (each.host, each.port) for each in exchange.field("brokers") or ()
        }
        controller = exchange.field("controller_id")
        self.controller = controller if controller in self.nodes else None


def error_names(exchange: RawExchange) -> set[str]:
    """Return the names of the errors in a response."""
    facts = Facts()
    message = exchange.response
    if message is not None and message.schema is not None and message.body is not None:
        collect(message.schema, message.api_version or 0, message.body, facts)
    return set(facts.errors)
