"""The third stage of reading a capture: TCP segments to the ordered bytes of each stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from dissector.capture.columns import NEVER, Bytes, Chunks, Int64s, Segments
from dissector.capture.tcp.both_paths.reassembly_limits import WAIT_NS
from dissector.capture.tcp.both_paths.tcp_header import ACK, FIN, RST, SEQ_MASK, SYN
from dissector.capture.tcp.both_paths.tcp_rows import (
    MAX_ROWS_PER_SEGMENT,
    ChunkArrays,
    Counts,
    SegmentArrays,
    StateArrays,
)
from dissector.capture.tcp.connections import Connection
from dissector.capture.tcp.fast_path.flush_kernel import flush_connections
from dissector.capture.tcp.fast_path.in_order_kernel import process_segments
from dissector.capture.tcp.first_bytes import FirstBytes
from dissector.capture.tcp.objects.chunk_builder import ChunkBuilder
from dissector.capture.tcp.objects.connection_state import FlowKey, LiveConnection, Segment
from dissector.capture.tcp.objects.reorder_buffer import SegmentBytes
from dissector.capture.tcp.objects.stream_reassembler import Stream
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.capture.tcp.tables.flow_table import FlowTable, any_network_key
from dissector.kernel.named_rows import row_of

__all__ = ["MAX_BUFFERED_BYTES", "Connection", "Streams"]

MAX_BUFFERED_BYTES = 256 << 20
"""Limit of waiting bytes on all connections; beyond it holes become gaps immediately."""

_NO_TIMES: Int64s = np.zeros(0, dtype=np.int64)

_Views: TypeAlias = tuple[list[Any], list[Any]]


class Streams:
    """
    Puts the bytes of all connections in order.

    A fold over the segments in capture order: the released data depends only on earlier packets, so
    windows may be cut anywhere. In-order segments are released at once, those behind a hole wait by
    the rules of `Stream`: both by compiled code, as long as the state of their connection fits its
    row.

    A connection is two endpoints in a network. A new one begins where they are used again: at a SYN
    with another sequence number, once the old one has carried data or was closed; and at data too
    far from the expected position (its SYN was not captured). If a connection is silent in one
    direction and another network has that direction, with matching acknowledgements, it joins the
    connection: some captures tag only one direction, or number the two differently.

    Memory: waiting data, up to `MAX_BUFFERED_BYTES`; 360 bytes for each connection, and two KiB
    more while it is materialised.

    Attributes:
        connections: All so far, by number.
        first_bytes: The first bytes of their streams.
    """

    def __init__(self, *, use_fast_path: bool = True) -> None:
        """
        Start a capture.

        Args:
            use_fast_path: If false, objects process all segments: slow, the reference for tests.
        """
        self._uses_fast_path = use_fast_path
        self.connections = ConnectionTable()
        self.first_bytes = FirstBytes()
        self._flows = FlowTable(self.connections)
        self._live_by_key: dict[FlowKey, tuple[LiveConnection, int]] = {}
        self._out = ChunkBuilder(self.connections.counts)
        self._closing: deque[tuple[int, int, int]] = deque()
        self._clock_ns = _NO_TIMES

    @property
    def _counts(self) -> Counts:
        return row_of(self.connections.counts, Counts)

    @property
    def forced_gaps(self) -> int:
        """Number of holes that became gaps early, because of this limit."""
        return self._counts.forced_gaps

    def feed(self, segments: Segments) -> Chunks:
        """Process the segments of the next window; return the released data."""
        columns = _columns(segments)
        views = _views(columns, segments.clock_ns)
        self._clock_ns = segments.clock_ns
        self._counts.max_total_bytes = MAX_BUFFERED_BYTES
        at = self._process_segments(columns, 0)
        while at < len(segments):
            key, segment = next(_rows(views, at))
            self._process(key, self._counts.owner, Segment(*segment))
            at = self._process_live(views, at + 1)
            at = self._process_segments(columns, at)
        if len(segments):
            self._out.packet = int(segments.packet[-1])
        self._clock_ns = _NO_TIMES
        self.connections.waiting.carry(segments.data)
        return self._build(segments.data)

    def finish(self, numbers: Int64s | None = None) -> Chunks:
        """Return the remaining data, at the end of the capture or of these connections."""
        connections = self.connections
        incomplete = connections.incomplete()
        if numbers is not None:
            incomplete &= set(numbers.tolist())
        chosen = [each for each in self._flows.first_sides() if each in incomplete]
        flushed, at = np.array(chosen, np.int64), 0
        while at < len(flushed):
            if self._uses_fast_path:
                at = self._flush_fast(flushed, at)
            if at < len(flushed):
                live = self._materialise(chosen[at])
                self._flush(live)
                # The result must not depend on the clock that other connections have advanced.
                self._update_state(live, 0, live.last_ns)
                self._demote(live)
                at += 1
        return self._build(np.zeros(0, dtype=np.uint8))

    def _build(self, data: Bytes) -> Chunks:
        chunks = self._out.build(data)
        self.first_bytes.add(chunks)
        return chunks

    def retain(self, numbers: Int64s) -> None:
        """
        Drop all connections but these, in order; renumber each by its position.

        `finish` must have been called for the others.
        """
        new_numbers = np.full(len(self.connections), -1, dtype=np.int64)
        new_numbers[numbers] = np.arange(len(numbers))
        self.connections.retain(numbers)
        self.first_bytes.retain(numbers)
        self._flows.retain(new_numbers)
        closing = ((when, int(new_numbers[number]), side) for when, number, side in self._closing)
        self._closing = deque(each for each in closing if each[1] >= 0)

    def _process_segments(self, columns: SegmentArrays, at: int) -> int:
        """Process segments on the fast path; return the segment at which it stopped."""
        flows, counts, until = self._flows, self._counts, self._next_deadline()
        counts.needed_rows = MAX_ROWS_PER_SEGMENT
        while counts.needed_rows:
            arrays = self._make_room(len(columns.packet) - at)
            counts.flows = flows.count
            at = process_segments(columns, flows.arrays, *arrays, at, until)
            flows.count = counts.flows
        return at

    def _flush_fast(self, numbers: Int64s, at: int) -> int:
        """Flush connections that are not live; return the index of the first that is."""
        counts, is_live = self._counts, self.connections.live.__contains__
        counts.needed_rows = MAX_ROWS_PER_SEGMENT
        while counts.needed_rows and at < len(numbers) and not is_live(int(numbers[at])):
            arrays = self._make_room(0)
            at = flush_connections(numbers, *arrays, at, self._out.packet)
        return at

    def _make_room(self, more: int) -> tuple[StateArrays, ChunkArrays]:
        """Make the room that the kernel lacked; return its arrays."""
        connections, counts, out = self.connections, self._counts, self._out
        out.reserve(counts.needed_rows, more)
        out.reserve_carry_over(counts.waiting_carried_bytes)
        connections.waiting.reserve()
        connections.counters.reserve()
        return connections.arrays, out.arrays

    def _process_live(self, views: _Views, at: int) -> int:
        """Process segments of connections with waiting data, up to the first of another."""
        if self._live_by_key:
            for key, segment in _rows(views, at):
                found = self._live_by_key.get(key)
                if found is None:
                    break
                live, side = found
                self._process(key, 2 * live.number + side, Segment(*segment))
                at += 1
        return at

    def _next_deadline(self) -> int:
        """Return the first segment after the timeout of a closed connection."""
        if not self._uses_fast_path:
            return 0
        if not self._closing:
            return len(self._clock_ns)
        return int(np.searchsorted(self._clock_ns, self._closing[0][0]))

    def _process(self, key: FlowKey, owner: int, segment: Segment) -> None:
        """Process any segment; the owner of its flow is negative without one."""
        self._out.packet = segment.packet
        if self._closing:
            self._advance_closing(segment.clock_ns)
        if owner < 0:
            live, side = self._find_or_open(key, segment)
        else:
            live, side = self._materialise(owner >> 1), owner & 1
            if live.starts_new_connection(side, segment):
                self._end_connection(live, side, "reused", segment.time_ns)
                self._demote(live)
                live, side = self._find_or_open(key, segment)
            elif segment.flags & SYN:
                side = self._orient(key, live, side, segment)
        self._receive(live, side, segment)
        if self._demote(live) and key not in self._live_by_key:
            self._live_by_key[key] = live, side
            live.waiting_keys.append(key)

    def _materialise(self, number: int) -> LiveConnection:
        """Return a connection as an object; its waiting data outlives the window."""
        is_live = number in self.connections.live
        live = self.connections.materialise(number)
        for stream in () if is_live else live.streams:
            for segment in () if stream.buffer is None else stream.buffer.arrivals():
                if segment.copied is None:
                    self._out.keep_bytes(segment)
        return live

    def _receive(self, live: LiveConnection, side: int, segment: Segment) -> None:
        """Process a segment of a known connection."""
        stream, peer = live.streams[side], live.streams[1 - side]
        stream.side.packets += 1
        live.last_ns = max(live.last_ns, segment.time_ns)
        if segment.flags & SYN:
            live.process_syn(side, segment)
        if segment.flags & RST:
            if live.accepts_reset(side, segment):
                self._end_connection(live, side, "rst", segment.time_ns)
            return
        if segment.flags & ACK:
            peer.acknowledge(segment.ack, segment.packet, segment.time_ns)
        self._advance(peer, segment.time_ns)
        self._add(stream, segment)
        self._advance(stream, segment.time_ns)
        if live.reorder.emitted != (NEVER, NEVER):
            self._out.emit_barriers(live.reorder, segment.time_ns)
        self._update_state(live, side, segment.time_ns)
        if live.is_closing:
            self._closing.append((segment.clock_ns + WAIT_NS, live.number, side))

    def _update_state(self, live: LiveConnection, side: int, now_ns: int) -> None:
        """End the connection if both sides are finished; update whether it still waits."""
        first, second = live.streams
        if first.finished and second.finished:
            self._end_connection(live, side, "fin", now_ns)
        live.is_pending = first.is_pending or second.is_pending

    def _demote(self, live: LiveConnection) -> bool:
        """Demote a connection to its row if it fits; return whether something waits in it else."""
        may_move = self._uses_fast_path or not live.is_pending
        waits = not self.connections.demote(live, may_move) and live.is_pending
        if not waits:
            self._drop_keys(live)
        return waits

    def _drop_keys(self, live: LiveConnection) -> None:
        """Remove the keys of a connection, so that its flows are looked up again."""
        for key in live.waiting_keys:
            self._live_by_key.pop(key, None)
        live.waiting_keys.clear()

    def _advance_closing(self, clock_ns: int) -> None:
        """
        Advance closed connections with holes, which may receive no more packets.

        The result depends on the clock, not on the connection of the segment that advanced it.
        """
        while self._closing and clock_ns >= self._closing[0][0]:
            now_ns, number, side = self._closing.popleft()
            live = self.connections.live.get(number)
            if live is not None:
                for stream in live.streams:
                    self._advance(stream, now_ns)
                self._update_state(live, side, now_ns)
                self._demote(live)

    def _find_or_open(self, key: FlowKey, segment: Segment) -> tuple[LiveConnection, int]:
        """Open a connection with its first segment, or find the one with this silent side."""
        connections, flows = self.connections, self._flows
        network, high, low, port, to_high, to_low, to_port = key
        silent = flows.owner(any_network_key(key))
        if silent >= 0:
            live = self._materialise(silent >> 1)
            if live.matches_silent_side(silent & 1, segment):
                flows.put(key, silent)
                return live, silent & 1
        back = (network, to_high, to_low, to_port, high, low, port)
        side = 1 if segment.flags & (SYN | ACK) == SYN | ACK else 0
        live = connections.begin(back if side else key, segment.packet, segment.time_ns)
        live.oriented = segment.flags & SYN != 0
        # Side 0 last: an endpoint connected to itself has only that side.
        for each in (1, 0):
            flows.put(live.keys[each], 2 * live.number + each)
            self._live_by_key.pop(live.keys[each], None)
        flows.put(any_network_key(back), 2 * live.number + 1 - side)
        return live, flows.owner(key) & 1

    def _orient(self, key: FlowKey, live: LiveConnection, side: int, segment: Segment) -> int:
        """Exchange the sides if a handshake shows the opener late; return the sender's side."""
        opener = side if segment.is_opening_syn else 1 - side
        if opener == 1 and not live.oriented and not live.has_data and not live.ended:
            first, second = live.keys
            flows = [self._flows.find(each) for each in (first, second, any_network_key(second))]
            self.connections.swap_sides(live)
            self._drop_keys(live)
            number = 2 * live.number
            self._flows.set_owners(flows, (number + 1, number, -1 - number))
        live.oriented = True
        return self._flows.owner(key) & 1

    def _add(self, stream: Stream, segment: Segment) -> None:
        seq = stream.unwrap(segment.payload_seq & SEQ_MASK)
        if segment.length:
            segment_bytes = SegmentBytes(
                seq,
                seq + segment.length,
                segment.captured,
                segment.packet,
                segment.time_ns,
                segment.start,
            )
            self._counts.total_bytes += stream.receive(segment_bytes, self._out)
        if segment.flags & FIN:
            stream.close(seq + segment.length, segment.packet, segment.time_ns)

    def _advance(self, stream: Stream, now_ns: int) -> None:
        if stream.is_pending:
            is_full = self._counts.total_bytes > MAX_BUFFERED_BYTES
            self._counts.forced_gaps += is_full
            self._counts.total_bytes -= stream.advance(now_ns, is_full, self._out)

    def _flush(self, live: LiveConnection) -> None:
        for stream in live.streams:
            self._counts.total_bytes -= stream.flush(self._out)
        live.is_pending = False

    def _end_connection(self, live: LiveConnection, side: int, how: str, time_ns: int) -> None:
        """Emit the end of a connection, once."""
        self._flush(live)
        if not live.ended:
            live.ended = how
            self._out.emit_end(live.reorder, side, time_ns)


def _columns(segments: Segments) -> SegmentArrays:
    """Return the columns for the kernel."""
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
    return SegmentArrays._make(map(np.ascontiguousarray, columns))


def _views(columns: SegmentArrays, clock_ns: Int64s) -> _Views:
    """Return the columns for Python code: the fields of a key, and those of a `Segment`."""
    arrays: Iterable[Any] = columns
    network, source, source_port, target, target_port, *rest = arrays
    keys = network, *source.T, source_port, *target.T, target_port
    return [column.data for column in keys], [column.data for column in (*rest, clock_ns)]


def _rows(views: _Views, at: int) -> Iterator[tuple[Any, Any]]:
    """Yield the keys of segments from `at` on, and the fields of `Segment`."""
    keys, segments = (zip(*(view[at:] for view in columns), strict=True) for columns in views)
    return zip(keys, segments, strict=True)
