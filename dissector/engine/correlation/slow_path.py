"""The slow path: connections that are led by objects."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np

from dissector.capture.columns import DATA, GAP, Chunks, Int64s
from dissector.capture.tcp.connections import (
    END_REASONS,
    Connection,
    ConnectionColumns,
    Endpoint,
)
from dissector.engine.correlation.both_paths.correlator_rows import CARRY_OVER_BASE, FrameColumns
from dissector.engine.correlation.handover import demote, promote
from dissector.engine.correlation.objects.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.objects.exchange_rows import (
    ExchangeRow,
    broken_off,
    header,
)
from dissector.engine.correlation.objects.framer import Frame
from dissector.engine.correlation.objects.prefaces import Preface, read_preface
from dissector.engine.correlation.state_tables import StateTables
from dissector.engine.tables.exchange_table import ENDING_AT, NONE

MAX_DOUBTFUL_BYTES = 64 << 20
"""Bytes of ended connections that may wait until all brokers are known."""


class Connections(Protocol):
    """Connections of a capture by number; it may grow."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Connection: ...

    def columns(self, numbers: Int64s, /) -> ConnectionColumns:
        """Return the present columns of some connections."""


class SlowPath:
    """
    Processes chunks by objects, and appends their exchanges to the tables.

    Attributes:
        correlators: By number of connection.
        prefaces: By number of connection and side, headers of proxies before Kafka.
        early_decisions: Number of doubtful connections decided before the end, for lack of room.
        at_end: Whether connections end because the capture does.
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
        Start a capture.

        Args:
            tables: The source of connections, and their destination when they no longer need the
                slow path.
            connections: Of the capture.
            max_frame_bytes: Larger frames are skipped as a problem.
            keep_objects: Whether connections stay here when they no longer need the slow path.
        """
        self.correlators: dict[int, ConnectionCorrelator] = {}
        self._tables = tables
        self._connections = connections
        self._max_frame_bytes = max_frame_bytes
        self._keep_objects = keep_objects
        self._brokers: set[tuple[int, Endpoint]] = set()
        self._doubtful: list[int] = []
        self._doubtful_bytes = 0
        self.prefaces: dict[tuple[int, int], Preface] = {}
        self.early_decisions = 0
        self.at_end = False

    def start(self, number: int) -> ConnectionCorrelator:
        """Start a connection; its row has the flag of a captured beginning."""
        start_captured = bool(self._tables.connection_rows[number].start_captured)
        correlator = ConnectionCorrelator(
            number, start_captured, self._append_row, self._max_frame_bytes
        )
        self.correlators[number] = correlator
        return correlator

    def promote(self, number: int) -> ConnectionCorrelator:
        """Move a connection here from the tables."""
        correlator = self.start(number)
        promote(self._tables, number, correlator)
        return correlator

    def forget(self, number: int) -> None:
        """Drop the state of a connection, here and in the tables."""
        if number not in self.correlators:
            self.promote(number)
        del self.correlators[number]
        self._doubtful = [each for each in self._doubtful if each != number]
        for side in (0, 1):
            self.prefaces.pop((number, side), None)

    def brokers(self) -> frozenset[tuple[int, Endpoint]]:
        """Return the brokers with emitted exchanges, by network and endpoint."""
        self._update_brokers()
        return frozenset(self._brokers)

    def resolve_doubts(
        self,
        brokers: Collection[tuple[int, Endpoint]] | None,
        numbers: Collection[int] | None = None,
    ) -> dict[int, int]:
        """
        Decide doubtful connections that have ended: a known broker needs fewer responses.

        Args:
            brokers: Of the capture; None: all that may be brokers are taken for brokers.
            numbers: Only these connections are decided; None: all.

        Returns:
            The doubtful sides by connection.
        """
        doubtful_sides: dict[int, int] = {}
        chosen = [number for number in self._doubtful if numbers is None or number in numbers]
        for number in chosen:
            correlator = self.correlators[number]
            if correlator.doubtful_side is not None:
                doubtful_sides[number] = correlator.doubtful_side
                connection = self._connections[number]
                ends = (connection.network, connection.a), (connection.network, connection.b)
                other, server = ends[1 - correlator.doubtful_side], ends[correlator.doubtful_side]
                correlator.resolve_doubt(
                    brokers is None or (server in brokers and other not in brokers)
                )
        decided = set(chosen)
        self._doubtful = [number for number in self._doubtful if number not in decided]
        return doubtful_sides

    def retain(self, new_numbers: Int64s) -> None:
        """Drop the connections with a negative new number; renumber the others."""
        renumbered = {
            int(new_numbers[number]): correlator for number, correlator in self.correlators.items()
        }
        self.correlators = {
            new_number: correlator
            for new_number, correlator in renumbered.items()
            if new_number >= 0
        }
        for new_number, correlator in self.correlators.items():
            correlator.connection = new_number
        self.prefaces = {
            (int(new_numbers[number]), side): preface
            for (number, side), preface in self.prefaces.items()
            if new_numbers[number] >= 0
        }
        new_doubtful = (int(new_numbers[number]) for number in self._doubtful)
        self._doubtful = [new_number for new_number in new_doubtful if new_number >= 0]

    def add_chunks(self, chunks: Chunks, at: int, framed_bytes: int, carry_over_start: int) -> int:
        """
        Process a chunk, and following ones that need the slow path too.

        Args:
            chunks: Of the window.
            at: The chunk.
            framed_bytes: Number of its bytes framed by the kernel.
            carry_over_start: Begin of the bytes of `chunks.carry_over` in the carry-over buffer.

        Returns:
            The next chunk.
        """
        numbers = chunks.connection
        while True:
            number = int(numbers[at])
            correlator = self.correlators.get(number)
            if correlator is None:
                correlator = self.promote(number)
            self._add_chunk(correlator, chunks, at, framed_bytes, carry_over_start)
            self._read_prefaces(correlator)
            if not self._keep_objects and demote(self._tables, number, correlator):
                del self.correlators[number]
            at, framed_bytes = at + 1, 0
            if at == len(numbers) or int(numbers[at]) not in self.correlators:
                return at

    def _add_chunk(
        self,
        correlator: ConnectionCorrelator,
        chunks: Chunks,
        at: int,
        framed_bytes: int,
        carry_over_start: int,
    ) -> None:
        """Add a chunk to an object, without the bytes that are framed already."""
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
        correlator.barriers = int(chunks.barrier[at, 0]), int(chunks.barrier[at, 1])
        if kind == DATA or framed_bytes:
            address = start + framed_bytes + (CARRY_OVER_BASE + carry_over_start if origin else 0)
            data = self._tables.bytes_at(address, length - framed_bytes)
            correlator.add_data(side, data, packet, time_ns)
        elif kind == GAP:
            correlator.add_gap(side, length, packet, time_ns)
        else:
            self._end(correlator)

    def _read_prefaces(self, correlator: ConnectionCorrelator) -> None:
        """Read the headers of proxies that were skipped before the frames of a stream."""
        for stream in correlator.streams:
            if stream.preface and correlator.speaks == "kafka":
                is_client = stream.side == correlator.client
                preface = read_preface(stream.preface, is_client=is_client)
                if preface.size:
                    self.prefaces[correlator.connection, stream.side] = preface
                stream.preface = b""

    def _end(self, correlator: ConnectionCorrelator) -> None:
        """End a connection; a doubtful one waits, if there is room for it."""
        if correlator.doubtful_side is not None:
            return
        correlator.end()
        if correlator.doubtful_side is not None:
            self._doubtful.append(correlator.connection)
            self._doubtful_bytes += sum(len(stream.buffer) for stream in correlator.streams)
            if self._doubtful_bytes > MAX_DOUBTFUL_BYTES:
                self._doubtful_bytes = 0
                self.early_decisions += 1
                self.resolve_doubts(self.brokers())

    def _update_brokers(self) -> None:
        """Add the new brokers of exchanges emitted by the kernel."""
        tables = self._tables
        numbers = tables.emitters[: tables.counts.emitter_count]
        columns = self._connections.columns(numbers)
        rows, side = np.arange(len(numbers)), 1 - tables.connections["client"][numbers]
        address, port = columns.address[rows, side], columns.port[rows, side]
        endpoints = np.column_stack(
            [columns.network.astype(np.uint64), address, port.astype(np.uint64)]
        )
        # Without `return_index` numpy imports a module, which takes 10 ms.
        distinct, _ = np.unique(endpoints, axis=0, return_index=True)
        for network, high, low, number in distinct.tolist():
            self._brokers.add((network, (high, low, number)))
        tables.counts.emitter_count = 0

    def _add_broker(self, number: int, client: int) -> None:
        connection = self._connections[number]
        self._brokers.add((connection.network, (connection.b, connection.a)[client]))

    def _append_row(self, row: ExchangeRow) -> None:
        """Append an exchange to the tables."""
        connection = self._tables.connection_rows[row.connection]
        if not connection.has_emitted:
            connection.has_emitted = True
            self._add_broker(row.connection, row.client)
        kind = row.connection, row.status, row.client, row.token, row.answers_acks_0
        columns = *kind, self._broken_off(row), *header(row)
        request, response = self._frame(row.request), self._frame(row.response)
        self._tables.append_exchange(columns, request, response)

    def _broken_off(self, row: ExchangeRow) -> int:
        """Return the messages interrupted by the connection's end, and its kind."""
        broken = broken_off(row)
        # At the end of a capture it is unknown whether the connection ends too.
        if not broken or self.at_end:
            return 0
        ended = self._connections[row.connection].ended
        return broken | END_REASONS.index(ended) << ENDING_AT

    def _frame(self, frame: Frame | None) -> tuple[int, ...]:
        if frame is None:
            return (NONE,) * len(FrameColumns._fields)
        tables, entry = self._tables, frame.entry
        if entry >= 0:
            start = tables.entry_rows[entry].start
            tables.free_entry(entry)
        else:
            start = tables.carry(frame.data)
        if start >= CARRY_OVER_BASE:
            start += tables.counts.window_bytes - CARRY_OVER_BASE
        return (start, len(frame.data), *frame[2:6])
