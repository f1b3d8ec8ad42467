"""Decides which connections lead to brokers: a known broker needs fewer responses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np

from dissector.capture.columns import Int64s, UInt64s
from dissector.capture.tcp.connections import Connection, ConnectionColumns, Endpoint
from dissector.engine.correlation.state_tables import StateTables


class Connections(Protocol):
    """Connections of a capture by number; it may grow."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Connection: ...

    def columns(self, numbers: Int64s, /) -> ConnectionColumns:
        """Return the present columns of some connections."""


class Brokers:
    """
    The brokers of a capture, and the connections that ended with too few responses to prove one.

    Attributes:
        early_decisions: Number of times that doubtful connections were decided before the end, for
            lack of room.
    """

    def __init__(self, tables: StateTables, connections: Connections) -> None:
        """Start a capture."""
        self._tables = tables
        self._connections = connections
        self._known: UInt64s = np.zeros((0, 4), np.uint64)
        self._doubtful: list[int] = []
        self.early_decisions = 0

    def known(self) -> frozenset[tuple[int, Endpoint]]:
        """Return the brokers with emitted exchanges, by network and endpoint."""
        self.take_emitters()
        rows = self._known.tolist()
        return frozenset((network, (high, low, port)) for network, high, low, port in rows)

    def take_emitters(self) -> None:
        """Take the connections with emitted exchanges from the tables."""
        tables = self._tables
        emitters = tables.emitters[: tables.counts.emitter_count]
        columns = self._connections.columns(tables.numbers[emitters])
        rows, side = np.arange(len(emitters)), 1 - tables.connections["client"][emitters]
        address, port = columns.address[rows, side], columns.port[rows, side]
        endpoints = np.column_stack(
            [columns.network.astype(np.uint64), address, port.astype(np.uint64)]
        )
        # Without `return_index` numpy imports a module, which takes 10 ms.
        every = np.concatenate((self._known, endpoints))
        self._known = np.unique(every, axis=0, return_index=True)[0]
        tables.counts.emitter_count = 0

    def take_doubtful(self) -> None:
        """Take the connections that ended in doubt from the tables."""
        tables = self._tables
        self._doubtful += tables.numbers[tables.doubtful[: tables.counts.doubtful_count]].tolist()
        tables.counts.doubtful_count = tables.counts.doubtful_bytes = 0

    def judge(
        self,
        brokers: Collection[tuple[int, Endpoint]] | None,
        numbers: Collection[int] | None = None,
    ) -> Iterator[tuple[int, int]]:
        """
        Judge doubtful connections; their next end will conclude them.

        Args:
            brokers: Of the capture; None: all that may be brokers are taken for brokers.
            numbers: Only these connections are judged; None: all.

        Yields:
            Each one with its doubtful side.
        """
        waiting = self._doubtful
        self._doubtful = []
        for number in waiting:
            if numbers is not None and number not in numbers:
                self._doubtful.append(number)
                continue
            row = self._tables.connection_rows[self._tables.places[number]]
            connection = self._connections[number]
            ends = (connection.network, connection.a), (connection.network, connection.b)
            other, server = ends[1 - row.doubtful_side], ends[row.doubtful_side]
            row.is_judged = True
            row.is_broker = brokers is None or (server in brokers and other not in brokers)
            yield number, row.doubtful_side

    def forget(self, number: int) -> None:
        """Drop a connection."""
        self._doubtful = [each for each in self._doubtful if each != number]

    def retain(self, new_numbers: Int64s) -> None:
        """Drop the connections with a negative new number; renumber the others."""
        renumbered = (int(new_numbers[number]) for number in self._doubtful)
        self._doubtful = [number for number in renumbered if number >= 0]
