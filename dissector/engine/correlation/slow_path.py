"""The conversations that objects lead, because something about them is odd."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np

from dissector.capture.columns import DATA, GAP, Chunks, Int64s
from dissector.capture.tcp.connections import Connection, ConnectionColumns, Endpoint
from dissector.engine.correlation.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.exchange_rows import ExchangeRow, broken_off, header
from dissector.engine.correlation.framer import Frame
from dissector.engine.correlation.handover import demote, promote
from dissector.engine.correlation.state_columns import (
    CLIENT,
    FAR,
    FRAME_WIDTH,
    MARKS,
    TELLERS,
    TOLD,
    WHOLE,
    WINDOW,
)
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.exchange_table import NONE

MAX_DOUBTFUL_BYTES = 64 << 20
"""How much of ended conversations waits until all brokers are known."""


class Connections(Protocol):
    """The connections of a capture by number; more may come."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Connection: ...

    def columns(self, numbers: Int64s, /) -> ConnectionColumns:
        """Return what is known now of some."""


class SlowPath:
    """
    Gives chunks to objects, and their exchanges to the tables.

    Attributes:
        correlators: By number of connection.
        early_decisions: How often doubt was decided early, for lack of room.
        at_end: Whether connections end as the capture does.
    """

    def __init__(
        self,
        tables: StateTables,
        connections: Connections,
        max_frame_bytes: int,
        *,
        keep_objects: bool,
    ) -> None:
        """
        Begin a capture.

        Args:
            tables: Where conversations come from, and go when they are odd no more.
            connections: Of the capture.
            max_frame_bytes: Larger frames are passed over as a problem.
            keep_objects: Whether to keep conversations that are not odd.
        """
        self.correlators: dict[int, ConnectionCorrelator] = {}
        self._chunk_counts: dict[int, int] = {}
        self._tables = tables
        self._connections = connections
        self._max_frame_bytes = max_frame_bytes
        self._keep_objects = keep_objects
        self._brokers: set[tuple[int, Endpoint]] = set()
        self._doubtful: list[int] = []
        self._doubtful_bytes = 0
        self.early_decisions = 0
        self.at_end = False

    def start(self, number: int) -> ConnectionCorrelator:
        """Begin a conversation; its row says whether it is whole."""
        whole = bool(self._tables.connections[number, MARKS] & WHOLE)
        talk = ConnectionCorrelator(number, whole, self._append_row, self._max_frame_bytes)
        self.correlators[number] = talk
        self._chunk_counts[number] = 0
        return talk

    def promote(self, number: int) -> ConnectionCorrelator:
        """Take a conversation over from the tables."""
        talk = self.start(number)
        promote(self._tables, number, talk)
        return talk

    def brokers(self) -> frozenset[tuple[int, Endpoint]]:
        """Return the brokers of which exchanges were told, by network and endpoint."""
        self._update_brokers()
        return frozenset(self._brokers)

    def resolve_doubts(
        self,
        brokers: Collection[tuple[int, Endpoint]] | None,
        numbers: Collection[int] | None = None,
    ) -> dict[int, int]:
        """
        Decide what was doubtful when it ended: a broker elsewhere is one here, on less.

        Args:
            brokers: Of the capture; None: all that may be brokers are taken for some.
            numbers: Only these connections are decided; None: all.

        Returns:
            Who was in doubt: connection and side.
        """
        doubts: dict[int, int] = {}
        chosen = [each for each in self._doubtful if numbers is None or each in numbers]
        for number in chosen:
            talk = self.correlators[number]
            if talk.doubtful_side is not None:
                doubts[number] = talk.doubtful_side
                known = self._connections[number]
                ends = (known.network, known.a), (known.network, known.b)
                other, it = ends[1 - talk.doubtful_side], ends[talk.doubtful_side]
                talk.resolve_doubt(brokers is None or (it in brokers and other not in brokers))
        decided = set(chosen)
        self._doubtful = [each for each in self._doubtful if each not in decided]
        return doubts

    def retain(self, places: Int64s) -> None:
        """Forget the conversations whose place is negative; give the others their new numbers."""
        kept = {int(places[number]): talk for number, talk in self.correlators.items()}
        self.correlators = {place: talk for place, talk in kept.items() if place >= 0}
        self._chunk_counts = dict.fromkeys(self.correlators, 0)
        for place, talk in self.correlators.items():
            talk.connection = place
        places_in_doubt = (int(places[number]) for number in self._doubtful)
        self._doubtful = [place for place in places_in_doubt if place >= 0]

    def add_chunks(self, chunks: Chunks, at: int, taken: int, held_from: int) -> int:
        """
        Take a chunk, and those behind it that are for objects too.

        Args:
            chunks: Of the window.
            at: The chunk.
            taken: How many bytes of it the loop has taken.
            held_from: Where the bytes of `chunks.held` begin in what is held.

        Returns:
            The chunk that is next.
        """
        numbers = chunks.connection
        while True:
            number = int(numbers[at])
            talk = self.correlators.get(number)
            if talk is None:
                talk = self.promote(number)
            self._add_chunk(talk, chunks, at, taken, held_from)
            if self._may_demote(number, talk) and demote(self._tables, number, talk):
                del self.correlators[number], self._chunk_counts[number]
            at, taken = at + 1, 0
            if at == len(numbers) or int(numbers[at]) not in self.correlators:
                return at

    def _may_demote(self, number: int, talk: ConnectionCorrelator) -> bool:
        """Tell whether a conversation took enough chunks to be handed over at their cost."""
        self._chunk_counts[number] += 1
        return (
            not self._keep_objects
            and self._chunk_counts[number] >= talk.open_requests.suppressed_count
        )

    def _add_chunk(
        self, talk: ConnectionCorrelator, chunks: Chunks, at: int, taken: int, held_from: int
    ) -> None:
        """Give an object a chunk, without the bytes of it that were taken."""
        kind, side, origin, length, packet, time_ns, start = (
            int(column[at])
            for column in (
                chunks.kind,
                chunks.side,
                chunks.origin,
                chunks.length,
                chunks.packet,
                chunks.time_ns,
                chunks.start,
            )
        )
        talk.barriers = int(chunks.barrier[at, 0]), int(chunks.barrier[at, 1])
        if kind == DATA:
            address = start + taken + (FAR + held_from if origin else 0)
            data = self._tables.bytes_at(address, length - taken)
            talk.add_data(side, data, packet, time_ns)
        elif kind == GAP:
            talk.add_gap(side, length, packet, time_ns)
        else:
            self._end(talk)

    def _end(self, talk: ConnectionCorrelator) -> None:
        """End a conversation; what is doubtful waits, as far as there is room for it."""
        if talk.doubtful_side is not None:
            return
        talk.end()
        if talk.doubtful_side is not None:
            self._doubtful.append(talk.connection)
            self._doubtful_bytes += sum(len(stream.buffer) for stream in talk.streams)
            if self._doubtful_bytes > MAX_DOUBTFUL_BYTES:
                self._doubtful_bytes = 0
                self.early_decisions += 1
                self.resolve_doubts(self.brokers())

    def _update_brokers(self) -> None:
        """Take note of the brokers of which the loop has told exchanges since the last time."""
        tables = self._tables
        numbers = tables.emitters[: tables.counter(TELLERS)]
        known = self._connections.columns(numbers)
        rows, side = np.arange(len(numbers)), 1 - tables.connections[numbers, CLIENT]
        address, port = known.address[rows, side], known.port[rows, side]
        ends = np.column_stack([known.network.astype(np.uint64), address, port.astype(np.uint64)])
        # The index is asked for as numpy loads a module of 10 ms without.
        unlike, _ = np.unique(ends, axis=0, return_index=True)
        for network, high, low, number in unlike.tolist():
            self._brokers.add((network, (high, low, number)))
        tables.counters[TELLERS] = 0

    def _add_broker(self, number: int, client: int) -> None:
        known = self._connections[number]
        self._brokers.add((known.network, (known.b, known.a)[client]))

    def _append_row(self, row: ExchangeRow) -> None:
        """Take an exchange."""
        talk = self._tables.connections[row.connection]
        if not talk[MARKS] & TOLD:
            talk[MARKS] |= TOLD
            self._add_broker(row.connection, row.client)
        # Of a capture that ends nobody knows whether the connection does.
        odd = row.answers_acks_0 | (0 if self.at_end else broken_off(row) << 1)
        start = row.connection, row.status, row.client, row.token, odd
        frames = *self._frame(row.request), *self._frame(row.response)
        self._tables.append_row((*start, *header(row), *frames))

    def _frame(self, frame: Frame | None) -> tuple[int, ...]:
        if frame is None:
            return (NONE,) * FRAME_WIDTH
        start = self._tables.carry(frame.data) - FAR + self._tables.counter(WINDOW)
        return (start, len(frame.data), *frame[2:6])
