"""Messages of logs as packets, in the order of their times."""

from __future__ import annotations

import tempfile
from array import array
from typing import Any, cast

import numpy as np

from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.capture.writing.plain_connections import (
    PlainConnection,
    PlainMessage,
    socket_endpoint,
)
from dissector.kernel.arrays import NONE
from dissector.request_log.log_accounts import Ints
from dissector.request_log.log_messages import LoggedExchange

_MEMORY_BYTES = 32 << 20
"""More than these are on disk, in a temporary file that only this user can read."""

_ETHERNET = 1
_SEGMENT_BYTES = 60_000
_ISN_STEP = 1 << 30
_TRUNCATED_NS = 2_000_000
"""Times of lines are cut to milliseconds."""


class LogConnections:
    """The connections of a capture's logs; each goes on in the next log of its broker."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._states: list[PlainConnection] = []
        self._last_ns: list[int] = []
        self._uses: dict[tuple[Any, ...], int] = {}

    def number_of(self, exchange: LoggedExchange) -> int:
        """
        Return the number of an exchange's connection.

        Raises:
            ValueError: An address is none.
        """
        number = self._numbers.get(exchange.connection)
        if number is None:
            client, broker = map(socket_endpoint, exchange.endpoints)
            used = self._uses.get((client, broker), 0)
            self._uses[client, broker] = used + 1
            state = PlainConnection(client, broker, segment_bytes=_SEGMENT_BYTES)
            state.is_open = not exchange.begins_connection
            state.first_sequence += used * _ISN_STEP
            number = self._numbers[exchange.connection] = len(self._states)
            self._states.append(state)
            self._last_ns.append(0)
        return number

    def delay_ns(self, number: int, exchange: LoggedExchange) -> int:
        """
        Return how much later an exchange was than its line says.

        A broker reads the next request of a connection after its last response.
        """
        first, last = exchange.messages[0], exchange.messages[-1]
        delay_ns = self._last_ns[number] - first.time_ns
        if not 0 < delay_ns <= _TRUNCATED_NS:
            delay_ns = 0
        self._last_ns[number] = max(self._last_ns[number], last.time_ns + delay_ns)
        return delay_ns

    def forget(self, before_ns: int) -> None:
        """Forget connections without an exchange since a time: later ones are other connections."""
        kept = [at for at, last_ns in enumerate(self._last_ns) if last_ns >= before_ns]
        numbers = {number: at for at, number in enumerate(kept)}
        self._numbers = {
            name: numbers[number] for name, number in self._numbers.items() if number in numbers
        }
        self._states = [self._states[number] for number in kept]
        self._last_ns = [self._last_ns[number] for number in kept]
        ends = {(state.a, state.b) for state in self._states}
        self._uses = {each: count for each, count in self._uses.items() if each in ends}

    def state(self, number: int) -> PlainConnection:
        """Return the state of a connection."""
        return self._states[number]


class LogPackets:
    """Collects messages of one log, and writes them as packets."""

    def __init__(self, connections: LogConnections) -> None:
        self._connections = connections
        self._frames: Any = None
        self._size = 0
        self._columns = _new_columns()

    def add(self, exchange: LoggedExchange, account: int) -> None:
        """
        Add the messages of an exchange.

        Args:
            exchange: The exchange.
            account: Number of its account; NONE without one.

        Raises:
            ValueError: An address is none.
        """
        if self._frames is None:
            self._frames = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115
        number = self._connections.number_of(exchange)
        delay_ns = self._connections.delay_ns(number, exchange)
        for each in exchange.messages:
            is_last = each is exchange.messages[-1]
            size = len(each.frame)
            row = (
                *(each.time_ns + delay_ns, self._size, size, number, each.side, each.is_cut),
                account if is_last else NONE,
            )
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)
            self._frames.write(each.frame)
            self._size += size

    def write(self, writer: CaptureWriter, accounts: int) -> Ints:
        """Write the messages added since; return the number of the packet of each account."""
        columns = {name: np.array(each, np.int64) for name, each in self._columns.items()}
        order = np.argsort(columns["time_ns"], kind="stable")
        rows = zip(*(each[order].tolist() for each in columns.values()), strict=True)
        packets = np.full(accounts, NONE)
        for time_ns, at, size, number, side, is_cut, account in rows:
            state = self._connections.state(number)
            self._frames.seek(at)
            data = size.to_bytes(4, "big") + cast(bytes, self._frames.read(size))
            if not state.is_open:
                for packet in state.open():
                    writer.write(time_ns, _ETHERNET, packet, len(packet))
            message = PlainMessage(side, state.sent[side], len(data), len(data))
            for packet in state.message(message, data):
                captured = packet[:-1] if is_cut else packet
                writer.write(time_ns, _ETHERNET, captured, len(packet))
            if account != NONE:
                packets[account] = writer.packets
        if self._frames is not None:
            self._frames.close()
        self._frames, self._size, self._columns = None, 0, _new_columns()
        return packets


def _new_columns() -> dict[str, array[int]]:
    names = ("time_ns", "at", "size", "connection", "side", "is_cut", "account")
    return {name: array("q") for name in names}
