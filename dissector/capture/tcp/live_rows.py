"""
The rows of all TCP connections: those in which something may happen, and those at rest.

The kernels see the first alone. A connection that has ended, or is silent for long, is packed
between two windows, and has a row again before a window with a segment between its endpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import NEVER, Int32s, Int64s, unique
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.tcp_rows import (
    GAPS_REMEMBERED,
    NONE,
    ConnectionRow,
    Counts,
    GapRow,
    LossRow,
    RestingRow,
    SegmentRow,
    StateArrays,
)
from dissector.capture.tcp.waiting_table import WaitingTable, with_room
from dissector.kernel.named_rows import RowArray, dtype_of, field_of, row_of, rows_of
from dissector.kernel.packed_rows import BEFORE, NOWHERE, PackedRows

IDLE_NS = 60_000_000_000
"""
Connections that are silent for this time are packed; the double time if that happens again, and so
on.
"""


_FIRST_ROWS = 16
_MAX_WOKEN = 16


def _named(bases: dict[str, str]) -> dict[str, str]:
    """Return bases with whole names: `0.next` is a field of the first stream."""
    return {_whole(name): _whole(base) for name, base in bases.items()}


def _whole(name: str) -> str:
    if name == BEFORE:
        return name
    return f"connection.streams.{name}" if name[0] in "01" else f"connection.{name}"


_TIMES = {
    "first_ns": BEFORE,
    "last_ns": "first_ns",
    "0.data_ns": "0.acked_ns",
    "1.data_ns": "0.data_ns",
    "1.acked_ns": "last_ns",
    "0.acked_ns": "1.acked_ns",
    "0.least_at": BEFORE,
    "1.least_at": "0.least_at",
    "1.handshake_ns": "1.least_ns",
    "0.handshake_ns": "1.handshake_ns",
    "0.least_ns": "0.handshake_ns",
    "0.srtt_ns": "0.handshake_ns",
    "1.srtt_ns": "1.handshake_ns",
}
_PACKETS = {
    "first_packet": BEFORE,
    "0.acked_packet": "first_packet",
    "1.acked_packet": "0.acked_packet",
    "0.packets": "1.packets",
}
_UNUSED = {"timed_ns": "data_ns", "fin_ns": "acked_ns", "fin_packet": "acked_packet"}
"""Fields that mean nothing in most connections at rest: there they become equal to others."""

_SEQUENCES = {
    "next": "first",
    "first_acked": "first",
    "acked": "next",
    "fin": "acked",
    **_UNUSED,
}
_BASES = _named(
    {
        **_TIMES,
        **_PACKETS,
        **{f"{at}.{name}": f"{at}.{base}" for at in (0, 1) for name, base in _SEQUENCES.items()},
        "ends.1.low": "ends.0.low",
    }
)
"""The fields of connections at rest that resemble other fields."""


_OF_LOSSES = "losses."


def _is_of_losses(name: str) -> bool:
    return name.startswith(_OF_LOSSES)


class LiveRows:
    """
    The tables of rows of connections.

    Attributes:
        rows: A `ConnectionRow` for each connection but those at rest; there is room for more.
        numbers: The number of each.
        counts: The counters of all tables, `Counts`.
        losses: A `LossRow` for each of the few streams with losses; row 0 belongs to all others.
        gaps: A `GapRow` for each gap that one of them remembers.
        waiting: What waits in connections.
        resting: A `RestingRow` for each connection at rest; the places of all.
        longest_silence_ns: Connections that are silent for this time are packed too if the begin of
            a side may still be found.
        lock: Held while rows move, and while they are read by number, as threads may.
    """

    def __init__(self) -> None:
        self.counts: RowArray = np.zeros((), dtype_of(Counts))
        self.rows: RowArray = np.zeros(_FIRST_ROWS, dtype_of(ConnectionRow))
        self.losses: RowArray = np.zeros(_FIRST_ROWS, dtype_of(LossRow))
        self.gaps: RowArray = np.zeros(_FIRST_ROWS, dtype_of(GapRow))
        self.counts["loss_rows"] = self.counts["gap_rows"] = 1
        self.waiting = WaitingTable(self.counts)
        self.numbers: Int64s = np.zeros(0, np.int64)
        self.resting = PackedRows(RestingRow, _BASES)
        self.longest_silence_ns: int = NEVER
        self.lock = RLock()
        self._resting_gaps: dict[int, Int64s] = {}
        self._size = 0
        self._segment: RowArray = np.zeros((), dtype_of(SegmentRow))

    @property
    def live(self) -> int:
        """Number of connections but those at rest."""
        return int(self.counts["connections"])

    @property
    def size(self) -> int:
        """Number of connections, with those that are dropped."""
        return self._size

    @property
    def clock_ns(self) -> int:
        """The highest time of all packets so far."""
        return row_of(self._segment, SegmentRow).clock_ns

    def kept(self) -> Int64s:
        """Return the numbers of all that are not dropped, in order."""
        return self.resting.places.items()[0]

    @property
    def arrays(self) -> StateArrays:
        """The current arrays of the kernels."""
        waiting = self.waiting
        pools = waiting.waits, waiting.runs, waiting.waiting
        rings = waiting.deadlines, waiting.checks
        arrays: Sequence[Any] = (self.rows, self.losses, self.gaps, *pools, *rings)
        rest = waiting.carried, SECRET, self._segment, self.counts
        return StateArrays._make((*arrays, *rest))

    def __getstate__(self) -> dict[str, Any]:
        kept = {**self.__dict__, "rows": self.rows[: self.live + 1]}
        del kept["lock"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self.lock = RLock()

    def reserve(self) -> None:
        """Make the room that a kernel lacked."""
        self.rows = with_room(self.rows, self.live + 1)
        self.losses = with_room(self.losses, int(self.counts["loss_rows"]) + 4)
        self.gaps = with_room(self.gaps, int(self.counts["gap_rows"]) + 4 * GAPS_REMEMBERED)
        self.waiting.reserve()

    def number_new(self) -> None:
        """Give numbers to the connections that began since the last call."""
        new = np.arange(len(self.numbers), self.live)
        if len(new):
            numbers = self._size + np.arange(len(new))
            self.resting.number_up_to(self._size + len(new))
            self.resting.places[numbers] = new
            self.numbers = np.concatenate((self.numbers, numbers))
            self._size += len(new)

    def read(self, numbers: Int64s) -> RowArray:
        """Return a `RestingRow` for each of these connections, without the flows it owns."""
        with self.lock:
            places = self.resting.places[numbers]
            is_live = places >= 0
            found = self._read_live(places[is_live])
            if is_live.all():
                return found
            every: RowArray = np.zeros(len(numbers), found.dtype)
            every[is_live] = found
            every[~is_live] = self.resting.read(numbers[~is_live])
            return every

    def _read_live(self, rows: Int64s | Int32s) -> RowArray:
        found: RowArray = np.zeros(len(rows), dtype_of(RestingRow))
        found["connection"] = self.rows[rows]
        found["losses"] = self.losses[found["connection"]["streams"]["losses"]]
        return found

    def fields(self, numbers: Int64s, *names: str) -> list[NDArray[Any]]:
        """
        Return fields of the `ConnectionRow` of each of these connections; see `field_of`.

        Those of the `LossRow` of both streams begin with `losses.`.
        """
        with self.lock:
            places = self.resting.places[numbers]
            is_live = places >= 0
            found = [self._live_field(places[is_live], name) for name in names]
            if is_live.all():
                return found
            whole = [name if _is_of_losses(name) else f"connection.{name}" for name in names]
            every = self.resting.read_fields(numbers[~is_live], whole)
            for at, (live, resting) in enumerate(zip(found, every, strict=True)):
                found[at] = np.empty((len(numbers), *live.shape[1:]), live.dtype)
                found[at][is_live], found[at][~is_live] = live, resting
            return found

    def _live_field(self, rows: Int32s, name: str) -> NDArray[Any]:
        found: NDArray[Any]
        if _is_of_losses(name):
            losses = self.rows["streams"]["losses"][rows]
            found = field_of(self.losses, name.removeprefix(_OF_LOSSES))[losses]
        else:
            found = field_of(self.rows, name)[rows]
        return found

    def parts(self) -> Iterator[Int64s]:
        """Yield the numbers of all, in parts that are unpacked once if they are read at once."""
        yield self.numbers
        yield from self.resting.numbers_in_parts()

    def incomplete(self) -> NDArray[np.bool_]:
        """Return in which rows something waits, or acknowledged bytes are missing."""
        rows = self.rows[: self.live]
        streams = rows["streams"]
        is_known = (streams["next"] != NONE) & (streams["acked"] != NONE)
        misses_end = is_known & (streams["fin"] == NONE)
        misses_end &= streams["acked"] - streams["next"] > 1
        incomplete: NDArray[np.bool_] = (rows["waits"] != 0) | misses_end.any(axis=1)
        return incomplete

    def may_rest(self) -> NDArray[np.bool_]:
        """Return the rows of ended and idle connections in which nothing waits."""
        rings, rows = row_of(self.counts, Counts).rings, self.rows[: self.live]
        idle_ns = self.clock_ns - rows["last_ns"]
        # Of a side without bytes the begin may still be found, in another network too.
        is_idle = (rows["streams"]["bytes"] != 0).all(axis=1)
        is_idle &= idle_ns >> np.minimum(rows["woken"], _MAX_WOKEN) >= IDLE_NS
        is_idle |= idle_ns >= self.longest_silence_ns
        may_rest: NDArray[np.bool_] = (is_idle | (rows["ended"] != 0)) & ~self.incomplete()
        for deadlines, ring in zip(
            (self.waiting.deadlines, self.waiting.checks), (rings[0], rings[1]), strict=True
        ):
            pending = np.arange(ring.first, ring.first + ring.count) % len(deadlines)
            may_rest[deadlines["connection"][pending]] = False
        return may_rest

    def rest(self, rows: Int64s, owned: RowArray) -> Int64s:
        """
        Pack connections; return the new rows of all, as the others move up; -1: at rest.

        Args:
            rows: Their rows, a multiple of `BLOCK_ROWS`.
            owned: The `OwnedFlows` of each.
        """
        numbers, packed = self.numbers[rows], self._read_live(rows)
        packed["flows"] = owned
        _level_unused(packed["connection"])
        for row, side in np.argwhere(packed["losses"]["remembered"]).tolist():
            key = 2 * int(numbers[row]) + side
            self._resting_gaps[key] = self._gaps_of(packed["losses"][row, side])
        packed["losses"]["newest_gap"] = packed["connection"]["streams"]["losses"] = 0
        is_kept = np.ones(self.live, np.bool_)
        is_kept[rows] = False
        with self.lock:
            new_rows = self._keep(np.flatnonzero(is_kept))
            self.resting.add(numbers, packed)
            return new_rows

    def wake(self, numbers: Int64s) -> RowArray:
        """Give rows to connections at rest, behind the others; return what they were."""
        with self.lock:
            first, woken = self.live, self.resting.take(numbers)
            rows = np.arange(first, first + len(numbers))
            self.rows = with_room(self.rows, first + len(numbers) + 1)
            self.rows[rows] = woken["connection"]
            self.rows["woken"][rows] += 1
            self.counts["connections"] = first + len(numbers)
            self.numbers = np.concatenate((self.numbers, numbers))
            self.resting.places[numbers] = rows
            table = woken["losses"].view(np.int64).reshape(len(numbers), 2, -1)
            for at, which in np.argwhere(table.any(axis=2)).tolist():
                self._restore_losses(first + at, which, woken["losses"][at, which])
            return woken

    def retain(self, numbers: Int64s) -> Int64s:
        """
        Drop all connections but these, which do not rest; renumber each by its position.

        Returns:
            The new row of each row; -1: it is dropped.
        """
        with self.lock:
            new_rows = self._keep(self.resting.places[numbers].astype(np.int64))
            self.resting.clear()
            self._resting_gaps.clear()
            self._size = len(numbers)
            self.numbers = np.arange(len(numbers))
            self.resting.number_up_to(len(numbers))
            self.resting.places[self.numbers] = self.numbers
            return new_rows

    def is_kept(self, numbers: Int64s) -> NDArray[np.bool_]:
        """Return which connections are not dropped."""
        kept: NDArray[np.bool_] = self.resting.places[numbers] != NOWHERE
        return kept

    def drop(self, numbers: Int64s) -> None:
        """Drop connections at rest, whose numbers are not used again."""
        with self.lock:
            self.resting.forget(numbers)
            for key in (2 * numbers[:, np.newaxis] + (0, 1)).ravel().tolist():
                self._resting_gaps.pop(key, None)

    def _keep(self, kept: Int64s) -> Int64s:
        """Drop all rows but these, in order; return the new row of each, -1: dropped."""
        rows = self.rows[kept]
        rows["streams"]["losses"] = self._retain_losses(rows["streams"]["losses"])
        new_rows: Int64s = np.full(self.live, NOWHERE, np.int64)
        new_rows[kept] = np.arange(len(kept))
        self.waiting.retain(new_rows)
        self.counts["connections"] = len(rows)
        self.rows = with_room(rows, len(rows) + 1)
        self.resting.places[self.numbers] = new_rows
        self.numbers = self.numbers[kept]
        return new_rows

    def _retain_losses(self, rows: Int64s) -> Int64s:
        """Drop all loss counters but those of some rows, and their gaps; return their new rows."""
        kept, losses = unique(np.append(rows, 0)), rows_of(self.losses, LossRow)
        gaps, used = rows_of(self.gaps, GapRow), int(self.counts["loss_rows"])
        for row in np.setdiff1d(np.arange(used), kept, assume_unique=True).tolist():
            if losses[row].remembered:
                newest = gaps[losses[row].newest_gap]
                oldest, newest.following = newest.following, int(self.counts["free_gap"])
                self.counts["free_gap"] = oldest
        self.counts["loss_rows"] = len(kept)
        self.losses = with_room(self.losses[kept], len(kept) + 1)
        numbers: Int64s = np.searchsorted(kept, rows)
        return numbers

    def _gaps_of(self, losses: RowArray) -> Int64s:
        """Return the gaps that a stream remembers, the oldest first: [n, 2] begin and end."""
        gaps, row = rows_of(self.gaps, GapRow), int(losses["newest_gap"])
        found = []
        for _ in range(int(losses["remembered"])):
            row = gaps[row].following
            found.append((gaps[row].start, gaps[row].end))
        return np.array(found, np.int64)

    def _restore_losses(self, row: int, side: int, losses: RowArray) -> None:
        """Give rows to the loss counters of a stream, and to the gaps it remembers."""
        counts = row_of(self.counts, Counts)
        at = counts.loss_rows
        counts.loss_rows = at + 1
        self.losses = with_room(self.losses, at + 1)
        self.losses[at] = losses
        self.rows["streams"]["losses"][row, side] = at
        gaps = self._resting_gaps.pop(2 * int(self.numbers[row]) + side, None)
        if gaps is None:
            return
        first, count = counts.gap_rows, len(gaps)
        counts.gap_rows = first + count
        self.gaps = with_room(self.gaps, first + count)
        places = slice(first, first + count)
        self.gaps["start"][places], self.gaps["end"][places] = gaps.T
        self.gaps["following"][places] = first + (1 + np.arange(count)) % count
        self.losses["newest_gap"][at] = first + count - 1


def _level_unused(connections: RowArray) -> None:
    """Set fields without a meaning, in connections in which nothing waits, to their bases."""
    streams, ended = connections["streams"], connections["ended"] != 0
    is_timed = streams["timed"] != NONE
    for name, base in _UNUSED.items():
        means = is_timed if name == "timed_ns" else ~ended[:, np.newaxis]
        streams[name] = np.where(means, streams[name], streams[base])
