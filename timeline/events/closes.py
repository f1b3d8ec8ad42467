"""Closed Kafka connections, with the side that closed first and the last exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.tcp.connections import END_REASONS
from dissector.engine.reading.connection_ends import ConnectionEnds
from dissector.engine.tables.exchange_table import Exchanges
from timeline.events.connection_numbering import ConnectionNumbering
from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.waits import SIDES
from timeline.events.words import client_name

MAX_CONNECTIONS = 100_000
"""Maximum number of connections with a retained last exchange."""


class LastExchange(NamedTuple):
    """
    The last captured exchange of a connection.

    Attributes:
        side: Side of the client, 0 or 1.
        status: Status as in `pairs`.
        time_ns: Completion time of the request.
        end_ns: Completion time of the response; without one, of the request.
        evidence: The exchange.
    """

    side: int
    status: str
    time_ns: int
    end_ns: int
    evidence: Evidence


class Close(NamedTuple):
    """
    The end of a connection with exchanges.

    Attributes:
        connection: Number of the connection.
        time_ns: Time of the second FIN, or of the first RST.
        how: `fin` or `rst`.
        closer: Side that closed or reset first: `client` or `broker`.
        last: The last exchange.
    """

    connection: int
    time_ns: int
    how: str
    closer: str
    last: LastExchange

    @property
    def client(self) -> str:
        """Client id and host of the client."""
        return client_name(self.last.evidence.client_id, self.last.evidence.client)

    @property
    def broker(self) -> str:
        """`address:port` of the broker."""
        return self.last.evidence.broker

    @property
    def idle_ns(self) -> int:
        """Time since the last request or response."""
        return self.time_ns - self.last.end_ns


class Closes:
    """Follows connections to their ends."""

    def __init__(self) -> None:
        self._last: States[int, LastExchange | None] = States(Fresh(type(None)), MAX_CONNECTIONS)
        self._ended: States[int, tuple[str, int, int]] = States(_open, MAX_CONNECTIONS)
        self._brokers: set[str] = set()

    def begin(self, ends: ConnectionEnds, numbering: ConnectionNumbering) -> None:
        """Process the ends of connections in a window, before its exchanges."""
        columns = (ends.connection, ends.how, ends.closer, ends.time_ns)
        for position, how, side, time_ns in zip(*(each.tolist() for each in columns), strict=True):
            self._ended.put(numbering.of(position), (END_REASONS[how], side, time_ns))

    def ending(self, number: int, client_side: int) -> tuple[str, str, int]:
        """Return how a connection ended, who closed it first (empty if unknown), and when."""
        how, side, time_ns = self._ended.get(number, ("", -1, 0))
        return how, "" if side < 0 else SIDES[side != client_side], time_ns

    def follow(self, table: Exchanges, observed_at: Callable[[int], ObservedExchange]) -> None:
        """Process the exchanges of a window."""
        _, behind = np.unique(table.connection[::-1], return_index=True)
        for row in (len(table) - 1 - behind).tolist():
            observed = observed_at(row)
            last = LastExchange(
                int(table.client[row]),
                observed.status,
                observed.time_ns,
                observed.end_ns,
                observed.evidence,
            )
            self._last.put(observed.connection, last)
            self._brokers.add(observed.broker)

    def new_brokers(self) -> set[str]:
        """Return brokers added since the last call."""
        brokers, self._brokers = self._brokers, set()
        return brokers

    def ended(self, ends: ConnectionEnds, numbering: ConnectionNumbering) -> Iterator[Close]:
        """Yield the connections that ended in a window, after its exchanges."""
        columns = (ends.connection, ends.time_ns, ends.how, ends.closer)
        for position, time_ns, how, side in zip(*(each.tolist() for each in columns), strict=True):
            number = numbering.of(position)
            last = self._last.pop(number, None)
            if last is not None and side >= 0:
                closer = SIDES[side != last.side]
                yield Close(number, time_ns, END_REASONS[how], closer, last)


def _open(connection: int) -> tuple[str, int, int]:
    return "", -1, 0
