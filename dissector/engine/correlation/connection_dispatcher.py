"""
All conversations of a capture: chunks in, exchanges out, window by window.

A fold: what a window gives depends on the windows before it only through what is kept, which is the
bytes of unfinished frames and of requests that wait, and a few hundred bytes for each connection.

What goes by the rules is led by one loop over tables (`pairing`); the rest, for as long as it is
odd, by objects (`Conversation`), connection by connection. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import END, NEVER, Chunks
from dissector.capture.tcp.connections import Endpoint
from dissector.engine.correlation import open_requests as limits
from dissector.engine.correlation.correlator_kernel import STOPPED, WANTS, WHOLLY, begin, pair
from dissector.engine.correlation.exchange_rows import ExchangeRow
from dissector.engine.correlation.frame_checks_kernel import learn, new_rules
from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.correlation.handover import frame_of, new_connection
from dissector.engine.correlation.slow_path import Connections, SlowPath
from dissector.engine.correlation.state_columns import (
    AT,
    CLIENT,
    COPIES,
    COUNT,
    ENTERED,
    FAR,
    FIRST,
    HEAD,
    KAFKA,
    LIVE,
    MAX_FRAME,
    MODE,
    MOST_OPEN,
    MOST_OPEN_BYTES,
    NEXT,
    OBJECT,
    OTHER,
    PACKET,
    PIECES,
    ROWS,
    SIDE_WIDTH,
    SIDES,
    SKIPPED,
    TAKEN,
    TELLERS,
    TLS,
    UNBEGUN,
    USED,
    WANTED,
)
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import NONE, WAITING, Exchanges, Ints

CHUNK_WORK, BYTES_PER_STEP = 5, 64
"""What a chunk and its bytes cost the loop, in steps of ten nanoseconds."""

_SPEAKS = {KAFKA: "kafka", TLS: "tls", OTHER: "other"}


class ConnectionState(NamedTuple):
    """
    What is known of a conversation.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        client: The side that sends requests; None while that is open.
        skipped: Of each side, bytes that were passed over because no frame was believed in them.
        entered: Of each side, the offset in the stream at which frames were first believed.
    """

    speaks: str
    client: int | None
    skipped: tuple[int, int]
    entered: tuple[int | None, int | None]


class Correlator:
    """
    Pairs requests and responses on all connections.

    Attributes:
        is_shard: Whether there are other parts, whose brokers are not known here; then all that may
            be brokers are taken for some.
        brokers: At the end: those of which exchanges were told, by network and endpoint.
        doubtful_sides: At the end: the connections and sides of which few responses and nothing
            else is there, so that only brokers are believed to have sent them.
    """

    def __init__(
        self,
        connections: Connections,
        ports: frozenset[int] = frozenset(),
        max_frame_bytes: int = MAX_FRAME_BYTES,
        *,
        use_fast_path: bool = True,
    ) -> None:
        """
        Begin a capture.

        Args:
            connections: Of the capture.
            ports: Only connections on these are looked at, and taken for Kafka; empty: all.
            max_frame_bytes: Larger frames are passed over as a problem.
            use_fast_path: Let objects lead all connections, if false: slow, and the truth for
                tests.
        """
        self._connections = connections
        self._ports = ports
        self._uses_fast_path = use_fast_path
        self._tables = StateTables()
        self._tables.counters[MAX_FRAME] = max_frame_bytes
        self._rules = new_rules()
        self._slow_path = SlowPath(
            self._tables, connections, max_frame_bytes, keep_objects=not use_fast_path
        )
        self._started: Ints = np.zeros(0, np.int64)
        self._started_count = 0
        self.is_shard = False
        self.brokers: frozenset[tuple[int, Endpoint]] = frozenset()
        self.doubtful_sides: dict[int, int] = {}

    def feed(self, chunks: Chunks) -> Exchanges:
        """Take the chunks of the next window; return the exchanges that ended in it."""
        return self._feed(chunks)

    def _feed(self, chunks: Chunks, ended: Collection[int] | None = None) -> Exchanges:
        """Take chunks; those of `ended` connections are their last ones."""
        tables = self._tables
        tables.begin(chunks.data, len(chunks) + 16)
        tables.counters[[AT, TAKEN]] = 0
        tables.counters[MOST_OPEN] = limits.MAX_OPEN
        tables.counters[MOST_OPEN_BYTES] = limits.MAX_OPEN_BYTES
        self._start_connections(chunks)
        self._slow_path.at_end = ended is not None
        self._run(chunks, tables.carry(chunks.carry_over) - FAR)
        if ended is not None:
            self.brokers = self._slow_path.brokers()
            brokers = None if self.is_shard else self.brokers
            self.doubtful_sides = self._slow_path.resolve_doubts(brokers, ended)
        return tables.end()

    def finish(self, numbers: Ints | None = None) -> Exchanges:
        """
        Return the exchanges that end with the capture: each conversation ends, as they began.

        Args:
            numbers: Only these connections end; None: all.
        """
        begun = self._started[: self._started_count].copy()
        if numbers is not None:
            begun = begun[np.isin(begun, numbers)]
        nothing, small = np.zeros_like(begun), np.zeros(len(begun), np.int8)
        none = np.zeros(0, np.uint8)
        return self._feed(
            Chunks(
                data=none,
                carry_over=none,
                connection=begun,
                side=small,
                kind=np.full_like(small, END),
                origin=small,
                start=nothing,
                length=nothing,
                packet=nothing,
                time_ns=nothing,
                release=nothing,
                barrier=np.full((len(begun), 2), NEVER, np.int64),
            ),
            ended=set(begun.tolist()),
        )

    def retain(self, numbers: Ints) -> None:
        """
        Forget all connections but these, in order; each gets the number of its place.

        `finish` must have been asked for the others.
        """
        tables, size = self._tables, int(self._started[: self._started_count].max(initial=-1)) + 1
        places = np.full(max(size, int(numbers.max(initial=-1)) + 1), NONE, np.int64)
        places[numbers] = np.arange(len(numbers))
        talks = with_capacity(tables.connections, len(places))
        gone = talks[np.flatnonzero(places == NONE)]
        for side in (SIDES, SIDES + SIDE_WIDTH):
            for first in gone[gone[:, MODE] == KAFKA, side + HEAD].tolist():
                for _ in tables.pop_list(first):
                    pass
        tables.connections = talks[numbers]
        begun = places[self._started[: self._started_count]]
        self._started = begun[begun != NONE]
        self._started_count = len(self._started)
        self._slow_path.retain(places)

    @property
    def early_decisions(self) -> int:
        """How often it was decided early, for lack of room, who is a broker."""
        return self._slow_path.early_decisions

    def low_watermark(self) -> int:
        """Return the first packet with a frame that waits for an answer or its turn."""
        tables = self._tables
        waiting = tables.entries[: tables.counter(USED), PACKET]
        odd = [talk.low_watermark for talk in self._slow_path.correlators.values()]
        return min([int(waiting.min(initial=NEVER)), *odd])

    def in_flight(self) -> list[ExchangeRow]:
        """Return the requests that wait for their answers, between two windows."""
        tables = self._tables
        talks, rows = tables.connections, list[ExchangeRow]()
        for number in np.flatnonzero((talks[:, MODE] == KAFKA) & (talks[:, COUNT] > 0)).tolist():
            client, at = int(talks[number, CLIENT]), int(talks[number, FIRST])
            while at >= 0:
                node = tables.entries[at].tolist()
                rows.append(
                    ExchangeRow(number, WAITING, client, frame_of(tables, client, node), None)
                )
                at = node[NEXT]
        for number, talk in self._slow_path.correlators.items():
            for each in talk.open_requests.oldest_first():
                frame = each.frame
                rows.append(ExchangeRow(number, WAITING, frame.side, frame, None, frame.token))
        return rows

    def state_of(self, connection: int) -> ConnectionState | None:
        """Return what is known of a conversation; None where no side said anything."""
        if connection >= len(self._tables.connections):
            return None
        row = self._tables.connections[connection].tolist()
        if row[MODE] == UNBEGUN:
            return None
        if row[MODE] == OBJECT:
            talk = self._slow_path.correlators[connection]
            first, second = talk.streams
            skipped, entered = (first.skipped, second.skipped), (first.entered, second.entered)
            return ConnectionState(talk.speaks, talk.client, skipped, entered)
        a, b = row[SIDES : SIDES + SIDE_WIDTH], row[SIDES + SIDE_WIDTH :]
        return ConnectionState(
            _SPEAKS.get(row[MODE], ""),
            row[CLIENT] if row[MODE] == KAFKA else None,
            (a[SKIPPED], b[SKIPPED]),
            (_entered(a[ENTERED]), _entered(b[ENTERED])),
        )

    def __iter__(self) -> Iterator[ConnectionState]:
        """Yield what is known of each conversation, in the order in which they began."""
        talks = map(self.state_of, self._started[: self._started_count].tolist())
        return (talk for talk in talks if talk is not None)

    def _start_connections(self, chunks: Chunks) -> None:
        """Begin the conversations of connections of which these are the first chunks."""
        tables, connections = self._tables, self._connections
        tables.connections = with_capacity(tables.connections, len(connections))
        self._started = with_capacity(self._started, len(connections))
        numbers = chunks.connection
        count = begin(
            numbers, tables.connections, self._started, self._started_count, work=len(numbers) // 2
        )
        begun = self._started[self._started_count : count]
        self._started_count = count
        known = connections.columns(begun)
        client = np.full(len(begun), -1)
        for side in (0, 1):
            for port in self._ports:
                client[known.port[:, side] == port] = 1 - side
        for whole in (False, True):
            for who in (-1, 0, 1):
                chosen = begun[(known.syn_seen == whole) & (client == who)]
                tables.connections[chosen] = new_connection(whole, None if who < 0 else who)
        if self._ports:
            tables.connections[begun[client < 0], MODE] = OTHER
        if not self._uses_fast_path:
            self._start_on_slow_path(begun.tolist(), client.tolist())

    def _start_on_slow_path(self, numbers: list[int], clients: list[int]) -> None:
        for number, client in zip(numbers, clients, strict=True):
            talk = self._slow_path.start(number)
            self._tables.connections[number, MODE] = OBJECT
            if client >= 0:
                talk.assume_kafka(client)
            elif self._ports:
                talk.mark_other()

    def _run(self, chunks: Chunks, held_from: int) -> None:
        """Take the chunks, by the loop as far as it can."""
        tables, numbers = self._tables, self._tables.counters
        work = CHUNK_WORK * len(chunks) + int(chunks.length.sum()) // BYTES_PER_STEP
        while numbers[AT] < len(chunks):
            said = STOPPED
            if self._uses_fast_path:
                said = pair(
                    chunks.connection,
                    chunks.side,
                    chunks.kind,
                    chunks.origin,
                    chunks.start,
                    chunks.length,
                    chunks.packet,
                    chunks.time_ns,
                    chunks.barrier,
                    held_from,
                    tables.rows.shape[1],
                    chunks.data,
                    tables.carry_over,
                    numbers,
                    tables.connections,
                    tables.entries,
                    tables.rows,
                    tables.copies,
                    tables.emitters,
                    self._rules,
                    tables.frame_head,
                    work=work,
                )
                work = 0
            if said == WHOLLY:
                return
            if said == WANTS:
                learn(self._rules, tables.counter(WANTED))
            elif said == STOPPED:
                tables.join_fragments()
                at, taken = tables.counter(AT), tables.counter(TAKEN)
                numbers[AT] = self._slow_path.add_chunks(chunks, at, taken, held_from)
            else:
                self._make_room(chunks, tables.counter(AT))

    def _make_room(self, chunks: Chunks, at: int) -> None:
        """Make room for all that a chunk may bring."""
        tables = self._tables
        talk = tables.connections[chunks.connection[at]].tolist()
        more = int(chunks.length[at]) // 8 + 2
        pieces = talk[SIDES + PIECES] + talk[SIDES + SIDE_WIDTH + PIECES]
        tables.widen_rows(tables.counter(ROWS) + talk[COUNT] + more)
        tables.entries = with_capacity(tables.entries, tables.counter(LIVE) + more)
        tables.copies = with_capacity(tables.copies, tables.counter(COPIES) + pieces + 2)
        tables.emitters = with_capacity(tables.emitters, tables.counter(TELLERS) + 1)


def _entered(at: int) -> int | None:
    return None if at == NONE else at
