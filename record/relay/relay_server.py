"""Listeners in place of the brokers of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from cluster.client.allowed_hosts import AllowedHosts
from cluster.client.endpoint import parse_address
from cluster.client.listener import Listener, UnfinishedFrames, why_not_open
from cluster.client.transport import format_address
from dissector.errors import ReplayError, UsageError
from record.packets.packet_sink import PacketSink
from record.relay.conversation import Address
from record.relay.fault_injector import LiveFaults
from record.relay.relay_settings import RelayCounts, RelaySettings
from record.relay.relayed_connection import RelayedConnection
from serve.faults.fault import Faults

_ANY = ("0.0.0.0", "::")


class RelayServer:
    """
    Forwards clients to a cluster, in the running event loop.

    Each broker gets a listener when a response names it, and clients get that address.

    Args:
        settings: The cluster, the listeners and limits.
        sink: Takes the bytes to record.

    Attributes:
        counts: What was seen.
        bootstrap: The address for clients, `host:port`.
    """

    def __init__(self, settings: RelaySettings, sink: PacketSink) -> None:
        self.counts = RelayCounts()
        self.bootstrap = ""
        self._settings = settings
        self._sink = sink
        self._hosts = AllowedHosts(settings.targets, settings.security)
        self._ports: dict[Address, int] = {}
        self._listeners: list[Listener] = []
        self._connections: set[RelayedConnection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._unfinished = UnfinishedFrames()
        found = Faults(settings.faults, self.counts.faults)
        self._faults = LiveFaults(found) if settings.faults else None
        self._has_warned = False

    @property
    def brokers(self) -> int:
        """The number of brokers with a listener."""
        return len(self._ports)

    async def start(self) -> None:
        """
        Open the listeners of the given addresses; brokers behind them get theirs when named.

        Raises:
            UsageError: An address is in use, or is none.
        """
        host, port = self._settings.host, self._settings.port
        names: list[str] = []
        for index, target in enumerate(self._settings.targets):
            broker = parse_address(target)
            if broker in self._ports:
                continue
            listener = self._new_listener(broker)
            try:
                opened = await listener.open(host, port + index if port else 0)
            except (OSError, OverflowError) as error:
                raise UsageError(
                    f"{format_address(host, port + index)}: {why_not_open(error)}"
                ) from None
            self._ports[broker] = opened
            names.append(format_address(_reachable(host), opened))
        self.bootstrap = ",".join(names)

    async def close(self) -> None:
        """Close listeners and connections."""
        for listener in self._listeners:
            await listener.close()
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        for each in list(self._connections):
            each.abort()
        await asyncio.sleep(0)

    def listener_of(self, broker: Address, local_host: str) -> Address | None:
        """Return the address at which clients reach a broker; None keeps the broker's own."""
        port = self._ports.get(broker)
        if port is None:
            port = self._open(broker, local_host)
        return None if port is None else (local_host, port)

    def _open(self, broker: Address, local_host: str) -> int | None:
        if not 0 < broker[1] < 1 << 16 or len(self._ports) >= self._settings.max_brokers:
            self._warn_once(f"{format_address(*broker)} gets no listener")
            return None
        listener = self._new_listener(broker)
        host, first = self._settings.host, self._settings.port
        host = host if host in _ANY else local_host
        wanted = first + len(self._ports) if first else 0
        for port in (wanted, 0):
            with suppress(OSError, OverflowError):
                self._ports[broker] = found = listener.open_now(host, port)
                name = format_address(local_host, found)
                self._settings.warn(f"{format_address(*broker)} is reached at {name}")
                return found
        self._warn_once(f"{format_address(*broker)} gets no listener: no port is free")
        return None

    def _warn_once(self, text: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._settings.warn(text)

    def _new_listener(self, broker: Address) -> Listener:
        make: Callable[[], asyncio.BaseProtocol] = partial(self._accept, broker)
        listener = Listener(make, self._settings.tls, self._settings.warn)
        self._listeners.append(listener)
        return listener

    def _accept(self, broker: Address) -> asyncio.BaseProtocol:
        connection = RelayedConnection(
            self.counts.connections,
            self._settings,
            self._sink,
            self.counts,
            self.listener_of,
            self._faults,
            self._unfinished,
        )
        self.counts.connections += 1
        self._connections.add(connection)
        connection.on_end = self._connections.discard
        task = asyncio.get_running_loop().create_task(self._run(connection, broker))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return connection.client

    async def _run(self, connection: RelayedConnection, broker: Address) -> None:
        name = format_address(*broker)
        try:
            await connection.run(await self._hosts.permit(*broker, self._settings.timeout_s))
        except ReplayError as error:
            if not self.counts.failed[name]:
                self._settings.warn(str(error))
            self.counts.failed[name] += 1
            connection.abort()


def _reachable(host: str) -> str:
    """Return a host to connect to, of one to listen at."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
