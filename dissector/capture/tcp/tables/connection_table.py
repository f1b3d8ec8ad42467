"""All TCP connections: a row of numbers each, and objects of the materialised ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, overload

import numpy as np

from dissector.capture.columns import Int8s, Int64s
from dissector.capture.tcp.both_paths.connection_columns import (
    A_HIGH,
    ACKED,
    ACKED_PACKET,
    ANCHORED,
    B_LOW,
    BYTES,
    COLUMNS,
    COUNTERS_AT,
    DATA_NS,
    ENDED,
    ENDED_AT,
    FINISHED,
    FIRST,
    FIRST_NS,
    FIRST_PACKET,
    GAPS,
    HAS_ACKED,
    HAS_ISN,
    LAST_NS,
    LIVE,
    NETWORK_AT,
    NEXT,
    ORIENTED,
    PACKETS,
    PORTS,
    RESENT,
    SIDE,
    SIDE_FLAGS,
    SIDES,
    STATE,
    SYN_SEEN,
    WAITS,
)
from dissector.capture.tcp.both_paths.reassembly_limits import MAX_STEPS
from dissector.capture.tcp.both_paths.tcp_arrays import StateArrays
from dissector.capture.tcp.both_paths.tcp_header import SEQ_MASK
from dissector.capture.tcp.both_paths.waiting_columns import CONNECTIONS, COUNTS
from dissector.capture.tcp.connections import (
    END_REASONS,
    Connection,
    ConnectionColumns,
    Deliveries,
    Endpoint,
)
from dissector.capture.tcp.objects.chunk_builder import ReorderState
from dissector.capture.tcp.objects.connection_state import FlowKey, LiveConnection
from dissector.capture.tcp.objects.stream_reassembler import Stream
from dissector.capture.tcp.tables.loss_table import LossCounterTable
from dissector.capture.tcp.tables.waiting_table import WaitingTable

_ROW = Struct(f"={COLUMNS}q")
_FIRST_ROWS = 16
_ADDRESS = (1 << 64) - 1


class ConnectionTable(Sequence[Connection]):
    """
    The connections so far, by number.

    A `Connection` taken from the table is a snapshot.

    Attributes:
        rows: Their columns, see `connection_columns`; there is room for more.
        live: The materialised connections, by number; their rows are out of date.
        counts: Counters that kernels and objects share, see `waiting_columns`.
        counters: Loss counters of the few streams that have any.
        waiting: Waiting data of connections that are not materialised.
    """

    def __init__(self) -> None:
        self.counts: Int64s = np.zeros(COUNTS, np.int64)
        self.rows: Int64s = np.empty((_FIRST_ROWS, COLUMNS), dtype=np.int64)
        self.live: dict[int, LiveConnection] = {}
        self.counters = LossCounterTable(self.counts)
        self.waiting = WaitingTable(self.counts)

    @property
    def size(self) -> int:
        """Number of connections."""
        return int(self.counts[CONNECTIONS])

    @size.setter
    def size(self, size: int) -> None:
        self.counts[CONNECTIONS] = size

    @property
    def arrays(self) -> StateArrays:
        """The current arrays of the kernel."""
        losses, waiting = self.counters, self.waiting
        tables = self.rows, losses.counts, losses.gaps, waiting.waits, waiting.waiting
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
            self._write(live, LIVE)
        if numbers is None:
            numbers = np.arange(self.size, dtype=np.int64)
        rows = self.rows[numbers]
        state = rows[:, STATE]
        sides = rows[:, SIDES:].reshape(-1, 2, SIDE)
        losses = self.counters.counts[sides[:, :, SIDE_FLAGS] >> COUNTERS_AT, :GAPS]
        return ConnectionColumns(
            number=numbers,
            network=state >> NETWORK_AT,
            address=np.ascontiguousarray(rows[:, A_HIGH : B_LOW + 1])
            .view(np.uint64)
            .reshape(-1, 2, 2),
            port=np.stack((rows[:, PORTS] >> 16, rows[:, PORTS] & 0xFFFF), axis=1),
            first_ns=rows[:, FIRST_NS],
            last_ns=rows[:, LAST_NS],
            syn_seen=state & SYN_SEEN != 0,
            both_syns=(sides[:, :, SIDE_FLAGS] & HAS_ISN != 0).all(axis=1),
            ended=((state & ENDED) >> ENDED_AT).astype(np.int8),
            sides=np.concatenate((sides[:, :, PACKETS : BYTES + 1], losses), axis=2),
        )

    def endpoints(self, number: int) -> tuple[Endpoint, Endpoint]:
        """Return the endpoints of a connection."""
        return _endpoints(_ROW.unpack_from(self.rows.data, number * _ROW.size))

    def first_packets(self, numbers: Int64s) -> Int64s:
        """Return the number of the first packet of each of these connections."""
        firsts: Int64s = self.rows[numbers, FIRST_PACKET]
        return firsts

    def first_sequences(self, numbers: Int64s) -> Int64s:
        """Return the initial sequence numbers of both streams of these connections."""
        return self._sides(numbers)[:, :, FIRST] & SEQ_MASK

    def fin_sequences(self, numbers: Int64s) -> Int64s:
        """Return the sequence numbers of the FINs of both sides; -1 while it is open."""
        sides = self._sides(numbers)
        has_fin = sides[:, :, SIDE_FLAGS] & FINISHED != 0
        return np.where(has_fin, sides[:, :, NEXT] - 1 & SEQ_MASK, -1)

    def deliveries(self, numbers: Int64s) -> Deliveries:
        """Return how far the streams of connections were delivered."""
        sides = self._sides(numbers)
        first, known = sides[:, :, FIRST], ANCHORED | HAS_ACKED
        has_acked = sides[:, :, SIDE_FLAGS] & known == known
        acked = np.where(has_acked, sides[:, :, ACKED] - first, -1)
        return Deliveries(sides[:, :, NEXT] - first, acked, sides[:, :, RESENT])

    def next_sequences(self, numbers: Int64s) -> Int64s:
        """Return the next sequence numbers of both streams, sent or acknowledged; -1: neither."""
        sides = self._sides(numbers)
        flags = sides[:, :, SIDE_FLAGS]
        acked = np.where(flags & HAS_ACKED != 0, sides[:, :, ACKED] & SEQ_MASK, -1)
        return np.where(flags & ANCHORED != 0, sides[:, :, NEXT] & SEQ_MASK, acked)

    def missing_sides(self, numbers: Int64s) -> Int8s:
        """Return the side of which no packet was captured, though the other acknowledged it; -1."""
        sides = self._sides(numbers)
        is_missing = (sides[:, :, PACKETS] == 0) & (sides[:, :, SIDE_FLAGS] & HAS_ACKED != 0)
        return np.where(is_missing.any(axis=1), is_missing[:, 1], -1).astype(np.int8)

    def _sides(self, numbers: Int64s) -> Int64s:
        """Return the columns of the sides of connections, [n, 2, `SIDE`]."""
        for live in self.live.values():
            self._write(live, LIVE)
        sides: Int64s = self.rows[numbers][:, SIDES:].reshape(-1, 2, SIDE)
        return sides

    def begin(self, key: FlowKey, first_packet: int, first_ns: int) -> LiveConnection:
        """Add a connection with `key` for the data of side 0; return it as an object."""
        if self.size == len(self.rows):
            rows = np.empty((2 * self.size, COLUMNS), dtype=np.int64)
            rows[: self.size] = self.rows
            self.rows = rows
        network, high, low, port, to_high, to_low, to_port = key
        ends = (high, low, to_high, to_low, port << 16 | to_port, first_packet)
        state = network << NETWORK_AT
        number = self.size
        _ROW.pack_into(
            self.rows.data, number * _ROW.size, *ends, first_ns, first_ns, state, 0, *_NO_STREAMS
        )
        self.size += 1
        return self.materialise(number)

    def materialise(self, number: int) -> LiveConnection:
        """Return a connection as an object, which is authoritative until `demote`."""
        live = self.live.get(number)
        if live is not None:
            return live
        row = _ROW.unpack_from(self.rows.data, number * _ROW.size)
        state = row[STATE]
        reorder = ReorderState(number, [None, None])
        streams = self._stream(row, reorder, 0), self._stream(row, reorder, 1)
        if row[WAITS]:
            self.waiting.load(row[WAITS], reorder, streams)
        return LiveConnection(
            number,
            _keys(row),
            reorder,
            streams,
            last_ns=row[LAST_NS],
            oriented=state & ORIENTED != 0,
            syn_seen=state & SYN_SEEN != 0,
            ended=END_REASONS[(state & ENDED) >> ENDED_AT],
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
        number = live.number
        if number not in self.live and self.rows[number, WAITS]:
            self.waiting.remove(self._views(), number, int(self.rows[number, WAITS]))
        if may_move and live.fits_row:
            self.live.pop(number, None)
            self._write(live, 0)
            if any(live.reorder.buffers):
                self.waiting.reserve(2 * MAX_STEPS)
                self.waiting.store(self._views(), number, live.reorder, live.streams)
            return True
        self.live[number] = live
        self.rows[number, STATE] |= LIVE
        return False

    def _views(self) -> StateArrays:
        """Return the arrays for Python code."""
        arrays: Iterable[Any] = self.arrays
        return StateArrays._make(each.data for each in arrays)

    def has_both_syns(self, number: int) -> bool:
        """Return whether the SYNs of both streams are known."""
        first, second = self.materialise(number).streams
        return first.isn is not None and second.isn is not None

    def swap_sides(self, live: LiveConnection) -> None:
        """Exchange the sides; before anything was released or waits."""
        live.swap_sides()
        row = self.rows[live.number]
        row[A_HIGH : B_LOW + 1] = np.roll(row[A_HIGH : B_LOW + 1], 2)
        row[PORTS] = (row[PORTS] & 0xFFFF) << 16 | row[PORTS] >> 16
        row[SIDES:] = np.roll(row[SIDES:], SIDE)

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
        flags = rows[:, [SIDES + SIDE_FLAGS, SIDES + SIDE + SIDE_FLAGS]]
        counters = self.counters.retain(flags >> COUNTERS_AT)
        rows[:, [SIDES + SIDE_FLAGS, SIDES + SIDE + SIDE_FLAGS]] = (
            counters << COUNTERS_AT | flags & (1 << COUNTERS_AT) - 1
        )
        self.size = len(rows)
        self.rows = np.concatenate([rows, np.empty((_FIRST_ROWS, COLUMNS), dtype=np.int64)])

    def incomplete(self) -> set[int]:
        """Return the connections with waiting segments or known gaps."""
        sides = self.rows[: self.size, SIDES:].reshape(-1, 2, SIDE)
        flags = sides[:, :, SIDE_FLAGS] & (ANCHORED | HAS_ACKED | FINISHED)
        missing = sides[:, :, ACKED] - sides[:, :, NEXT] > 1
        waits = self.rows[: self.size, WAITS] != 0
        incomplete = waits | ((flags == ANCHORED | HAS_ACKED) & missing).any(axis=1)
        return {*self.live, *np.nonzero(incomplete)[0].tolist()}

    def _stream(self, row: tuple[int, ...], stalls: ReorderState, number: int) -> Stream:
        side = row[SIDES + SIDE * number : SIDES + SIDE * (number + 1)]
        flags = side[SIDE_FLAGS]
        losses = self.counters.load(flags >> COUNTERS_AT, side[PACKETS], side[BYTES])
        stream = Stream(losses, stalls, number)
        if flags & ANCHORED:
            stream.next, stream.first = side[NEXT], side[FIRST]
        if flags & HAS_ACKED:
            stream.acked, stream.acked_ns, stream.acked_packet = side[ACKED : ACKED_PACKET + 1]
        stream.data_ns, stream.resent = side[DATA_NS], side[RESENT]
        if flags & HAS_ISN:
            stream.isn = side[FIRST] - 1
        if flags & FINISHED:
            stream.finished = True
            stream.fin = side[NEXT] - 1
        return stream

    def _write(self, live: LiveConnection, live_flag: int) -> None:
        """Write the object's state into the connection's row, except parts a row cannot hold."""
        at = live.number * _ROW.size
        row = _ROW.unpack_from(self.rows.data, at)
        state = (
            row[STATE] >> NETWORK_AT << NETWORK_AT
            | END_REASONS.index(live.ended) << ENDED_AT
            | live_flag
        )
        state |= ORIENTED * live.oriented | SYN_SEEN * live.syn_seen
        first, second = (
            self._numbers(stream, row[SIDES + SIDE * number + SIDE_FLAGS] >> COUNTERS_AT)
            for number, stream in enumerate(live.streams)
        )
        head = *row[:LAST_NS], live.last_ns, state, row[WAITS]
        _ROW.pack_into(self.rows.data, at, *head, *first, *second)

    def _numbers(self, stream: Stream, counters_row: int) -> tuple[int, ...]:
        flags = self.counters.store(counters_row, stream.losses) << COUNTERS_AT
        flags |= ANCHORED * (stream.next is not None) | HAS_ACKED * (stream.acked is not None)
        flags |= HAS_ISN * (stream.isn is not None) | FINISHED * stream.finished
        return (
            stream.next or 0,
            stream.first or 0,
            stream.acked or 0,
            stream.acked_ns,
            stream.acked_packet,
            stream.side.packets,
            stream.side.bytes,
            stream.data_ns,
            stream.resent,
            flags,
        )

    def _connection(self, number: int) -> Connection:
        """Return a snapshot of a connection."""
        live = self.materialise(number)
        row = _ROW.unpack_from(self.rows.data, number * _ROW.size)
        first, second = live.streams
        a, b = _endpoints(row)
        return Connection(
            id=number,
            network=row[STATE] >> NETWORK_AT,
            a=a,
            b=b,
            first_ns=row[FIRST_NS],
            last_ns=live.last_ns,
            sides=(first.side, second.side),
            syn_seen=live.syn_seen,
            ended=live.ended,
        )


_NO_STREAMS = (0,) * (2 * SIDE)


def _keys(row: tuple[int, ...]) -> tuple[FlowKey, FlowKey]:
    """Return the flow keys of the two sides."""
    a_high, a_low, b_high, b_low, ports = row[A_HIGH : PORTS + 1]
    network = row[STATE] >> NETWORK_AT
    a, b = ports >> 16, ports & 0xFFFF
    return (
        (network, a_high, a_low, a, b_high, b_low, b),
        (network, b_high, b_low, b, a_high, a_low, a),
    )


def _endpoints(row: tuple[int, ...]) -> tuple[Endpoint, Endpoint]:
    a_high, a_low, b_high, b_low = (number & _ADDRESS for number in row[A_HIGH:PORTS])
    return (a_high, a_low, row[PORTS] >> 16), (b_high, b_low, row[PORTS] & 0xFFFF)
