"""The states of connections: rows for those that go on, and packed ones for those at rest."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import Any

import numpy as np

from dissector.capture.columns import NEVER
from dissector.capture.tcp.live_rows import IDLE_NS
from dissector.engine.correlation.correlator_rows import ConnectionRow, Mode
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.kernel.named_rows import RowArray, Rows, dtype_of, rows_of
from dissector.kernel.numbered_values import NumberedValues
from dissector.kernel.packed_rows import BEFORE, NOWHERE, PackedRows

_MAX_WOKEN = 16
_BASES = {
    "order": BEFORE,
    "newest_time_ns": BEFORE,
    "sides.0.base": "sides.0.scanned",
    "sides.0.scanned": "sides.0.skipped",
    "sides.1.entered": "sides.0.entered",
    **dict.fromkeys(("mode", "client", "sides.0.in_sync", "sides.1.in_sync"), "has_emitted"),
}
"""The fields of connections at rest that resemble other fields."""


class ConnectionStates:
    """
    The states of the connections that have started.

    Attributes:
        connections: A `ConnectionRow` for each connection but those at rest; there may be room for
            more.
        numbers: The number of each.
        resting: A `ConnectionRow` for each connection at rest: it has ended or is silent, and
            nothing of it is kept. Its places are the rows of all.
        lock: Held while rows move, and while they are read by number, as threads may.
    """

    _rows: tuple[RowArray, Rows[ConnectionRow]]

    def __init__(self) -> None:
        self.connections: RowArray = np.zeros(0, dtype_of(ConnectionRow))
        self.numbers: Ints = np.zeros(0, np.int64)
        self.resting = PackedRows(ConnectionRow, _BASES)
        self.lock = RLock()
        self._rows = self.connections, rows_of(self.connections, ConnectionRow)

    def __getstate__(self) -> dict[str, Any]:
        left_out = "lock", "_rows"
        return {name: each for name, each in self.__dict__.items() if name not in left_out}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self.lock = RLock()
        self._rows = self.connections, rows_of(self.connections, ConnectionRow)

    @property
    def places(self) -> NumberedValues:
        """The row of each number; negative: it has not started, or rests."""
        return self.resting.places

    @property
    def connection_rows(self) -> Rows[ConnectionRow]:
        """The connections as single rows."""
        table, rows = self._rows
        if table is not self.connections:
            rows = rows_of(self.connections, ConnectionRow)
            self._rows = self.connections, rows
        return rows

    def give_rows(self, numbers: Ints) -> Ints:
        """Give these connections the next rows; return those of connections that start."""
        first, is_resting = len(self.numbers), self.resting.has(numbers)
        rows = np.arange(first, first + len(numbers))
        with self.lock:
            self.connections = with_capacity(self.connections, first + len(numbers))
            self.connections[rows[is_resting]] = self.resting.take(numbers[is_resting])
            self.connections["woken"][rows] += is_resting
            self.numbers = np.concatenate((self.numbers, numbers))
            self.places[numbers] = rows
        return rows[~is_resting]

    def read(self, number: int) -> RowArray | None:
        """Return a copy of the row of a connection; None if it has not started."""
        with self.lock:
            place = self.places[number] if number < len(self.places) else NOWHERE
            if place >= 0:
                return self.connections[place : place + 1].copy().reshape(())
            chosen = np.array([number])
            return self.resting.read(chosen).reshape(()) if self.resting.has(chosen)[0] else None

    def parts(self) -> Iterator[tuple[Ints, RowArray]]:
        """Yield the numbers and rows of all connections, in parts."""
        yield self.numbers, self.connections[: len(self.numbers)]
        yield from self.resting.parts()

    def rest(self, least: int, now_ns: int) -> None:
        """
        Pack connections that have ended or are silent, and of which nothing is kept.

        Args:
            least: Their number is a multiple of it.
            now_ns: Time of the newest chunk.
        """
        rows = self.connections[: len(self.numbers)]
        sides = rows["sides"]
        is_empty = (sides["barrier"] == NEVER) & (sides["buffered_bytes"] == 0)
        is_empty &= sides["end_count"] == 0
        for name in ("held", "first_fragment", "first_ready", "damaged", "preface"):
            is_empty &= sides[name] < 0
        idle_ns = now_ns - rows["newest_time_ns"]
        is_idle = idle_ns >> np.minimum(rows["woken"], _MAX_WOKEN) >= IDLE_NS
        # Of another one it may still be decided whether it is Kafka.
        is_idle &= rows["mode"] == Mode.KAFKA
        may_rest = (is_idle | (rows["has_ended"] != 0)) & is_empty.all(axis=1)
        for name in ("open_count", "token_count", "ready_count"):
            may_rest &= rows[name] == 0
        for name in ("first_delayed", "suppressed_ring"):
            may_rest &= rows[name] < 0
        chosen = np.flatnonzero(may_rest)
        chosen = chosen[: len(chosen) // least * least]
        if not len(chosen):
            return
        is_kept = np.ones(len(rows), np.bool_)
        is_kept[chosen] = False
        packed = rows[chosen]
        packed["sides"]["first_end"] = packed["lowest_open_id"] = packed["highest_open_id"] = 0
        # They date what is not complete, and nothing is.
        packed["sides"]["last_time_ns"] = packed["sides"]["last_packet"] = NONE
        with self.lock:
            numbers = self.numbers[chosen]
            self.keep(np.flatnonzero(is_kept))
            self.resting.add(numbers, packed)

    def retain(self, numbers: Ints) -> None:
        """Keep only these connections, which do not rest; each gets its index as its new number."""
        places = self.places[numbers]
        with self.lock:
            self.keep(places[places >= 0].astype(np.int64))
            self.resting.clear()
            self.numbers = np.flatnonzero(places >= 0)
            self.resting.number_up_to(len(numbers))
            self.places[self.numbers] = np.arange(len(self.numbers))

    def keep(self, rows: Ints) -> None:
        """Keep only these rows of connections, in order."""
        self.places[self.numbers] = NOWHERE
        self.places[self.numbers[rows]] = np.arange(len(rows))
        self.numbers, self.connections = self.numbers[rows], self.connections[rows]
