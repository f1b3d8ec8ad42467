"""
Correlates all connections of a capture: chunks in, exchanges out, window by window.

The exchanges of a window depend on earlier windows only through the retained state: the bytes of
unfinished frames and of requests in flight, and a few hundred bytes for each connection, 15 once it
has ended or is silent for long.

The kernel (`correlate`) does the work on tables. It stops where it needs Python: to make room in a
table, to load an API, or to decide which connections lead to brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import DATA, END, NEVER, Chunks
from dissector.capture.prefaces import Preface, read_preface
from dissector.capture.tcp.connections import END_REASONS, Endpoint
from dissector.engine.correlation.correlator_arrays import ChunkColumns
from dissector.engine.correlation.correlator_kernel import correlate, forget
from dissector.engine.correlation.correlator_rows import ConnectionRow, Mode, Outcome
from dissector.engine.correlation.doubtful import Brokers, Connections
from dissector.engine.correlation.state_tables import StateTables, new_connection
from dissector.engine.tables.exchange_table import ENDING_AT, NONE, Exchanges, Ints
from dissector.engine.tables.login_learning import learn
from dissector.engine.tables.logins import Logins
from dissector.kernel.named_rows import RowArray, row_of
from dissector.kernel.packed_rows import BLOCK_ROWS
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.protocol.headers import PRODUCE

REST_ROWS = BLOCK_ROWS
"""Connections that have ended or are silent are packed when there are this many."""

_SPEAKS = {Mode.KAFKA: "kafka", Mode.DOUBTFUL: "doubtful", Mode.TLS: "tls", Mode.OTHER: "other"}


class ConnectionState(NamedTuple):
    """
    The state of a connection.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        client: The side that sends requests; None while that is open.
        skipped: Of each side, bytes that were skipped because they hold no plausible frame.
        entered: Of each side, the offset in the stream of the first plausible frame.
        prefaces: Of each side, bytes that a proxy put before Kafka; they are skipped too.
    """

    speaks: str
    client: int | None
    skipped: tuple[int, int]
    entered: tuple[int | None, int | None]
    prefaces: tuple[int, int]


class Correlator:
    """
    Correlates requests and responses on all connections.

    Attributes:
        most_doubtful: Number of doubtful connections after which these are decided before the end.
        is_shard: Whether the capture is split into several shards. It does not know the brokers of
            the others, so all that may be brokers are taken for brokers.
        brokers: At the end: the brokers with exchanges, by network and endpoint.
        doubtful_sides: At the end: connections and sides with only a few responses, which are Kafka
            only with a known broker as endpoint.
        tables: The state of the kernel.
        logins: The secrets that the logins showed.
    """

    def __init__(
        self,
        connections: Connections,
        ports: frozenset[int] = frozenset(),
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """
        Start a capture.

        Args:
            connections: Of the capture.
            ports: Only connections on these are read, and taken for Kafka; empty: all.
            max_frame_bytes: Larger frames are skipped as a problem.
        """
        self._connections = connections
        self._ports = ports
        self.tables = StateTables()
        self.tables.counts.max_frame_bytes = max_frame_bytes
        self._brokers = Brokers(self.tables, connections)
        self._prefaces: dict[tuple[int, int], Preface] = {}
        self._started_count = self._newest_ns = 0
        self._next_rest = REST_ROWS
        self._dropped_spoken = Counter[str]()
        self._dropped_skipped_bytes = 0
        self.logins = Logins()
        self.is_shard = False
        self.most_doubtful: int | None = None
        self.brokers: frozenset[tuple[int, Endpoint]] = frozenset()
        self.doubtful_sides: dict[int, int] = {}

    def feed(self, chunks: Chunks) -> Exchanges:
        """Process the chunks of the next window; return the exchanges that ended in it."""
        return self._feed(chunks)

    def _feed(self, chunks: Chunks, ended: Collection[int] | None = None) -> Exchanges:
        """Process chunks; the last ones of `ended` connections."""
        tables = self.tables
        self._rest()
        self._newest_ns = int(chunks.time_ns.max(initial=self._newest_ns))
        tables.start_window(chunks.data, len(chunks) + 16)
        self._start_connections(chunks)
        self._run(chunks, tables.carry(chunks.carry_over))
        if self.most_doubtful is not None and tables.counts.doubtful_count > self.most_doubtful:
            self._decide_early()
        if ended is not None:
            self._brokers.take_doubtful()
            self.brokers = self._brokers.known()
            brokers = None if self.is_shard else self.brokers
            self.doubtful_sides = dict(self._brokers.judge(brokers, ended))
            self._run(_ends(list(self.doubtful_sides)))
        self._read_prefaces()
        exchanges = tables.end_window()
        self._name_endings(exchanges, at_end=ended is not None)
        learn(self.logins, exchanges)
        exchanges.logins = self.logins
        return exchanges

    def finish(self, numbers: Ints | None = None) -> Exchanges:
        """
        Return the exchanges that end with the capture; connections end in the order of their start.

        Args:
            numbers: Only these connections end; None: all.
        """
        tables = self.tables
        orders = tables.connections["order"][: len(tables.numbers)]
        started = tables.numbers[np.argsort(orders)]
        if numbers is not None:
            started = started[np.isin(started, numbers)]
        return self._feed(_ends(started.tolist()), ended=set(started.tolist()))

    def restart(self, numbers: list[int]) -> None:
        """Start connections again, between two windows: their bytes so far were encrypted."""
        tables, chosen = self.tables, np.array(numbers, np.int64)
        tables.resting.number_up_to(len(self._connections))
        tables.give_rows(chosen[tables.resting.has(chosen)])
        rows: Ints = tables.places[chosen].astype(np.int64)
        rows = rows[rows >= 0]
        forget(rows, tables.state())
        for number in tables.numbers[rows].tolist():
            self._brokers.forget(number)
            for side in (0, 1):
                self._prefaces.pop((number, side), None)
        self._start_rows(rows, tables.connections["order"][rows])

    def retain(self, numbers: Ints) -> None:
        """
        Drop all connections but these, in order; each gets its index as its new number.

        The others must have ended by `finish`.
        """
        tables = self.tables
        size = max(len(tables.places), int(numbers.max(initial=-1)) + 1)
        tables.resting.number_up_to(size)
        new_numbers = np.full(size, NONE, np.int64)
        new_numbers[numbers] = np.arange(len(numbers))
        self._brokers.take_emitters()
        tables.give_rows(numbers[tables.resting.has(numbers)])
        forget(np.flatnonzero(new_numbers[tables.numbers] == NONE), tables.state())
        tables.retain(numbers)
        self._brokers.retain(new_numbers)
        self._prefaces = {
            (int(new_numbers[number]), side): preface
            for (number, side), preface in self._prefaces.items()
            if new_numbers[number] != NONE
        }
        self.logins.retain(new_numbers)

    @property
    def early_decisions(self) -> int:
        """Number of times doubtful connections were decided before the end, for lack of room."""
        return self._brokers.early_decisions

    def low_watermark(self) -> int:
        """Return the first packet with a frame that waits for a response or for its turn."""
        return min(self.tables.waiting_packet(), self.tables.lowest_barrier())

    def records_from(self) -> int:
        """Return the first packet of a Produce in flight, or of bytes that wait for their turn."""
        return min(self.tables.waiting_packet(PRODUCE), self.tables.lowest_barrier())

    def in_flight(self) -> Exchanges:
        """Return the requests in flight, between two windows."""
        exchanges = self.tables.in_flight()
        exchanges.logins = self.logins
        return exchanges

    def state_of(self, connection: int) -> ConnectionState | None:
        """Return the state of a connection; None if no side has sent anything."""
        table = self.tables.read(connection)
        if table is None:
            return None
        row = row_of(table, ConnectionRow)
        a, b = row.sides[0], row.sides[1]
        return ConnectionState(
            _SPEAKS.get(row.mode, ""),
            row.client if row.mode == Mode.KAFKA else None,
            (a.skipped, b.skipped),
            (_offset_or_none(a.entered), _offset_or_none(b.entered)),
            self._preface_sizes(connection),
        )

    def origins(self, connections: Iterable[int]) -> list[str | None]:
        """Return the client before a proxy, or the target of CONNECT, of each connection."""
        prefaces = self._prefaces
        if not prefaces:
            return [None for _ in connections]
        found = ([prefaces.get((number, side)) for side in (0, 1)] for number in connections)
        return [next((each.origin for each in both if each), None) for both in found]

    def _preface_sizes(self, connection: int) -> tuple[int, int]:
        a, b = (self._prefaces.get((connection, side)) for side in (0, 1))
        return (a.size if a else 0, b.size if b else 0)

    def skipped_bytes(self) -> int:
        """Return the number of bytes outside of Kafka frames in Kafka connections."""
        return self._dropped_skipped_bytes + sum(_skipped(rows) for _, rows in self.tables.parts())

    def skipping(self) -> list[int]:
        """Return the Kafka connections with bytes outside of Kafka frames."""
        found = [
            numbers[(rows["mode"] == Mode.KAFKA) & rows["sides"]["skipped"].any(axis=1)]
            for numbers, rows in self.tables.parts()
        ]
        skipping: list[int] = np.sort(np.concatenate(found)).tolist()
        return skipping

    def spoken(self) -> Counter[str]:
        """Return how many connections speak what, as in `ConnectionState`."""
        counts = self._dropped_spoken.copy()
        for _, rows in self.tables.parts():
            counts.update(_spoken(rows))
        return +counts

    def may_drop(self, numbers: Ints) -> NDArray[np.bool_]:
        """Return of which connections nothing waits here."""
        self.tables.resting.number_up_to(len(self._connections))
        return self.tables.places[numbers] < 0

    def drop(self, numbers: Ints) -> None:
        """Drop connections of which nothing waits, for ever; what they spoke still counts."""
        tables = self.tables
        started = numbers[tables.resting.has(numbers)]
        rows = tables.resting.read(started)
        self._dropped_spoken.update(_spoken(rows))
        self._dropped_skipped_bytes += _skipped(rows)
        with tables.lock:
            tables.resting.forget(numbers)
        for number in numbers.tolist() if self._prefaces else ():
            for side in (0, 1):
                self._prefaces.pop((number, side), None)

    def _start_connections(self, chunks: Chunks) -> None:
        """Start the connections with first chunks in this window."""
        tables = self.tables
        tables.resting.number_up_to(len(self._connections))
        with tables.lock:
            rowless = chunks.connection[tables.places[chunks.connection] < 0]
            numbers, first = np.unique(rowless, return_index=True)
            started = tables.give_rows(numbers[np.argsort(first)])
        self._start_rows(started, self._started_count + np.arange(len(started)))
        self._started_count += len(started)

    def _start_rows(self, rows: Ints, orders: Ints) -> None:
        """Set the rows of connections to their beginning."""
        tables = self.tables
        columns = self._connections.columns(tables.numbers[rows])
        client: Ints = np.full(len(rows), -1)
        for side in (0, 1):
            for port in self._ports:
                client[columns.port[:, side] == port] = 1 - side
        for start_captured in (False, True):
            for client_side in (-1, 0, 1):
                chosen = rows[(columns.syn_seen == start_captured) & (client == client_side)]
                tables.connections[chosen] = new_connection(
                    start_captured, None if client_side < 0 else client_side
                )
        tables.connections["order"][rows] = orders
        if self._ports:
            tables.connections["mode"][rows[client < 0]] = Mode.OTHER

    def _rest(self) -> None:
        """Pack connections that have ended or are silent, if there are many."""
        tables = self.tables
        if len(tables.numbers) >= self._next_rest:
            self._brokers.take_emitters()
            tables.rest(REST_ROWS, self._newest_ns)
            self._next_rest = len(tables.numbers) + max(REST_ROWS, len(tables.numbers) // 4)

    def _run(self, chunks: Chunks, carry_over_start: int = 0) -> None:
        """Process chunks."""
        tables, counts = self.tables, self.tables.counts
        counts.next_chunk = 0
        columns = ChunkColumns._make(getattr(chunks, name) for name in ChunkColumns._fields)
        rows: Any = tables.places[chunks.connection].astype(np.int64)
        columns = columns._replace(connection=rows)
        while (outcome := correlate(columns, tables.state(), carry_over_start)) != Outcome.DONE:
            at = counts.next_chunk
            if outcome == Outcome.NEEDS_API:
                tables.load_api()
            elif outcome == Outcome.NEEDS_PROGRAM:
                tables.load_programs()
            elif outcome == Outcome.DOUBTS_FULL:
                self._decide_early()
                counts.next_chunk = at
            else:
                length = int(chunks.length[at]) if chunks.kind[at] == DATA else 0
                tables.make_room(int(rows[at]), length)

    def _decide_early(self) -> None:
        """Decide about doubtful connections by the brokers that are known."""
        self._brokers.take_doubtful()
        self._brokers.early_decisions += 1
        judged = [number for number, _ in self._brokers.judge(self._brokers.known())]
        self._run(_ends(judged))

    def _read_prefaces(self) -> None:
        """Read the headers of proxies that were skipped before the frames of a stream."""
        for row, side, data in self.tables.take_prefaces():
            is_client = side == self.tables.connection_rows[row].client
            preface = read_preface(data, is_client=is_client)
            if preface.size:
                self._prefaces[int(self.tables.numbers[row]), side] = preface

    def _name_endings(self, exchanges: Exchanges, at_end: bool) -> None:
        """Add how the connection ended to messages that its end broke off."""
        for row in np.flatnonzero(exchanges.broken_off).tolist():
            # At the end of a capture it is unknown whether the connection ends too.
            ended = self._connections[int(exchanges.connection[row])].ended
            ending = END_REASONS.index(ended) << ENDING_AT
            exchanges.broken_off[row] = 0 if at_end else exchanges.broken_off[row] | ending


def _ends(numbers: list[int]) -> Chunks:
    """Return the ends of connections as chunks."""
    zeros, zero_bytes = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int8)
    no_bytes = np.zeros(0, np.uint8)
    return Chunks(
        data=no_bytes,
        carry_over=no_bytes,
        connection=np.array(numbers, np.int64),
        side=zero_bytes,
        kind=np.full_like(zero_bytes, END),
        origin=zero_bytes,
        start=zeros,
        length=zeros,
        packet=zeros,
        time_ns=zeros,
        release=zeros,
        rtt_ns=zeros - 1,
        resent_ns=zeros + NONE,
        barrier=np.full((len(numbers), 2), NEVER, np.int64),
    )


def _spoken(rows: RowArray) -> dict[str, int]:
    """Return how many connections speak what."""
    counts = Counter[str]()
    for mode, count in enumerate(np.bincount(rows["mode"]).tolist()):
        counts[_SPEAKS.get(mode, "")] += count
    return counts


def _skipped(rows: RowArray) -> int:
    """Return the bytes that connections skipped between Kafka frames."""
    return int(rows["sides"]["skipped"][rows["mode"] == Mode.KAFKA].sum())


def _offset_or_none(offset: int) -> int | None:
    return None if offset == NONE else offset
