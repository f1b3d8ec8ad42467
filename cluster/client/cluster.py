"""The target cluster: metadata, coordinators, and connections to its brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Self, TypeVar
from weakref import WeakSet

from construct import Container

from cluster.client.absence import TargetStopped, until_back
from cluster.client.allowed_hosts import AllowedHosts, HostRefused
from cluster.client.auth import Security
from cluster.client.broker_connection import CLIENT_ID, TIMEOUT_S, BrokerConnection
from cluster.client.broker_metadata import Topology, metadata_request
from cluster.client.endpoint import parse_address
from cluster.client.in_flight import Liveness
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api, api_name
from dissector.protocol.error_codes import ERRORS

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.5

_MAX_CONCURRENT_OPENS = 32
"""More would not be quicker, and could overrun a listener's accept queue (often 50)."""

_T = TypeVar("_T")


class CoordinatorType(IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Cluster(Topology):
    """
    The target cluster, created by `Cluster.connect`.

    It connects to the hosts of the given addresses, on any port that the target advertises. Other
    advertised hosts need permission: `AllowedHosts`.

    Attributes:
        versions: APIs of the broker reached last by `_reach_any`: key -> (lowest, highest version).
        features: The features of this broker, with their newest versions.
        addresses: The addresses as given.
        timeout_s: Timeout for connections and responses.
        silence: A failure that shows a silent target: a new connection timed out, and no other data
            arrived meanwhile. None while the target responds.
        waits_for_return: Whether to wait for a target that stopped, for the timeout.
        on_silent: Called once with `silence`.
        connections: Node id -> the cluster's own connection to that broker.
        notify: Called with a message for the user if the target has no coordinators of a kind.
    """

    def __init__(
        self,
        targets: Sequence[str],
        security: Security = Security(),  # noqa: B008 (frozen)
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
    ) -> None:
        super().__init__()
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self._bootstrap = [parse_address(target) for target in targets]
        self.addresses = ",".join(targets)
        self._security = security
        self._hosts = AllowedHosts(targets, security)
        self.timeout_s = timeout_s
        self.silence: ReplayError | None = None
        self.waits_for_return = False
        self._is_absent = False
        self.on_silent: Callable[[ReplayError], None] = lambda _: None
        self.notify: Callable[[str], None] = lambda _: None
        self._no_coordinator: dict[CoordinatorType, float] = {}
        self._reported_kinds: set[CoordinatorType] = set()
        self._client_id = client_id
        self._liveness = Liveness()
        self._coordinators: dict[tuple[int, str], int] = {}
        self.connections: dict[int, BrokerConnection] = {}
        self._running: dict[object, asyncio.Task[Any]] = {}
        self._open_slots = asyncio.Semaphore(_MAX_CONCURRENT_OPENS)
        self._opened: WeakSet[BrokerConnection] = WeakSet()
        self._is_closed = False

    @classmethod
    async def connect(
        cls,
        targets: Sequence[str],
        security: Security = Security(),  # noqa: B008 (frozen)
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
    ) -> Self:
        """
        Connect to the first address that responds, and fetch brokers and topics.

        Args:
            targets: Addresses, `host:port` each.
            security: Encryption and authentication.
            timeout_s: Timeout for connections and responses.
            client_id: The client id of our own requests.

        Raises:
            UsageError: An address is invalid.
            ReplayError: No broker responds, or some brokers are at hosts that are not allowed.
        """
        cluster = cls(targets, security, timeout_s, client_id)
        try:
            await cluster.refresh()
            advertised = ((each.host, each.port) for each in cluster.brokers.values())
            await cluster._hosts.check(advertised, timeout_s)
        except ReplayError as error:
            hangs_up = any(
                connection.failure is not None for connection in cluster.connections.values()
            )
            cluster.close()
            if hangs_up and not error.advice and not security.mechanism:
                raise ReplayError(error.address, error.what, "perhaps it requires SASL") from None
            raise
        except BaseException:
            cluster.close()
            raise
        return cluster

    def close(self) -> None:
        """
        Close every connection opened through this cluster, and each that is just being opened.

        Their users close them earlier, but a user that ends while it connects can't.
        """
        self._is_closed = True
        for task in self._running.values():
            task.cancel()
        for connection in list(self._opened):
            connection.close()
        self.connections.clear()

    async def open(self, node: int, client_id: str | None = None) -> BrokerConnection:
        """
        Open a new connection to a broker; the caller closes it, or `close` does at the end.

        Args:
            node: The id of the broker.
            client_id: The client id of its requests; the cluster's own by default.

        Raises:
            ReplayError: The broker does not exist, is at a host that is not allowed, or can't be
                reached.
        """
        broker = self.brokers.get(node)
        if broker is None:
            raise ReplayError(self.addresses, f"there is no broker {node}")
        name = self._client_id if client_id is None else client_id
        async with self._open_slots:
            return await self._open(broker.host, broker.port, name)

    async def _open(self, host: str, port: int, client_id: str) -> BrokerConnection:
        """Open a connection; on a timeout, detect whether the whole target is silent."""
        if self.silence is not None:
            raise TargetStopped(self.silence.address, self.silence.what, self.silence.advice)
        timeout_s, pulse, begun_ns = self.timeout_s, self._liveness, time.perf_counter_ns()
        try:
            return await self._connect_to(host, port, client_id)
        except HostRefused:
            raise
        except ReplayError as failure:
            left_s = timeout_s - (time.perf_counter_ns() - begun_ns) / 1e9
            if self.waits_for_return and 0 < pulse.last_response_ns < begun_ns:
                back = await self._until_back(host, port, client_id, failure, left_s)
                if back is not None:
                    return back
                left_s = 0
            fell_silent = 0 < pulse.last_response_ns < begun_ns
            if left_s <= 0 and fell_silent and self.silence is None:
                self.silence = failure
                self.on_silent(failure)
            if self.silence is None:
                raise
            raise TargetStopped(failure.address, failure.what, failure.advice) from None

    async def _connect_to(self, host: str, port: int, client_id: str) -> BrokerConnection:
        endpoint = await self._hosts.permit(host, port, self.timeout_s)
        connection = await BrokerConnection.open(
            endpoint, self._security, self.timeout_s, client_id, self._liveness
        )
        self._opened.add(connection)
        if self._is_closed:
            connection.close()
        return connection

    async def _until_back(
        self, host: str, port: int, client_id: str, failure: ReplayError, patience_s: float
    ) -> BrokerConnection | None:
        """Wait for a broker that can't be reached, if none of the others can be either."""
        if not self._is_absent:
            self._is_absent = True
            self.notify(f"{failure}; waiting up to {patience_s:.3g} s for the target")
        places = {(each.host, each.port) for each in self.brokers.values()} - {(host, port)}
        others = [partial(self._connect_to, *place, client_id) for place in sorted(places)]
        connection = await until_back(
            partial(self._connect_to, host, port, client_id), others, patience_s
        )
        self._is_absent &= connection is None
        return connection

    async def refresh(self, names: Collection[str] | None = None) -> None:
        """
        Refresh brokers and topics.

        Args:
            names: Names of the topics to fetch; all by default.

        Raises:
            ReplayError: No broker responds.
        """
        key = None if names is None else frozenset(names)
        await self._once(("metadata", key), lambda: self._refresh(key))

    async def _refresh(self, names: frozenset[str] | None) -> None:
        response = await self.request(None, "Metadata", metadata_request(names))
        self.forget(names)
        self.update(response)
        if not self.brokers:
            raise ReplayError(self.addresses, "reported no brokers", "it may still be starting")

    async def coordinator(self, kind: CoordinatorType, key: str) -> int | None:
        """
        Find the coordinator of a group, a transactional id or a share partition.

        Returns:
            The node id; None if the target refuses to name one: any broker will do then.

        Raises:
            ReplayError: No coordinator in time, or the target does not respond.
        """
        node = self._coordinators.get((kind, key))
        if node in self.brokers:
            return node
        return await self._once((kind, key), lambda: self._find_coordinator(kind, key))

    def forget_coordinator(self, kind: CoordinatorType, key: str) -> None:
        """Drop a cached coordinator, as the broker returned that it is not the coordinator."""
        self._coordinators.pop((kind, key), None)

    async def _find_coordinator(self, kind: CoordinatorType, key: str) -> int | None:
        body = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        failure = f"found no coordinator of {kind.name.lower()} {key!r}"
        async for _ in self.attempts(failure):
            response = await self.request(None, "FindCoordinator", body)
            found = first_coordinator(response)
            if found is None:
                break
            if not found.error_code:
                self._no_coordinator.pop(kind, None)
                if found.node_id not in self.brokers:
                    await self.refresh(())
                if found.node_id in self.brokers:
                    self._coordinators[kind, key] = found.node_id
                    return int(found.node_id)
            elif not ERRORS.get(found.error_code, ("", False))[1]:
                break
            elif self._gives_up_on(kind):
                reason = f"{failure} in {self.timeout_s:g} s"
                raise ReplayError(self.addresses, reason, "allow more time")
        return None

    def _gives_up_on(self, kind: CoordinatorType) -> bool:
        """Return whether no coordinator of a kind has been found for the whole timeout."""
        now = asyncio.get_running_loop().time()
        since = self._no_coordinator.setdefault(kind, now)
        if now - since < self.timeout_s:
            return False
        if kind not in self._reported_kinds:
            self._reported_kinds.add(kind)
            self.notify(
                f"the target has no {kind.name.lower()} coordinator; "
                "further lookups are tried only once"
            )
        return True

    async def request(
        self,
        node: int | None,
        name: str,
        body: Mapping[str, Any],
        client_id: str | None = None,
    ) -> Container:
        """
        Send a request on the cluster's own connection, in the newest version known to both sides.

        Args:
            node: The id of the broker; None for any.
            name: The name of the API.
            body: The body, with the fields of all versions.
            client_id: The client id; the cluster's own by default.

        Raises:
            ReplayError: The broker does not respond, or does not support the API.
        """
        known_api = api(KEYS[name])
        assert known_api is not None
        connection = await (
            self._connection_to(node) if node is not None else self._any_connection()
        )
        low, high = connection.versions.get(known_api.key, (0, -1))
        version = min(high, known_api.request.versions.high)
        if version < max(low, known_api.request.versions.low):
            raise ReplayError(
                connection.address, f"offers no version of {api_name(known_api.key)} that we know"
            )
        response = await connection.request(known_api.key, version, body, client_id=client_id)
        assert response is not None
        return response

    async def _connection_to(self, node: int) -> BrokerConnection:
        connection = self.connections.get(node)
        if connection is None or connection.failure is not None:
            connection = await self._once(("link", node), lambda: self.open(node))
            self.connections[node] = connection
        return connection

    async def _any_connection(self) -> BrokerConnection:
        """Return a connection to any reachable broker: known brokers first, then the addresses."""
        for connection in self.connections.values():
            if connection.failure is None:
                return connection
        return await self._once("any connection", self._reach_any)

    async def _reach_any(self) -> BrokerConnection:
        candidates = [(b.node, b.host, b.port) for b in self.brokers.values()]
        candidates += [(-1, host, port) for host, port in self._bootstrap]
        failures: list[ReplayError] = []
        for node, host, port in candidates:
            try:
                connection = await self._open(host, port, self._client_id)
            except ReplayError as failure:
                failures.append(failure)
                continue
            self.connections[node] = connection
            self.versions, self.features = connection.versions, connection.features
            return connection
        if len(failures) == 1:
            raise failures[0]
        raise ReplayError(self.addresses, f"no broker can be used ({failures[-1]})")

    async def attempts(self, failure: str) -> AsyncIterator[None]:
        """Yield until the timeout, with growing pauses; then raise ReplayError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        pause_s = _FIRST_PAUSE_S
        while loop.time() < deadline:
            yield
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
        raise ReplayError(self.addresses, f"{failure} in {self.timeout_s:g} s", "allow more time")

    async def _once(self, key: object, do: Callable[[], Awaitable[_T]]) -> _T:
        """Share one run of an operation among concurrent callers with the same key."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(do())
            task.add_done_callback(lambda task: self._end(key, task))
        return await asyncio.shield(task)

    def _end(self, key: object, task: asyncio.Task[Any]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # all its callers may be gone, and asyncio would print it


def first_coordinator(response: Container) -> Container | None:
    """
    Return the coordinator of the first key in a FindCoordinator response; None without one.

    Source: FindCoordinatorResponse.json: an array of coordinators from v4 on.
    """
    listed = response.get("coordinators")
    if listed is None:
        return response if "node_id" in response else None
    return listed[0] if listed else None
