"""The third stage of reading a capture: TCP segments to the ordered bytes of each stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dissector.capture.columns import Bytes, Chunks, Int64s, Segments
from dissector.capture.tcp.chunk_buffers import ChunkBuffers
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.connections import Connection
from dissector.capture.tcp.flow_table import FlowTable, RestingFlows
from dissector.capture.tcp.segment_kernel import flush_connections, process_segments
from dissector.capture.tcp.tcp_rows import (
    ChunkArrays,
    Counts,
    FlowArrays,
    OwnedFlows,
    SegmentArrays,
    StateArrays,
)
from dissector.kernel.named_rows import RowArray, dtype_of, row_of
from dissector.kernel.packed_rows import BLOCK_ROWS

__all__ = ["MAX_BUFFERED_BYTES", "Connection", "Streams"]

MAX_BUFFERED_BYTES = 256 << 20
"""Limit of waiting bytes on all connections; beyond it holes become gaps immediately."""


STEP_ROWS, STEP_BYTES = 1 << 16, 16 << 20
"""Rows, and waiting bytes, after which a step at the end of a capture is complete."""

REST_ROWS = BLOCK_ROWS
"""Connections that have ended or are silent are packed when there are this many."""

_CARRY_BYTES = 1 << 16
"""Room for waiting bytes in each window."""

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


class Streams:
    """
    Puts the bytes of all connections in order.

    A fold over the segments in capture order: the released data depends only on earlier packets, so
    windows may be cut anywhere. In-order segments are released at once, those behind a hole wait;
    see `stream_kernel` for the rules.

    A connection is two endpoints in a network. A new one begins where they are used again: at a SYN
    with another sequence number, once the old one has carried data or was closed; and at data too
    far from the expected position (its SYN was not captured). If a connection is silent in one
    direction and another network has that direction, with matching acknowledgements, it joins the
    connection: some captures tag only one direction, or number the two differently.

    Memory: waiting data, up to `MAX_BUFFERED_BYTES`; 600 bytes for each connection, some 85 once it
    has ended or is silent for long.

    Attributes:
        connections: All so far, by number.
    """

    def __init__(self) -> None:
        """Start a capture."""
        self.connections = ConnectionTable()
        self._flows = FlowTable(self.connections)
        self._resting_flows = RestingFlows()
        self._next_rest = REST_ROWS
        self._out = ChunkBuffers(self.connections.counts)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in self.__dict__.items() if name != "_resting_flows"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        # Its hashes have another key.
        self._resting_flows = RestingFlows()
        for numbers, rows in self.connections.resting.parts():
            self._resting_flows.add(numbers, rows["connection"], rows["flows"])

    @property
    def _counts(self) -> Counts:
        return row_of(self.connections.counts, Counts)

    @property
    def forced_gaps(self) -> int:
        """Number of holes that became gaps early, because of this limit."""
        return self._counts.forced_gaps

    def feed(self, segments: Segments) -> Chunks:
        """Process the segments of the next window; return the released data."""
        columns, at = _columns(segments), 0
        counts = self._counts
        counts.max_total_bytes = MAX_BUFFERED_BYTES
        counts.needed_rows = counts.needed_segments = counts.needed_bytes = 0
        self._rest()
        self._wake(self._resting_flows.take(columns))
        while at < len(segments):
            at = process_segments(columns, *self._make_room(len(segments) - at), at)
        self.connections.waiting.carry(segments.data)
        return self._build(segments.data)

    def finish(self, numbers: Int64s | None = None) -> Iterator[Chunks]:
        """Yield the remaining data in steps, at the end of the capture or of these connections."""
        table, counts, at = self.connections, self._counts, 0
        flushed = np.flatnonzero(table.incomplete())
        flushed = flushed[np.argsort(table.numbers[flushed])]
        if numbers is not None:
            flushed = flushed[np.isin(table.numbers[flushed], numbers)]
        flushed = flushed[self._flows.has_first_side(flushed)]
        counts.needed_rows, counts.needed_bytes = STEP_ROWS, STEP_BYTES
        while at < len(flushed):
            at = flush_connections(flushed, *self._make_room(0), at)
            if at < len(flushed) and counts.rows:
                yield self._build(_NO_BYTES)
        yield self._build(_NO_BYTES)

    def _build(self, data: Bytes) -> Chunks:
        """Return the released data, by the numbers of connections instead of their rows."""
        table = self.connections
        chunks = self._out.build(data, table.rows)
        table.number_new()
        chunks.connection[:] = table.numbers[chunks.connection]
        return chunks

    def _rest(self) -> None:
        """Pack connections that have ended or are silent, if there are many."""
        table = self.connections
        if table.live < self._next_rest:
            return
        owned: RowArray = np.zeros(table.live, dtype_of(OwnedFlows))
        rows = np.flatnonzero(self._flows.owned(owned) & table.may_rest())
        rows = rows[: len(rows) // REST_ROWS * REST_ROWS]
        if len(rows):
            self._resting_flows.add(table.numbers[rows], table.rows[rows], owned[rows])
            self._flows.retain(table.rest(rows, owned[rows]))
        self._next_rest = table.live + max(REST_ROWS, table.live // 4)

    def _wake(self, numbers: Int64s) -> None:
        """Give rows to connections at rest."""
        if not len(numbers):
            return
        first, woken = self.connections.live, self.connections.wake(numbers)
        self._resting_flows.remove(numbers, woken["connection"], woken["flows"])
        self._flows.add(first, woken)

    def drop(self, numbers: Int64s) -> None:
        """Drop connections at rest for ever: another segment of theirs begins a new one."""
        rows = self.connections.resting.read(numbers)
        self._resting_flows.remove(numbers, rows["connection"], rows["flows"])
        self.connections.drop(numbers)

    def retain(self, numbers: Int64s) -> None:
        """
        Drop all connections but these, in order; renumber each by its position.

        `finish` must have been called for the others.
        """
        self._wake(numbers[self.connections.resting.has(numbers)])
        self._flows.retain(self.connections.retain(numbers))
        self._resting_flows = RestingFlows()

    def _make_room(self, more: int) -> tuple[FlowArrays, StateArrays, ChunkArrays]:
        """Make the room that the kernel lacked; return its arrays."""
        counts, out = self._counts, self._out
        out.reserve(max(counts.needed_rows, 1), more)
        carried = min(counts.waiting_carried_bytes, STEP_BYTES)
        out.reserve_carry_over(max(counts.needed_bytes, carried, _CARRY_BYTES))
        self.connections.reserve()
        self._flows.reserve()
        return self._flows.arrays, self.connections.arrays, out.arrays


def _columns(segments: Segments) -> SegmentArrays:
    """Return the columns for the kernel."""
    addresses = (segments.source, segments.target)
    source, target = (np.ascontiguousarray(each).view(np.int64) for each in addresses)
    columns: tuple[Any, ...] = (
        segments.network,
        source,
        segments.source_port,
        target,
        segments.target_port,
        segments.packet,
        segments.time_ns,
        segments.clock_ns,
        segments.seq,
        segments.ack,
        segments.flags,
        segments.start,
        segments.length,
        segments.captured,
    )
    return SegmentArrays._make(map(np.ascontiguousarray, columns))
