"""
Correlates all connections of a capture: chunks in, exchanges out, window by window.

The exchanges of a window depend on earlier windows only through the retained state: the bytes of
unfinished frames and of requests in flight, and a few hundred bytes for each connection.

The kernel (`correlate`) leads the connections of the fast path in tables; the others are led by
objects (`ConnectionCorrelator`), as long as they need the slow path. Both emit the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import DATA, END, NEVER, Chunks
from dissector.capture.tcp.connections import Endpoint
from dissector.engine.correlation.both_paths import correlation_limits as limits
from dissector.engine.correlation.both_paths.correlator_rows import (
    CARRY_OVER_BASE,
    KAFKA,
    NOT_STARTED,
    ON_SLOW_PATH,
    OTHER,
    TLS,
    UNRECOGNISED,
    ChunkColumns,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import load_api, new_api_limits
from dissector.engine.correlation.fast_path.correlator_kernel import (
    DONE,
    NEEDS_API,
    NEEDS_SLOW_PATH,
    correlate,
    list_started,
)
from dissector.engine.correlation.handover import frame_of, new_connection
from dissector.engine.correlation.login_learning import learn
from dissector.engine.correlation.objects.exchange_rows import ExchangeRow, to_exchange_table
from dissector.engine.correlation.slow_path import Connections, SlowPath
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import NONE, WAITING, Exchanges, Ints
from dissector.engine.tables.logins import Logins

_SPEAKS = {KAFKA: "kafka", TLS: "tls", OTHER: "other"}


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
        is_shard: Whether the capture is split into several shards. It does not know the brokers of
            the others, so all that may be brokers are taken for brokers.
        brokers: At the end: the brokers with exchanges, by network and endpoint.
        doubtful_sides: At the end: connections and sides with only a few responses, which are Kafka
            only with a known broker as endpoint.
        tables: The state of the kernels.
        slow_path: The connections that objects lead, and their state.
        logins: The secrets that the logins showed.
    """

    def __init__(
        self,
        connections: Connections,
        ports: frozenset[int] = frozenset(),
        max_frame_bytes: int = limits.MAX_FRAME_BYTES,
        *,
        use_fast_path: bool = True,
    ) -> None:
        """
        Start a capture.

        Args:
            connections: Of the capture.
            ports: Only connections on these are read, and taken for Kafka; empty: all.
            max_frame_bytes: Larger frames are skipped as a problem.
            use_fast_path: If false, objects lead all connections: slow, the reference for tests.
        """
        self._connections = connections
        self._ports = ports
        self._uses_fast_path = use_fast_path
        self.tables = StateTables()
        self.tables.counts.max_frame_bytes = max_frame_bytes
        self._api_limits = new_api_limits()
        self.slow_path = SlowPath(
            self.tables, connections, max_frame_bytes, keep_objects=not use_fast_path
        )
        self._started: Ints = np.zeros(0, np.int64)
        self._started_count = 0
        self.logins = Logins()
        self.is_shard = False
        self.brokers: frozenset[tuple[int, Endpoint]] = frozenset()
        self.doubtful_sides: dict[int, int] = {}

    def feed(self, chunks: Chunks) -> Exchanges:
        """Process the chunks of the next window; return the exchanges that ended in it."""
        return self._feed(chunks)

    def _feed(self, chunks: Chunks, ended: Collection[int] | None = None) -> Exchanges:
        """Process chunks; the last ones of `ended` connections."""
        tables = self.tables
        tables.start_window(chunks.data, len(chunks) + 16)
        tables.counts.max_open, tables.counts.max_open_bytes = (
            limits.MAX_OPEN,
            limits.MAX_OPEN_BYTES,
        )
        self._start_connections(chunks)
        self.slow_path.at_end = ended is not None
        self._run(chunks, tables.carry(chunks.carry_over) - CARRY_OVER_BASE)
        if ended is not None:
            self.brokers = self.slow_path.brokers()
            brokers = None if self.is_shard else self.brokers
            self.doubtful_sides = self.slow_path.resolve_doubts(brokers, ended)
        exchanges = tables.end_window()
        learn(self.logins, exchanges)
        exchanges.logins = self.logins
        return exchanges

    def finish(self, numbers: Ints | None = None) -> Exchanges:
        """
        Return the exchanges that end with the capture; connections end in the order of their start.

        Args:
            numbers: Only these connections end; None: all.
        """
        started = self._started[: self._started_count].copy()
        if numbers is not None:
            started = started[np.isin(started, numbers)]
        zeros, zero_bytes = np.zeros_like(started), np.zeros(len(started), np.int8)
        no_bytes = np.zeros(0, np.uint8)
        return self._feed(
            Chunks(
                data=no_bytes,
                carry_over=no_bytes,
                connection=started,
                side=zero_bytes,
                kind=np.full_like(zero_bytes, END),
                origin=zero_bytes,
                start=zeros,
                length=zeros,
                packet=zeros,
                time_ns=zeros,
                release=zeros,
                barrier=np.full((len(started), 2), NEVER, np.int64),
            ),
            ended=set(started.tolist()),
        )

    def restart(self, numbers: list[int]) -> None:
        """Start connections again, between two windows: their bytes so far were encrypted."""
        self.tables.connections = with_capacity(self.tables.connections, len(self._connections))
        modes = self.tables.connections["mode"][numbers].tolist()
        begun = [each for each, mode in zip(numbers, modes, strict=True) if mode != NOT_STARTED]
        for number in begun:
            self.slow_path.forget(number)
        client = self._start_rows(np.array(begun, np.int64))
        if not self._uses_fast_path:
            self._start_on_slow_path(begun, client.tolist())

    def retain(self, numbers: Ints) -> None:
        """
        Drop all connections but these, in order; each gets its index as its new number.

        The others must have ended by `finish`.
        """
        tables, size = self.tables, int(self._started[: self._started_count].max(initial=-1)) + 1
        new_numbers = np.full(max(size, int(numbers.max(initial=-1)) + 1), NONE, np.int64)
        new_numbers[numbers] = np.arange(len(numbers))
        rows = with_capacity(tables.connections, len(new_numbers))
        removed = rows[np.flatnonzero(new_numbers == NONE)]
        is_held = np.isin(removed["mode"], (UNRECOGNISED, KAFKA))
        for first in removed["sides"]["first_fragment"][is_held].ravel().tolist():
            tables.free_list(first)
        tables.connections = rows[numbers]
        started = new_numbers[self._started[: self._started_count]]
        self._started = started[started != NONE]
        self._started_count = len(self._started)
        self.slow_path.retain(new_numbers)
        self.logins.retain(new_numbers)

    @property
    def early_decisions(self) -> int:
        """Number of doubtful connections decided before the end, for lack of room."""
        return self.slow_path.early_decisions

    def low_watermark(self) -> int:
        """Return the first packet with a frame that waits for a response or for its turn."""
        on_slow_path = [
            correlator.low_watermark for correlator in self.slow_path.correlators.values()
        ]
        tables = self.tables
        return min([tables.waiting_packet(), tables.lowest_barrier(), *on_slow_path])

    def in_flight(self) -> Exchanges:
        """Return the requests in flight, between two windows."""
        exchanges = to_exchange_table(self._rows_in_flight())
        exchanges.logins = self.logins
        return exchanges

    def _rows_in_flight(self) -> list[ExchangeRow]:
        tables, rows = self.tables, list[ExchangeRow]()
        connections = tables.connections
        is_waiting = (connections["mode"] == KAFKA) & (connections["open_count"] > 0)
        for number in np.flatnonzero(is_waiting).tolist():
            connection = tables.connection_rows[number]
            client = connection.client
            for _, entry in tables.list_from(connection.oldest_request):
                frame = frame_of(tables, client, entry)
                rows.append(ExchangeRow(number, WAITING, client, frame, None))
        for number, correlator in self.slow_path.correlators.items():
            for request in correlator.open_requests.oldest_first():
                frame = request.frame
                is_token = correlator.login.may_be_token(frame)
                rows.append(ExchangeRow(number, WAITING, frame.side, frame, None, is_token))
        return rows

    def state_of(self, connection: int) -> ConnectionState | None:
        """Return the state of a connection; None if no side has sent anything."""
        if connection >= len(self.tables.connections):
            return None
        row = self.tables.connection_rows[connection]
        if row.mode == NOT_STARTED:
            return None
        if row.mode == ON_SLOW_PATH:
            correlator = self.slow_path.correlators[connection]
            first, second = correlator.streams
            skipped, entered = (first.skipped, second.skipped), (first.entered, second.entered)
            speaks, client = correlator.speaks, correlator.client
            return ConnectionState(
                speaks, client, skipped, entered, self._preface_sizes(connection)
            )
        a, b = row.sides[0], row.sides[1]
        return ConnectionState(
            _SPEAKS.get(row.mode, ""),
            row.client if row.mode == KAFKA else None,
            (a.skipped, b.skipped),
            (_offset_or_none(a.entered), _offset_or_none(b.entered)),
            self._preface_sizes(connection),
        )

    def origins(self, connections: Iterable[int]) -> list[str | None]:
        """Return the client before a proxy, or the target of CONNECT, of each connection."""
        prefaces = self.slow_path.prefaces
        if not prefaces:
            return [None for _ in connections]
        found = ([prefaces.get((number, side)) for side in (0, 1)] for number in connections)
        return [next((each.origin for each in both if each), None) for both in found]

    def _preface_sizes(self, connection: int) -> tuple[int, int]:
        prefaces = self.slow_path.prefaces
        a, b = (prefaces.get((connection, side)) for side in (0, 1))
        return (a.size if a else 0, b.size if b else 0)

    def skipping(self) -> list[int]:
        """Return the Kafka connections with bytes outside of Kafka frames."""
        connections = self.tables.connections
        skipped = connections["sides"]["skipped"].any(axis=1)
        found: list[int] = np.flatnonzero((connections["mode"] == KAFKA) & skipped).tolist()
        return found + [
            number
            for number, correlator in self.slow_path.correlators.items()
            if correlator.speaks == "kafka" and any(each.skipped for each in correlator.streams)
        ]

    def __iter__(self) -> Iterator[ConnectionState]:
        """Yield the state of each connection, in the order of their start."""
        states = map(self.state_of, self._started[: self._started_count].tolist())
        return (state for state in states if state is not None)

    def _start_connections(self, chunks: Chunks) -> None:
        """Start the connections with first chunks in this window."""
        tables, connections = self.tables, self._connections
        tables.connections = with_capacity(tables.connections, len(connections))
        self._started = with_capacity(self._started, len(connections))
        numbers = chunks.connection
        count = list_started(numbers, tables.connections, self._started, self._started_count)
        started = self._started[self._started_count : count]
        self._started_count = count
        client = self._start_rows(started)
        if not self._uses_fast_path:
            self._start_on_slow_path(started.tolist(), client.tolist())

    def _start_rows(self, started: Ints) -> Ints:
        """Set the rows of connections to their beginning; return their clients, -1: unknown."""
        tables, columns = self.tables, self._connections.columns(started)
        client: Ints = np.full(len(started), -1)
        for side in (0, 1):
            for port in self._ports:
                client[columns.port[:, side] == port] = 1 - side
        for start_captured in (False, True):
            for client_side in (-1, 0, 1):
                chosen = started[(columns.syn_seen == start_captured) & (client == client_side)]
                tables.connections[chosen] = new_connection(
                    start_captured, None if client_side < 0 else client_side
                )
        if self._ports:
            tables.connections["mode"][started[client < 0]] = OTHER
        return client

    def _start_on_slow_path(self, numbers: list[int], clients: list[int]) -> None:
        for number, client in zip(numbers, clients, strict=True):
            correlator = self.slow_path.start(number)
            self.tables.connection_rows[number].mode = ON_SLOW_PATH
            if client >= 0:
                correlator.assume_kafka(client)
            elif self._ports:
                correlator.mark_other()

    def _run(self, chunks: Chunks, carry_over_start: int) -> None:
        """Process the chunks, on the fast path if possible."""
        tables, counts = self.tables, self.tables.counts
        columns = ChunkColumns._make(getattr(chunks, name) for name in ChunkColumns._fields)
        while counts.next_chunk < len(chunks):
            outcome = NEEDS_SLOW_PATH
            if self._uses_fast_path:
                outcome = correlate(columns, tables.state(self._api_limits), carry_over_start)
            if outcome == DONE:
                return
            if outcome == NEEDS_API:
                load_api(self._api_limits, counts.missing_api)
            elif outcome == NEEDS_SLOW_PATH:
                tables.join_fragments()
                counts.next_chunk = self.slow_path.add_chunks(
                    chunks, counts.next_chunk, counts.framed_bytes, carry_over_start
                )
            else:
                self._make_room(chunks, counts.next_chunk)

    def _make_room(self, chunks: Chunks, at: int) -> None:
        """Make room for all that a chunk may add."""
        tables, counts = self.tables, self.tables.counts
        connection = tables.connection_rows[int(chunks.connection[at])]
        added = (int(chunks.length[at]) // 8 if chunks.kind[at] == DATA else 0) + 2
        fragments = sum(connection.sides[side].fragment_count for side in (0, 1))
        exchanges = connection.open_count + connection.ready_count + added
        tables.widen_exchanges(counts.exchange_count + exchanges)
        tables.entries = with_capacity(tables.entries, counts.entries_live + added)
        tables.copies = with_capacity(tables.copies, counts.copy_count + fragments + 2)
        tables.emitters = with_capacity(tables.emitters, counts.emitter_count + 1)
        tables.widen_rings(counts.rings_used + 1)


def _offset_or_none(offset: int) -> int | None:
    return None if offset == NONE else offset
