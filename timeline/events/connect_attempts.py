"""Failed connection attempts: reset, or unanswered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.addresses import endpoint_text
from dissector.capture.tcp.connections import ConnectionColumns
from dissector.engine.reading.connection_ends import RST
from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import Ints
from timeline.events.connection_numbering import ConnectionNumbering
from timeline.events.event import Evidence
from timeline.events.states import Fresh, States

PATIENCE_NS = 10 * 10**9
"""Time after the last SYN in which an answer may follow."""

MAX_OPEN = 10_000
"""Limit of pending attempts, and of failed ones to addresses not yet known as brokers."""

"""Columns of a side."""


class Attempt(NamedTuple):
    """
    A failed connection attempt.

    Attributes:
        time_ns: Time of the first SYN.
        end_ns: Time of the last packet.
        client: `address:port` of the client.
        broker: `address:port` of the broker.
        cause: `refused`, or `no answer`.
        evidence: The first packet.
    """

    time_ns: int
    end_ns: int
    client: str
    broker: str
    cause: str
    evidence: Evidence


class ConnectAttempts:
    """
    Finds failed connection attempts.

    Considers brokers only: addresses with exchanges on other connections, or with a given port.
    """

    def __init__(self, *, passes: bool) -> None:
        """Start; attempts have no exchange, so `passes` states whether they pass the filter."""
        self._passes = passes
        self._known = 0
        self._open: Ints = np.zeros(0, np.int64)
        self._brokers: States[str, bool] = States(Fresh(bool))
        self._failed: States[int, Attempt | None] = States(Fresh(type(None)), MAX_OPEN)

    def add_broker(self, address: str) -> None:
        """Add the address of a broker."""
        self._brokers.put(address, True)

    def failed(
        self,
        reading: Reading,
        numbering: ConnectionNumbering,
        now_ns: int,
        *,
        at_end: bool = False,
    ) -> Iterator[Attempt]:
        """Yield new failed attempts; at the end of the capture (`at_end`) no answers follow."""
        connections = reading.streams.connections
        numbers = np.concatenate((self._open, np.arange(self._known, len(connections))))
        self._known = len(connections)
        if len(numbers):
            columns = connections.columns(numbers)
            is_empty = ~columns.bytes.any(axis=1)
            is_open = columns.syn_seen & ~columns.both_syns & is_empty
            is_refused = is_open & (columns.ended == RST) & (columns.packets[:, 1] > 0)
            is_open &= (columns.ended == 0) & (columns.packets[:, 1] == 0)
            is_late = is_open & ((columns.last_ns < now_ns - PATIENCE_NS) | at_end)
            for at in np.flatnonzero(is_refused | is_late).tolist():
                cause = "refused" if is_refused[at] else "no answer"
                number = numbering.of(int(numbers[at]))
                self._failed.put(number, self._attempt(reading, columns, at, number, cause))
            self._open = numbers[is_open & ~is_late][-MAX_OPEN:]
        for number, attempt in list(self._failed.items()):
            if attempt is not None and self._is_broker(attempt, reading.options.ports):
                del self._failed[number]
                yield attempt

    def retain(self, stay: Ints) -> None:
        """Follow a reading that retains some of its connections, in order."""
        self._open = np.flatnonzero(np.isin(stay, self._open))
        self._known = len(stay)

    def _is_broker(self, attempt: Attempt, ports: frozenset[int]) -> bool:
        port = int(attempt.broker.rpartition(":")[2])
        return attempt.broker in self._brokers or port in ports

    def _attempt(
        self, reading: Reading, columns: ConnectionColumns, at: int, number: int, cause: str
    ) -> Attempt:
        client, broker = (
            endpoint_text(*columns.address[at, side].tolist(), int(columns.port[at, side]))
            for side in (0, 1)
        )
        packet = int(reading.streams.connections.first_packets(columns.number[[at]])[0])
        evidence = Evidence(
            reading.source.file_of(packet),
            number,
            client,
            None,
            broker,
            packet + 1,
            None,
            None,
            None,
            self._passes,
        )
        times = int(columns.first_ns[at]), int(columns.last_ns[at])
        return Attempt(*times, client, broker, cause, evidence)
