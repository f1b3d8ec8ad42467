"""All TCP connections: a row of numbers each, and objects of the materialised ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np

from dissector.capture.columns import Int8s, Int64s
from dissector.capture.tcp.both_paths.reassembly_limits import MAX_STEPS
from dissector.capture.tcp.both_paths.tcp_header import SEQ_MASK
from dissector.capture.tcp.both_paths.tcp_rows import (
    NONE,
    ConnectionRow,
    Counts,
    EndRow,
    GapRow,
    LossRow,
    StateArrays,
    StreamRow,
    WaitingSegment,
    WaitRow,
    clear_stream,
)
from dissector.capture.tcp.connections import (
    END_REASONS,
    Connection,
    ConnectionColumns,
    Deliveries,
    Endpoint,
    Side,
)
from dissector.capture.tcp.objects.chunk_builder import ReorderState
from dissector.capture.tcp.objects.connection_state import FlowKey, LiveConnection
from dissector.capture.tcp.objects.stream_reassembler import Stream
from dissector.capture.tcp.tables.loss_table import LossCounterTable
from dissector.capture.tcp.tables.waiting_table import WaitingTable
from dissector.kernel.named_rows import RowArray, dtype_of, row_of, rows_of

_FIRST_ROWS = 16
_ADDRESS = (1 << 64) - 1
_LOSSES = [field.name for field in fields(Side)[2:]]
"""The loss counters, in the order of the fields of `Side`."""


class ConnectionTable(Sequence[Connection]):
    """
    The connections so far, by number.

    A `Connection` taken from the table is a snapshot.

    Attributes:
        rows: A `ConnectionRow` for each; there is room for more.
        live: The materialised connections, by number; their rows are out of date.
        counts: The counters that kernels and objects share, `Counts`.
        counters: Loss counters of the few streams that have any.
        waiting: Waiting data of connections that are not materialised.
    """

    def __init__(self) -> None:
        self.counts: RowArray = np.zeros((), dtype_of(Counts))
        self.rows: RowArray = np.zeros(_FIRST_ROWS, dtype_of(ConnectionRow))
        self.live: dict[int, LiveConnection] = {}
        self.counters = LossCounterTable(self.counts)
        self.waiting = WaitingTable(self.counts)

    @property
    def size(self) -> int:
        """Number of connections."""
        return int(self.counts["connections"])

    @size.setter
    def size(self, size: int) -> None:
        self.counts["connections"] = size

    @property
    def arrays(self) -> StateArrays:
        """The current arrays of the kernel."""
        losses, waiting = self.counters, self.waiting
        tables = self.rows, losses.losses, losses.gaps, waiting.waits, waiting.waiting
        return StateArrays._make((*tables, waiting.carried, self.counts))

    def __getstate__(self) -> dict[str, Any]:
        rows = self.rows[: self.size + 1].copy()
        rows[self.size :] = 0  # memory of arbitrary content
        return {**self.__dict__, "rows": rows}

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
        for live in self.live.values():
            self._write(live, is_live=True)
        if numbers is None:
            numbers = np.arange(self.size, dtype=np.int64)
        rows = self.rows[numbers]
        ends, streams = rows["ends"], rows["streams"]
        losses = self.counters.losses[streams["losses"]]
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
        for live in self.live.values():
            self._write(live, is_live=True)
        streams: RowArray = self.rows[numbers]["streams"]
        return streams

    def _row(self, number: int) -> ConnectionRow:
        return rows_of(self.rows, ConnectionRow)[number]

    def begin(self, key: FlowKey, first_packet: int, first_ns: int) -> LiveConnection:
        """Add a connection with `key` for the data of side 0; return it as an object."""
        number = self.size
        if number == len(self.rows):
            rows = np.empty(2 * number, self.rows.dtype)
            rows[:number] = self.rows
            self.rows = rows
        self.rows[number] = 0
        row = self._row(number)
        row.network, first, second = key[0], key[1:4], key[4:7]
        for side, (high, low, port) in enumerate((first, second)):
            end = row.ends[side]
            end.high, end.low, end.port = high, low, port
            clear_stream(row.streams[side])
        row.first_packet, row.first_ns, row.last_ns = first_packet, first_ns, first_ns
        self.size += 1
        return self.materialise(number)

    def materialise(self, number: int) -> LiveConnection:
        """Return a connection as an object, which is authoritative until `demote`."""
        live = self.live.get(number)
        if live is not None:
            return live
        row = self._row(number)
        reorder = ReorderState(number, [None, None])
        streams = self._stream(row, reorder, 0), self._stream(row, reorder, 1)
        if row.waits:
            self.waiting.load(row.waits, reorder, streams)
        return LiveConnection(
            number,
            _keys(row),
            reorder,
            streams,
            last_ns=row.last_ns,
            oriented=bool(row.oriented),
            syn_seen=bool(row.syn_seen),
            ended=END_REASONS[row.ended],
        )

    def demote(self, live: LiveConnection, may_move: bool = True) -> bool:
        """
        Demote a connection to its row, unless it has state that a row can't hold.

        Args:
            live: The connection.
            may_move: If false it stays an object.

        Returns:
            Whether its row represents it now.
        """
        number, row = live.number, self._row(live.number)
        if number not in self.live and row.waits:
            self.waiting.remove(self._views(), row)
        if may_move and live.fits_row:
            self.live.pop(number, None)
            self._write(live, is_live=False)
            if any(live.reorder.buffers):
                self.waiting.reserve(2 * MAX_STEPS)
                self.waiting.store(self._views(), row, live.reorder, live.streams)
            return True
        self.live[number] = live
        row.is_live = True
        return False

    def _views(self) -> StateArrays:
        """Return the arrays for Python code."""
        losses, waiting = self.counters, self.waiting
        return StateArrays(
            rows_of(self.rows, ConnectionRow),
            rows_of(losses.losses, LossRow),
            rows_of(losses.gaps, GapRow),
            rows_of(waiting.waits, WaitRow),
            rows_of(waiting.waiting, WaitingSegment),
            waiting.carried.data,
            row_of(self.counts, Counts),
        )

    def has_both_syns(self, number: int) -> bool:
        """Return whether the SYNs of both streams are known."""
        first, second = self.materialise(number).streams
        return first.isn is not None and second.isn is not None

    def swap_sides(self, live: LiveConnection) -> None:
        """Exchange the sides; before anything was released or waits."""
        live.swap_sides()
        row = self.rows[live.number]
        row["ends"], row["streams"] = row["ends"][::-1].copy(), row["streams"][::-1].copy()

    def retain(self, numbers: Int64s) -> None:
        """Drop all connections but these, in order; renumber each by its position."""
        live_before = self.live
        self.live = {}
        for position, number in enumerate(numbers.tolist()):
            live = live_before.get(number)
            if live is not None:
                live.number = live.reorder.connection = position
                self.live[position] = live
        rows = self.rows[numbers]
        losses = rows["streams"]["losses"]
        rows["streams"]["losses"] = self.counters.retain(losses)
        self.size = len(rows)
        self.rows = np.concatenate([rows, np.zeros(_FIRST_ROWS, rows.dtype)])

    def incomplete(self) -> set[int]:
        """Return the connections with waiting segments or known gaps."""
        rows = self.rows[: self.size]
        streams = rows["streams"]
        is_known = (streams["next"] != NONE) & (streams["acked"] != NONE)
        misses_end = is_known & (streams["finished"] == 0)
        misses_end &= streams["acked"] - streams["next"] > 1
        incomplete = (rows["waits"] != 0) | misses_end.any(axis=1)
        return {*self.live, *np.nonzero(incomplete)[0].tolist()}

    def _stream(self, row: ConnectionRow, stalls: ReorderState, number: int) -> Stream:
        side = row.streams[number]
        losses = self.counters.load(side.losses, side.packets, side.bytes)
        stream = Stream(losses, stalls, number)
        if side.next != NONE:
            stream.next, stream.first = side.next, side.first
        if side.acked != NONE:
            stream.acked, stream.first_acked = side.acked, side.first_acked
            stream.acked_ns = side.acked_ns
            stream.acked_packet = side.acked_packet
        stream.data_ns, stream.resent = side.data_ns, side.resent
        if side.has_isn:
            stream.isn = side.first - 1
        if side.finished:
            stream.finished = True
            stream.fin = side.next - 1
        return stream

    def _write(self, live: LiveConnection, is_live: bool) -> None:
        """Write the object's state into the connection's row, except parts a row cannot hold."""
        row = self._row(live.number)
        row.last_ns, row.ended, row.is_live = live.last_ns, END_REASONS.index(live.ended), is_live
        row.oriented, row.syn_seen = live.oriented, live.syn_seen
        for side, stream in enumerate(live.streams):
            self._write_stream(row.streams[side], stream)

    def _write_stream(self, row: StreamRow, stream: Stream) -> None:
        row.next = NONE if stream.next is None else stream.next
        row.first = NONE if stream.first is None else stream.first
        row.acked = NONE if stream.acked is None else stream.acked
        row.first_acked = NONE if stream.first_acked is None else stream.first_acked
        row.acked_ns, row.acked_packet = stream.acked_ns, stream.acked_packet
        row.packets, row.bytes = stream.side.packets, stream.side.bytes
        row.data_ns, row.resent = stream.data_ns, stream.resent
        row.has_isn, row.finished = stream.isn is not None, stream.finished
        row.losses = self.counters.store(row.losses, stream.losses)

    def _connection(self, number: int) -> Connection:
        """Return a snapshot of a connection."""
        live, row = self.materialise(number), self._row(number)
        first, second = live.streams
        a, b = _endpoints(row)
        return Connection(
            id=number,
            network=row.network,
            a=a,
            b=b,
            first_ns=row.first_ns,
            last_ns=live.last_ns,
            sides=(first.side, second.side),
            syn_seen=live.syn_seen,
            ended=live.ended,
        )


def _keys(row: ConnectionRow) -> tuple[FlowKey, FlowKey]:
    """Return the flow keys of the two sides."""
    a, b = row.ends[0], row.ends[1]
    return (
        (row.network, a.high, a.low, a.port, b.high, b.low, b.port),
        (row.network, b.high, b.low, b.port, a.high, a.low, a.port),
    )


def _endpoints(row: ConnectionRow) -> tuple[Endpoint, Endpoint]:
    return _endpoint(row.ends[0]), _endpoint(row.ends[1])


def _endpoint(end: EndRow) -> Endpoint:
    return end.high & _ADDRESS, end.low & _ADDRESS, end.port
