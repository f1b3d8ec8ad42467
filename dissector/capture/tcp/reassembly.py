"""TCP segments become the ordered bytes of each stream: the third stage of reading a capture."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from dissector.capture.columns import NEVER, Chunks, Int64s, Segments
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.chunk_builder import MAX_ROWS_PER_SEGMENT, ChunkBuilder
from dissector.capture.tcp.connection_state import (
    ACK,
    FIN,
    RST,
    SEQ_MASK,
    SYN,
    FlowKey,
    LiveConnection,
    Segment,
)
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.connections import Connection
from dissector.capture.tcp.flow_table import OWNER, FlowTable, any_network_key
from dissector.capture.tcp.in_order_kernel import process_in_order
from dissector.capture.tcp.reorder_buffer import SegmentBytes
from dissector.capture.tcp.stream_reassembler import WAIT_NS, Stream

__all__ = ["MAX_BUFFERED_BYTES", "Connection", "Streams"]

MAX_BUFFERED_BYTES = 256 << 20
"""How much may wait on all connections together; above it holes are gaps at once."""

_NO_TIMES: Int64s = np.zeros(0, dtype=np.int64)

_WORK = 8
"""Steps that a segment takes, as `Kernel` counts them."""

_Columns: TypeAlias = tuple[Int64s, ...]
_Views: TypeAlias = tuple[list[Any], list[Any]]


class Streams:
    """
    Puts the bytes of all connections in order.

    A fold over the segments in capture order: what a packet releases depends on the packets
    before it and on nothing else, so windows may be cut anywhere. A segment that comes in order
    is told at once, by compiled code; holes wait by the rules of `Stream`.

    A connection is two endpoints in a network. A new one begins where they are used again: at a
    SYN with another sequence number, once the old one has carried data or was closed; and at data
    too far from what is expected (its SYN was not captured). Where a connection is silent in one
    direction and another network has that direction, with acknowledgements that fit, it is joined
    to it: some captures tag only one direction, or number the two differently.

    Memory: what waits, up to `MAX_BUFFERED_BYTES`; 260 bytes for each connection, and two KiB more
    while something of it waits.

    Attributes:
        connections: All so far, by number.
        forced_gaps: How often too much waited on all together, so that a hole was not waited for.
    """

    def __init__(self) -> None:
        self.connections = ConnectionTable()
        self._flows = FlowTable(self.connections)
        self._waiting: dict[FlowKey, tuple[LiveConnection, int]] = {}
        self._out = ChunkBuilder()
        self._waiting_bytes = 0
        self.forced_gaps = 0
        self._closing: deque[tuple[int, int, int]] = deque()
        self._clock_ns = _NO_TIMES
        self._counts = np.zeros(4, dtype=np.int64)

    def feed(self, segments: Segments) -> Chunks:
        """Take the segments of the next window; return what can be told now."""
        columns = _columns(segments)
        views = _views((*columns, segments.clock_ns))
        self._clock_ns = segments.clock_ns
        self._out.reserve(len(segments) + MAX_ROWS_PER_SEGMENT)
        at, owner = self._take_regular(columns, 0)
        while at < len(segments):
            key, segment = next(_rows(views, at))
            self._take(key, owner, Segment(*segment))
            at = self._take_waiting(views, at + 1)
            at, owner = self._take_regular(columns, at)
        if len(segments):
            self._out.packet = int(segments.packet[-1])
        self._clock_ns = _NO_TIMES
        return self._out.build(segments.data)

    def finish(self, numbers: Int64s | None = None) -> Chunks:
        """Return what still waited: the capture has ended, or these connections have."""
        known = self.connections
        lacking = known.incomplete()
        if numbers is not None:
            lacking &= set(numbers.tolist())
        for number in self._flows.first_sides():
            if number in lacking:
                live = known.materialise(number)
                self._flush(live)
                # Whether other connections showed how time passed makes no difference.
                self._settle(live, 0, live.last_ns)
                self._rest(live)
        return self._out.build(np.zeros(0, dtype=np.uint8))

    def retain(self, numbers: Int64s) -> None:
        """
        Forget all connections but these, in order; each gets the number of its place.

        `finish` must have been asked for the others.
        """
        places = np.full(len(self.connections), -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        self.connections.retain(numbers)
        self._flows.retain(places)
        closing = ((when, int(places[number]), side) for when, number, side in self._closing)
        self._closing = deque(each for each in closing if each[1] >= 0)

    def _take_regular(self, columns: _Columns, at: int) -> tuple[int, int]:
        """Take segments up to one that is not simply next; return it and the owner of its flow."""
        out, known, flows, counts = self._out, self.connections, self._flows, self._counts
        out.reserve(MAX_ROWS_PER_SEGMENT)
        counts[:] = (out.count, known.size, flows.count, -1)
        at = process_in_order(
            *columns,
            known.rows,
            known.counters.counts,
            known.counters.gaps,
            flows.rows,
            flows.slots,
            SECRET,
            out.wide,
            out.narrow,
            out.barrier,
            counts,
            at,
            self._until(),
            work=_WORK * len(columns[0]) if at == 0 else 0,
        )
        out.count, known.size, flows.count, owner = counts.tolist()
        return at, owner

    def _take_waiting(self, views: _Views, at: int) -> int:
        """Take segments of connections on which something waits, as long as no other comes."""
        if self._waiting:
            for key, segment in _rows(views, at):
                found = self._waiting.get(key)
                if found is None:
                    break
                live, side = found
                self._take(key, 2 * live.number + side, Segment(*segment))
                at += 1
        return at

    def _until(self) -> int:
        """Return the first segment before which something is to be done, whichever it is."""
        if not self._closing:
            return len(self._clock_ns)
        return int(np.searchsorted(self._clock_ns, self._closing[0][0]))

    def _take(self, key: FlowKey, owner: int, segment: Segment) -> None:
        """Take a segment of any kind; the owner of its flow is negative if that has none."""
        self._out.packet = segment.packet
        if self._closing:
            self._visit_closing(segment.clock_ns)
        if owner < 0:
            live, side = self._connect(key, segment)
        else:
            live, side = self.connections.materialise(owner >> 1), owner & 1
            if live.starts_new_connection(side, segment):
                self._end(live, side, "reused", segment.time_ns)
                self._rest(live)
                live, side = self._connect(key, segment)
            elif segment.flags & SYN:
                side = self._orient(key, live, side, segment)
        self._receive(live, side, segment)
        if not live.is_pending:
            self._rest(live)
        elif key not in self._waiting:
            self.connections.demote(live)
            self._waiting[key] = live, side
            live.waiting_keys.append(key)

    def _receive(self, live: LiveConnection, side: int, segment: Segment) -> None:
        """Take a segment that is known to belong to a connection."""
        stream, peer = live.streams[side], live.streams[1 - side]
        stream.side.packets += 1
        live.last_ns = max(live.last_ns, segment.time_ns)
        if segment.flags & SYN:
            live.process_syn(side, segment)
        if segment.flags & RST:
            if live.accepts_reset(side, segment):
                self._end(live, side, "rst", segment.time_ns)
            return
        if segment.flags & ACK:
            peer.acknowledge(segment.ack, segment.packet, segment.time_ns)
        self._advance(peer, segment.time_ns)
        self._add(stream, segment)
        self._advance(stream, segment.time_ns)
        if live.reorder.emitted != (NEVER, NEVER):
            self._out.emit_barriers(live.reorder, segment.time_ns)
        self._settle(live, side, segment.time_ns)
        if live.is_closing:
            self._closing.append((segment.clock_ns + WAIT_NS, live.number, side))

    def _settle(self, live: LiveConnection, side: int, now_ns: int) -> None:
        """See whether that was all, once something may have been told."""
        first, second = live.streams
        if first.finished and second.finished:
            self._end(live, side, "fin", now_ns)
        live.is_pending = first.is_pending or second.is_pending

    def _rest(self, live: LiveConnection) -> None:
        """Let a connection be a row again, unless something of it waits."""
        self.connections.demote(live)
        if not live.is_pending:
            self._forget(live)

    def _forget(self, live: LiveConnection) -> None:
        """Let the flows of a connection be looked up."""
        for key in live.waiting_keys:
            self._waiting.pop(key, None)
        live.waiting_keys.clear()

    def _visit_closing(self, clock_ns: int) -> None:
        """
        Look again at closed connections with holes: no packet of theirs may come to do it.

        What is done depends on the clock having come so far, not on whose segment has shown it.
        """
        while self._closing and clock_ns >= self._closing[0][0]:
            now_ns, number, side = self._closing.popleft()
            live = self.connections.live.get(number)
            if live is not None:
                for stream in live.streams:
                    self._advance(stream, now_ns)
                self._settle(live, side, now_ns)
                self._rest(live)

    def _connect(self, key: FlowKey, segment: Segment) -> tuple[LiveConnection, int]:
        """Begin a connection with its first segment, or find one that it answers."""
        known, flows = self.connections, self._flows
        network, high, low, port, to_high, to_low, to_port = key
        silent = flows.owner(any_network_key(key))
        if silent >= 0:
            live = known.materialise(silent >> 1)
            if live.matches_silent_side(silent & 1, segment):
                flows.put(key, silent)
                return live, silent & 1
        back = (network, to_high, to_low, to_port, high, low, port)
        side = 1 if segment.flags & (SYN | ACK) == SYN | ACK else 0
        live = known.begin(back if side else key, segment.packet, segment.time_ns)
        live.oriented = segment.flags & SYN != 0
        # Side 0 last: an endpoint that talks with itself has only that.
        for each in (1, 0):
            flows.put(live.keys[each], 2 * live.number + each)
            self._waiting.pop(live.keys[each], None)
        flows.put(any_network_key(back), 2 * live.number + 1 - side)
        return live, flows.owner(key) & 1

    def _orient(self, key: FlowKey, live: LiveConnection, side: int, segment: Segment) -> int:
        """Exchange the sides, if only now a handshake tells who opened it; return the sender's."""
        opener = side if segment.is_opening_syn else 1 - side
        if opener == 1 and not live.oriented and not live.has_data and not live.ended:
            first, second = live.keys
            flows = [self._flows.find(each) for each in (first, second, any_network_key(second))]
            self.connections.swap_sides(live)
            self._forget(live)
            number = 2 * live.number
            self._flows.rows[flows, OWNER] = number + 1, number, -1 - number
        live.oriented = True
        return self._flows.owner(key) & 1

    def _add(self, stream: Stream, segment: Segment) -> None:
        seq = stream.unwrap(segment.payload_seq & SEQ_MASK)
        if segment.length:
            piece = SegmentBytes(
                seq,
                seq + segment.length,
                segment.captured,
                segment.packet,
                segment.time_ns,
                segment.start,
            )
            self._waiting_bytes += stream.receive(piece, self._out)
        if segment.flags & FIN:
            stream.close(seq + segment.length, segment.packet, segment.time_ns)

    def _advance(self, stream: Stream, now_ns: int) -> None:
        if stream.is_pending:
            crowded = self._waiting_bytes > MAX_BUFFERED_BYTES
            self.forced_gaps += crowded
            self._waiting_bytes -= stream.advance(now_ns, crowded, self._out)

    def _flush(self, live: LiveConnection) -> None:
        for stream in live.streams:
            self._waiting_bytes -= stream.flush(self._out)
        live.is_pending = False

    def _end(self, live: LiveConnection, side: int, how: str, time_ns: int) -> None:
        """Tell the end of a connection, once."""
        self._flush(live)
        if not live.ended:
            live.ended = how
            self._out.emit_end(live.reorder, side, time_ns)


def _columns(segments: Segments) -> _Columns:
    """Return the columns as the loop takes them."""
    addresses = (
        np.ascontiguousarray(column).view(np.int64) for column in (segments.source, segments.target)
    )
    source, target = addresses
    columns = (
        segments.network,
        source,
        segments.source_port,
        target,
        segments.target_port,
        segments.packet,
        segments.time_ns,
        segments.seq,
        segments.ack,
        segments.flags,
        segments.start,
        segments.length,
        segments.captured,
    )
    return tuple(map(np.ascontiguousarray, columns))


def _views(columns: _Columns) -> _Views:
    """Return the columns as Python looks at them: those of a key, and those of a `Segment`."""
    network, source, source_port, target, target_port, *rest = columns
    keys = network, *source.T, source_port, *target.T, target_port
    return [column.data for column in keys], [column.data for column in rest]


def _rows(views: _Views, at: int) -> Iterator[tuple[Any, Any]]:
    """Yield the keys of segments from `at` on, and what `Segment` holds."""
    keys, segments = (zip(*(view[at:] for view in each), strict=True) for each in views)
    return zip(keys, segments, strict=True)
