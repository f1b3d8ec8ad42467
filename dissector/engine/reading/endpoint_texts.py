"""The endpoints of connections as texts, for rows and objects."""

from __future__ import annotations

from dissector.capture.addresses import endpoint_text
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.tables.exchange_table import Ints

MAX_RETAINED = 10_000
"""Limit of the retained connections: exchanges of one usually follow each other."""


class EndpointTexts:
    """The endpoints of the connections of a reading as `address:port`."""

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections
        self._found: dict[int, tuple[str, str]] = {}

    def of(self, connection: int) -> tuple[str, str]:
        """Return both endpoints of a connection."""
        found = self._found.get(connection)
        if found is None:
            if len(self._found) >= MAX_RETAINED:
                self._found.clear()
            first, second = self._connections.endpoints(connection)
            found = self._found[connection] = endpoint_text(*first), endpoint_text(*second)
        return found

    def of_all(self, connections: Ints) -> list[tuple[str, str]]:
        """Return both endpoints of each of these connections."""
        columns = self._connections.columns(connections)
        sides = zip(columns.address.tolist(), columns.port.tolist(), strict=True)
        return [
            (endpoint_text(*addresses[0], ports[0]), endpoint_text(*addresses[1], ports[1]))
            for addresses, ports in sides
        ]

    def forget(self) -> None:
        """Forget all: the connections get other numbers."""
        self._found.clear()
