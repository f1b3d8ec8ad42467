"""All TCP connections: the tables of their rows, and what they tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np

from dissector.capture.columns import Int8s, Int64s
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.connections import (
    END_REASONS,
    Connection,
    ConnectionColumns,
    Deliveries,
    Endpoint,
    Side,
)
from dissector.capture.tcp.tcp_header import SEQ_MASK
from dissector.capture.tcp.tcp_rows import (
    GAPS_REMEMBERED,
    NONE,
    ConnectionRow,
    Counts,
    EndRow,
    GapRow,
    LossRow,
    SegmentRow,
    StateArrays,
    StreamRow,
)
from dissector.capture.tcp.waiting_table import WaitingTable, with_room
from dissector.kernel.named_rows import RowArray, dtype_of, rows_of

_FIRST_ROWS = 16
_ADDRESS = (1 << 64) - 1
_LOSSES = [field.name for field in fields(Side)[2:8]]
"""The loss counters, in the order of the fields of `Side`."""


class ConnectionTable(Sequence[Connection]):
    """
    The connections so far, by number.

    A `Connection` taken from the table is a snapshot.

    Attributes:
        rows: A `ConnectionRow` for each; there is room for more.
        counts: The counters of all tables, `Counts`.
        losses: A `LossRow` for each of the few streams with losses; row 0 belongs to all others.
        gaps: A `GapRow` for each gap that one of them remembers.
        waiting: What waits in connections.
    """

    def __init__(self) -> None:
        self.counts: RowArray = np.zeros((), dtype_of(Counts))
        self.rows: RowArray = np.zeros(_FIRST_ROWS, dtype_of(ConnectionRow))
        self.losses: RowArray = np.zeros(_FIRST_ROWS, dtype_of(LossRow))
        self.gaps: RowArray = np.zeros(_FIRST_ROWS, dtype_of(GapRow))
        self.counts["loss_rows"] = self.counts["gap_rows"] = 1
        self.waiting = WaitingTable(self.counts)
        self._segment: RowArray = np.zeros((), dtype_of(SegmentRow))

    @property
    def size(self) -> int:
        """Number of connections."""
        return int(self.counts["connections"])

    def reserve(self) -> None:
        """Make the room that a kernel lacked."""
        self.rows = with_room(self.rows, self.size + 1)
        self.losses = with_room(self.losses, int(self.counts["loss_rows"]) + 4)
        self.gaps = with_room(self.gaps, int(self.counts["gap_rows"]) + 4 * GAPS_REMEMBERED)
        self.waiting.reserve()

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
        return {**self.__dict__, "rows": self.rows[: self.size + 1]}

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, number: int) -> Connection: ...

    @overload
    def __getitem__(self, number: slice) -> list[Connection]: ...

    def __getitem__(self, number: int | slice) -> Connection | list[Connection]:
        """Return a snapshot of a connection, or of several."""
        if isinstance(number, slice):
            return [self._connection(each) for each in range(self.size)[number]]
        return self._connection(range(self.size)[number])

    def __iter__(self) -> Iterator[Connection]:
        return map(self._connection, range(self.size))

    def columns(self, numbers: Int64s | None = None) -> ConnectionColumns:
        """Return a snapshot of all connections, or of these."""
        if numbers is None:
            numbers = np.arange(self.size, dtype=np.int64)
        rows = self.rows[numbers]
        ends, streams = rows["ends"], rows["streams"]
        losses = self.losses[streams["losses"]]
        statistics = streams["packets"], streams["bytes"], *(losses[each] for each in _LOSSES)
        return ConnectionColumns(
            number=numbers,
            network=rows["network"],
            address=np.stack((ends["high"], ends["low"]), axis=2).view(np.uint64),
            port=ends["port"],
            first_ns=rows["first_ns"],
            last_ns=rows["last_ns"],
            syn_seen=rows["syn_seen"] != 0,
            both_syns=(streams["has_isn"] != 0).all(axis=1),
            ended=rows["ended"].astype(np.int8),
            sides=np.stack(statistics, axis=2),
        )

    def endpoints(self, number: int) -> tuple[Endpoint, Endpoint]:
        """Return the endpoints of a connection."""
        return _endpoints(self._row(number))

    def first_packets(self, numbers: Int64s) -> Int64s:
        """Return the number of the first packet of each of these connections."""
        firsts: Int64s = self.rows["first_packet"][numbers]
        return firsts

    def first_sequences(self, numbers: Int64s) -> Int64s:
        """Return the initial sequence numbers of both streams of these connections."""
        firsts: Int64s = self._streams(numbers)["first"] & SEQ_MASK
        return firsts

    def fin_sequences(self, numbers: Int64s) -> Int64s:
        """Return the sequence numbers of the FINs of both sides; -1 while it is open."""
        streams = self._streams(numbers)
        return np.where(streams["finished"] != 0, streams["next"] - 1 & SEQ_MASK, -1)

    def deliveries(self, numbers: Int64s) -> Deliveries:
        """Return how far the streams of connections were delivered."""
        streams = self._streams(numbers)
        has_acked = (streams["next"] != NONE) & (streams["acked"] != NONE)
        acked = np.where(has_acked, streams["acked"] - streams["first"], -1)
        return Deliveries(streams["next"] - streams["first"], acked, streams["resent"])

    def next_sequences(self, numbers: Int64s) -> Int64s:
        """Return the next sequence numbers of both streams, sent or acknowledged; -1: neither."""
        streams = self._streams(numbers)
        known = np.where(streams["next"] == NONE, streams["acked"], streams["next"])
        return np.where(known == NONE, -1, known & SEQ_MASK)

    def missing_sides(self, numbers: Int64s) -> Int8s:
        """Return the side without a packet whose data the other acknowledged meanwhile; -1."""
        streams = self._streams(numbers)
        is_missing = (streams["packets"] == 0) & (streams["acked"] > streams["first_acked"])
        return np.where(is_missing.any(axis=1), is_missing[:, 1], -1).astype(np.int8)

    def _streams(self, numbers: Int64s) -> RowArray:
        """Return the streams of connections, [n, 2]."""
        streams: RowArray = self.rows[numbers]["streams"]
        return streams

    def _row(self, number: int) -> ConnectionRow:
        return rows_of(self.rows, ConnectionRow)[number]

    def has_both_syns(self, number: int) -> bool:
        """Return whether the SYNs of both streams are known."""
        streams = self._row(number).streams
        return bool(streams[0].has_isn and streams[1].has_isn)

    def retain(self, numbers: Int64s) -> None:
        """Drop all connections but these, in order; renumber each by its position."""
        rows = self.rows[numbers]
        rows["streams"]["losses"] = self._retain_losses(rows["streams"]["losses"])
        new_numbers = np.full(self.size, -1, np.int64)
        new_numbers[numbers] = np.arange(len(numbers))
        self.waiting.retain(new_numbers)
        self.counts["connections"] = len(rows)
        self.rows = with_room(rows, len(rows) + 1)

    def _retain_losses(self, rows: Int64s) -> Int64s:
        """Drop all loss counters but those of some rows, and their gaps; return their new rows."""
        kept, losses = np.unique(np.append(rows, 0)), rows_of(self.losses, LossRow)
        gaps, used = rows_of(self.gaps, GapRow), int(self.counts["loss_rows"])
        for row in np.setdiff1d(np.arange(used), kept).tolist():
            if losses[row].remembered:
                newest = gaps[losses[row].newest_gap]
                oldest, newest.following = newest.following, int(self.counts["free_gap"])
                self.counts["free_gap"] = oldest
        self.counts["loss_rows"] = len(kept)
        self.losses = with_room(self.losses[kept], len(kept) + 1)
        numbers: Int64s = np.searchsorted(kept, rows)
        return numbers

    def incomplete(self) -> set[int]:
        """Return the connections in which something waits, or that miss acknowledged bytes."""
        rows = self.rows[: self.size]
        streams = rows["streams"]
        is_known = (streams["next"] != NONE) & (streams["acked"] != NONE)
        misses_end = is_known & (streams["fin"] == NONE)
        misses_end &= streams["acked"] - streams["next"] > 1
        incomplete = (rows["waits"] != 0) | misses_end.any(axis=1)
        return set(np.flatnonzero(incomplete).tolist())

    def _connection(self, number: int) -> Connection:
        """Return a snapshot of a connection."""
        row = self._row(number)
        a, b = _endpoints(row)
        return Connection(
            id=number,
            network=row.network,
            a=a,
            b=b,
            first_ns=row.first_ns,
            last_ns=row.last_ns,
            sides=(self._side(row, 0), self._side(row, 1)),
            syn_seen=bool(row.syn_seen),
            ended=END_REASONS[row.ended],
        )

    def _side(self, row: ConnectionRow, side: int) -> Side:
        stream = row.streams[side]
        losses = rows_of(self.losses, LossRow)[stream.losses]
        counted = Side(stream.packets, stream.bytes, *(getattr(losses, each) for each in _LOSSES))
        counted.acked_not_captured = _acked_not_captured(stream, losses)
        counted.zero_window_ns = _zero_window_ns(stream, losses, row.last_ns)
        counted.handshake_ns = _known(stream.handshake_ns)
        counted.srtt_ns = _known(stream.srtt_ns)
        return counted


def _acked_not_captured(stream: StreamRow, losses: LossRow) -> int:
    acked = losses.gap_bytes
    if stream.acked < losses.unacked_end:
        acked -= losses.unacked_gap_bytes
    is_silent = stream.next == NONE and stream.acked != NONE
    # Of a side without any data in the capture. One number more may be a FIN.
    silent = stream.acked - stream.first_acked if is_silent else 0
    return acked + (silent if silent > 1 else 0)


def _zero_window_ns(stream: StreamRow, losses: LossRow, last_ns: int) -> int:
    closed_ns = 0 if stream.closed_ns == NONE else max(last_ns - stream.closed_ns, 0)
    return losses.zero_window_ns + closed_ns


def _known(time_ns: int) -> int | None:
    return None if time_ns < 0 else time_ns


def _endpoints(row: ConnectionRow) -> tuple[Endpoint, Endpoint]:
    return _endpoint(row.ends[0]), _endpoint(row.ends[1])


def _endpoint(end: EndRow) -> Endpoint:
    return end.high & _ADDRESS, end.low & _ADDRESS, end.port
