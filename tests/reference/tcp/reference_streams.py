"""Reassembly with objects: the reference for `dissector.capture.tcp.reassembly.Streams`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from dissector.capture.columns import (
    ACK,
    CLOSED_WINDOW,
    FIN,
    NEVER,
    RST,
    SEQ_MASK,
    SYN,
    Chunks,
    Segments,
)
from dissector.capture.tcp import reassembly
from dissector.capture.tcp.connection_kernel import CHECK_NS
from dissector.capture.tcp.connections import Connection, Endpoint, Side
from dissector.capture.tcp.segment_kernel import ANY_NETWORK
from dissector.capture.tcp.stream_kernel import WAIT_NS
from tests.reference.tcp.chunk_builder import ChunkBuilder, ReorderState
from tests.reference.tcp.connection_state import FlowKey, LiveConnection, Segment
from tests.reference.tcp.loss_counters import LossCounters
from tests.reference.tcp.reorder_buffer import SegmentBytes
from tests.reference.tcp.stream_reassembler import Stream

_ADDRESS = (1 << 64) - 1


class ReferenceStreams:
    """Puts the bytes of all connections in order, as `Streams`."""

    def __init__(self) -> None:
        self._live: list[LiveConnection] = []
        self._first_ns: list[int] = []
        self._owners: dict[FlowKey, int] = {}
        self._out = ChunkBuilder()
        self._deadlines: deque[tuple[int, int]] = deque()
        self._checks: deque[tuple[int, int]] = deque()
        self._checked: set[int] = set()
        self._total_bytes = 0
        self.forced_gaps = 0

    @property
    def connections(self) -> list[Connection]:
        """All connections so far."""
        return [
            Connection(
                id=live.number,
                network=live.keys[0][0],
                a=_endpoint(live.keys[0][1:4]),
                b=_endpoint(live.keys[1][1:4]),
                first_ns=first_ns,
                last_ns=live.last_ns,
                sides=(live.streams[0].result(live.last_ns), live.streams[1].result(live.last_ns)),
                syn_seen=live.syn_seen,
                ended=live.ended,
            )
            for live, first_ns in zip(self._live, self._first_ns, strict=True)
        ]

    def feed(self, segments: Segments) -> Chunks:
        """Process the segments of the next window; return the released data."""
        ends: list[Any] = [segments.source.view(np.int64), segments.target.view(np.int64)]
        for i in range(len(segments)):
            (high, low), (to_high, to_low) = (each[i].tolist() for each in ends)
            port, to_port = int(segments.source_port[i]), int(segments.target_port[i])
            key = int(segments.network[i]), high, low, port, to_high, to_low, to_port
            names = "packet", "time_ns", "seq", "ack", "flags", "start", "length", "captured"
            values = [int(getattr(segments, name)[i]) for name in (*names, "clock_ns")]
            self._process(key, Segment(*values))
        return self._out.build(segments.data)

    def finish(self) -> Iterator[Chunks]:
        """Yield the remaining data, at the end of the capture."""
        owners = (owner for key, owner in self._owners.items() if key[0] != ANY_NETWORK)
        for number in sorted({owner >> 1 for owner in owners if owner & 1 == 0}):
            live = self._live[number]
            self._flush(live)
            self._update_state(live, 0, live.last_ns)
        yield self._out.build(np.zeros(0, np.uint8))

    def _owner(self, key: FlowKey) -> int:
        """Return the owner of a flow; negative without one."""
        owner = self._owners.get(key, -1)
        # The sides of a connection may have been exchanged.
        is_same = owner >= 0 and self._live[owner >> 1].keys[owner & 1][1:] == key[1:]
        return owner if is_same else -1

    def _put(self, key: FlowKey, owner: int) -> None:
        if key in self._owners and self._owners[key] >= 0 and self._owner(key) < 0:
            del self._owners[key]
        self._owners[key] = owner

    def _process(self, key: FlowKey, segment: Segment) -> None:
        self._out.packet = segment.packet
        self._meet_deadlines(segment.clock_ns)
        owner = self._owner(key)
        if owner < 0:
            live, side = self._find_or_open(key, segment)
        else:
            live, side = self._live[owner >> 1], owner & 1
            if live.starts_new_connection(side, segment):
                self._end_connection(live, side, "reused", segment.time_ns)
                live, side = self._find_or_open(key, segment)
            elif segment.flags & SYN:
                side = self._orient(key, live, side, segment)
        self._receive(live, side, segment)

    def _receive(self, live: LiveConnection, side: int, segment: Segment) -> None:
        stream, peer = live.streams[side], live.streams[1 - side]
        stream.side.packets += 1
        live.last_ns = max(live.last_ns, segment.time_ns)
        if segment.flags & SYN:
            live.process_syn(side, segment)
        if segment.flags & RST:
            if live.accepts_reset(side, segment):
                self._end_connection(live, side, "rst", segment.time_ns)
            return
        if segment.flags & (SYN | FIN) == 0:
            stream.observe_window(bool(segment.flags & CLOSED_WINDOW), segment.time_ns)
        if segment.flags & ACK:
            timed = peer.acknowledge(segment.ack, segment.packet, segment.time_ns)
            if timed is not None:
                _end_timing(timed, peer, stream, segment)
        self._advance(peer, segment.time_ns)
        self._add(stream, segment)
        self._advance(stream, segment.time_ns)
        if live.reorder.emitted != (NEVER, NEVER):
            self._out.emit_barriers(live.reorder, segment.time_ns)
        self._update_state(live, side, segment.time_ns)
        if live.is_pending:
            self._deadlines.append((segment.clock_ns + WAIT_NS, live.number))
            if live.number not in self._checked and _is_unacked(live):
                self._checked.add(live.number)
                self._checks.append((segment.clock_ns + CHECK_NS, live.number))

    def _update_state(self, live: LiveConnection, side: int, now_ns: int) -> None:
        """End the connection if both sides are finished; update whether it still waits."""
        first, second = live.streams
        if first.finished and second.finished:
            self._end_connection(live, side, "fin", now_ns)
        live.is_pending = first.is_pending or second.is_pending

    def _meet_deadlines(self, clock_ns: int) -> None:
        """Advance connections with holes, which may receive no more packets."""
        while self._deadlines and clock_ns >= self._deadlines[0][0]:
            self._meet_deadline(*self._deadlines.popleft())
        while self._checks and clock_ns >= self._checks[0][0]:
            now_ns, number = self._checks.popleft()
            self._meet_deadline(now_ns, number)
            self._checked.discard(number)
            if _is_unacked(self._live[number]):
                self._checked.add(number)
                self._checks.append((clock_ns + CHECK_NS, number))

    def _meet_deadline(self, now_ns: int, number: int) -> None:
        live = self._live[number]
        if live.is_pending:
            for stream in live.streams:
                self._advance(stream, now_ns)
            first, second = (each._fin_packet for each in live.streams)
            self._update_state(live, int(second > first), now_ns)

    def _find_or_open(self, key: FlowKey, segment: Segment) -> tuple[LiveConnection, int]:
        """Open a connection with its first segment, or find the one with this silent side."""
        network, high, low, port, to_high, to_low, to_port = key
        silent = self._owner((ANY_NETWORK, *key[1:]))
        if silent >= 0:
            live = self._live[silent >> 1]
            if live.matches_silent_side(silent & 1, segment):
                self._put(key, silent)
                return live, silent & 1
        back = (network, to_high, to_low, to_port, high, low, port)
        side = 1 if segment.flags & (SYN | ACK) == SYN | ACK else 0
        live = self._begin(back if side else key, key if side else back, segment)
        live.oriented = segment.flags & SYN != 0
        # Side 0 last: an endpoint connected to itself has only that side.
        for each in (1, 0):
            self._put(live.keys[each], 2 * live.number + each)
        self._put((ANY_NETWORK, *back[1:]), 2 * live.number + 1 - side)
        return live, self._owner(key) & 1

    def _begin(self, key: FlowKey, back: FlowKey, segment: Segment) -> LiveConnection:
        number = len(self._live)
        reorder = ReorderState(number, [None, None])
        first, second = (Stream(LossCounters(Side()), reorder, side) for side in (0, 1))
        live = LiveConnection(
            number,
            (key, back),
            reorder,
            (first, second),
            last_ns=segment.time_ns,
            oriented=False,
            syn_seen=False,
            ended="",
        )
        self._live.append(live)
        self._first_ns.append(segment.time_ns)
        return live

    def _orient(self, key: FlowKey, live: LiveConnection, side: int, segment: Segment) -> int:
        """Exchange the sides if a handshake shows the opener late; return the sender's side."""
        opener = side if segment.is_opening_syn else 1 - side
        if opener == 1 and not live.oriented and not live.has_data and not live.ended:
            first, second = live.keys
            live.swap_sides()
            number = 2 * live.number
            keys = first, second, (ANY_NETWORK, *second[1:])
            for each, owner in zip(keys, (number + 1, number, -1 - number), strict=True):
                self._owners[each] = owner
        live.oriented = True
        return self._owner(key) & 1

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
            self._total_bytes += stream.receive(segment_bytes, self._out)
        if segment.flags & FIN:
            stream.close(seq + segment.length, segment.packet, segment.time_ns)

    def _advance(self, stream: Stream, now_ns: int) -> None:
        if stream.is_pending:
            is_full = self._total_bytes > reassembly.MAX_BUFFERED_BYTES
            self.forced_gaps += is_full
            self._total_bytes -= stream.advance(now_ns, is_full, self._out)

    def _flush(self, live: LiveConnection) -> None:
        for stream in live.streams:
            self._total_bytes -= stream.flush(self._out)
        live.is_pending = False

    def _end_connection(self, live: LiveConnection, side: int, how: str, time_ns: int) -> None:
        """Emit the end of a connection, once."""
        self._flush(live)
        if not live.ended:
            live.ended = how
            self._out.emit_end(live.reorder, side, time_ns)


def _is_unacked(live: LiveConnection) -> bool:
    return any(each.is_pending and each.acked is None for each in live.streams)


def _end_timing(timed: tuple[int, int], stream: Stream, acker: Stream, segment: Segment) -> None:
    """End a measurement in a stream, if the acknowledging segment is the next of its own."""
    number, sent_ns = timed
    is_next = acker.next is None or (segment.payload_seq - acker.next) & SEQ_MASK == 0
    is_handshake = number == stream.first
    if is_next and not (is_handshake and segment.length):
        is_alone = segment.length == 0
        stream.end_timing(sent_ns, segment.time_ns, is_handshake=is_handshake, is_alone=is_alone)


def _endpoint(end: tuple[int, ...]) -> Endpoint:
    high, low, port = end
    return high & _ADDRESS, low & _ADDRESS, port
