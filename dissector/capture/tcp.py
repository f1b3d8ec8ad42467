"""TCP segments become the ordered bytes of each stream: the third stage of reading a capture."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import numpy as np

from dissector.capture.columns import DATA, IN_DATA, NEVER, Chunks, Segments
from dissector.capture.connections import Connection
from dissector.capture.live import ACK, FIN, RST, SEQ_MASK, SYN, Key, Live, Segment
from dissector.capture.release import Release, Stalls
from dissector.capture.stream import FAR_BYTES, WAIT_NS, Stream
from dissector.capture.waiting import Piece

__all__ = ["MAX_HELD_BYTES", "Connection", "Streams"]

MAX_HELD_BYTES = 256 << 20
"""How much may wait on all connections together; above it holes are gaps at once."""

_Flow: TypeAlias = tuple[Live, int, Stream, Stream]
"""A connection, the side that speaks in one direction, its stream and the other one."""


class Streams:
    """
    Puts the bytes of all connections in order.

    A fold over the segments in capture order: what a packet releases depends on the packets
    before it and on nothing else, so windows may be cut anywhere. A segment that comes in order
    is told at once; holes wait by the rules of `Stream`.

    A connection is two endpoints in a network. A new one begins where they are used again: at a
    SYN with another sequence number, once the old one has carried data or was closed; and at data
    too far from what is expected (its SYN was not captured). Where a connection is silent in one
    direction and another network has that direction, with acknowledgements that fit, it is joined
    to it: some captures tag only one direction, or number the two differently.

    Memory: what waits, up to `MAX_HELD_BYTES`, and about two KiB for each connection.

    Attributes:
        connections: All so far, by number.
    """

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self._flows: dict[Key, _Flow] = {}
        self._silent: dict[tuple[int, ...], tuple[Live, int]] = {}
        self._out = Release()
        self._waiting_bytes = 0
        self._closing: deque[tuple[int, Live, int]] = deque()

    def feed(self, segments: Segments) -> Chunks:
        """Take the segments of the next window; return what can be told now."""
        out = self._out
        rows = out.rows
        columns = zip(
            segments.network.tolist(),
            segments.source[:, 0].tolist(),
            segments.source[:, 1].tolist(),
            segments.source_port.tolist(),
            segments.target[:, 0].tolist(),
            segments.target[:, 1].tolist(),
            segments.target_port.tolist(),
            strict=True,
        )
        numbers = zip(
            segments.packet.tolist(),
            segments.time_ns.tolist(),
            segments.seq.tolist(),
            segments.ack.tolist(),
            segments.flags.tolist(),
            segments.start.tolist(),
            segments.length.tolist(),
            segments.captured.tolist(),
            strict=True,
        )
        for key, segment in zip(columns, numbers, strict=True):
            packet, time_ns, seq, ack, flags, start, length, captured = segment
            out.packet = packet
            if self._closing and time_ns >= self._closing[0][0]:
                self._visit_closing(time_ns)
            flow = self._flows.get(key)
            if flow is not None and flags & 0x17 == ACK and captured == length:
                live, side, stream, peer = flow
                if (
                    not live.unsettled
                    and stream.next is not None
                    and peer.acked is not None
                    and (not length or (seq - stream.next) & SEQ_MASK == 0)
                ):
                    # In order, and nothing waits: most segments of most captures.
                    record = live.record
                    record.sides[side].packets += 1
                    if time_ns > record.last_ns:
                        record.last_ns = time_ns
                    if 0 < (ack - peer.acked) & SEQ_MASK <= FAR_BYTES:
                        peer.acknowledge(ack, packet, time_ns)
                    if length:
                        row = (record.id, side, DATA, IN_DATA, start, length, packet, time_ns)
                        rows.extend((*row, packet, NEVER, NEVER))
                        stream.next += length
                        stream.side.bytes += length
                    continue
            self._take(key, flow, Segment(*segment))
        return out.take(segments.data)

    def finish(self) -> Chunks:
        """Return what still waited: the capture has ended."""
        for live, side, _, _ in list(self._flows.values()):
            if side == 0:
                self._flush(live)
        return self._out.take(np.zeros(0, dtype=np.uint8))

    def _take(self, key: Key, flow: _Flow | None, segment: Segment) -> None:
        """Take a segment that is not simply the next one."""
        if flow is None:
            flow = self._connect(key, segment)
        elif flow[0].begins_anew(flow[1], segment):
            self._end(flow[0], flow[1], "reused", segment.time_ns)
            flow = self._connect(key, segment)
        elif segment.flags & SYN:
            flow = self._orient(key, flow, segment)
        live, side, stream, peer = flow
        record = live.record
        stream.side.packets += 1
        record.last_ns = max(record.last_ns, segment.time_ns)
        if segment.flags & SYN:
            live.open(side, segment)
        if segment.flags & RST:
            if live.believes_reset(side, segment):
                self._end(live, side, "rst", segment.time_ns)
            return
        if segment.flags & ACK:
            peer.acknowledge(segment.ack, segment.packet, segment.time_ns)
        self._advance(live, peer, segment.time_ns)
        self._receive(stream, segment)
        self._advance(live, stream, segment.time_ns)
        if live.stalls.told != (NEVER, NEVER):
            self._out.lift(live.stalls, segment.time_ns)
        self._settle(live, side, segment.time_ns)
        if live.closing:
            self._closing.append((segment.time_ns + WAIT_NS, live, side))

    def _settle(self, live: Live, side: int, now_ns: int) -> None:
        """See whether that was all, once something may have been told."""
        first, second = live.streams
        if first.finished and second.finished:
            self._end(live, side, "fin", now_ns)
        live.unsettled = first.unsettled or second.unsettled

    def _visit_closing(self, now_ns: int) -> None:
        """Look again at closed connections with holes: no packet of theirs may come to do it."""
        while self._closing and now_ns >= self._closing[0][0]:
            _, live, side = self._closing.popleft()
            for stream in live.streams:
                self._advance(live, stream, now_ns)
            self._settle(live, side, now_ns)

    def _connect(self, key: Key, segment: Segment) -> _Flow:
        """Begin a connection with its first segment, or find one that it answers."""
        live, side = self._silent.get(key[1:], (None, 0))
        if live is not None and live.is_answered_by(side, segment):
            self._flows[key] = (live, side, live.streams[side], live.streams[1 - side])
            return self._flows[key]
        network, *numbers = key
        source = (numbers[0], numbers[1], numbers[2])
        target = (numbers[3], numbers[4], numbers[5])
        back = (network, *target, *source)
        answers = segment.flags & (SYN | ACK) == SYN | ACK
        a, b = (target, source) if answers else (source, target)
        number = len(self.connections)
        record = Connection(number, network, a, b, segment.time_ns, segment.time_ns)
        self.connections.append(record)
        stalls = Stalls(number, [None, None])
        streams = (Stream(record.sides[0], stalls, 0), Stream(record.sides[1], stalls, 1))
        keys = (back, key) if answers else (key, back)
        live = Live(record, keys, stalls, streams, oriented=segment.flags & SYN != 0)
        self._silent[back[1:]] = (live, 0 if answers else 1)
        self._register(live)
        return self._flows[key]

    def _orient(self, key: Key, flow: _Flow, segment: Segment) -> _Flow:
        """Exchange the sides, if only now a handshake tells who opened the connection."""
        live, side, _, _ = flow
        opener = side if segment.opens else 1 - side
        if opener == 1 and not live.oriented and not live.carried and not live.record.ended:
            live.turn()
            self._register(live)
            self._silent.pop(live.keys[0][1:], None)
        live.oriented = True
        return self._flows[key]

    def _register(self, live: Live) -> None:
        first, second = live.streams
        self._flows[live.keys[1]] = (live, 1, second, first)
        self._flows[live.keys[0]] = (live, 0, first, second)

    def _receive(self, stream: Stream, segment: Segment) -> None:
        seq = stream.place(segment.first & SEQ_MASK)
        if segment.length:
            piece = Piece(
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

    def _advance(self, live: Live, stream: Stream, now_ns: int) -> None:
        if stream.unsettled:
            crowded = self._waiting_bytes > MAX_HELD_BYTES
            self._waiting_bytes -= stream.advance(now_ns, crowded, self._out)

    def _flush(self, live: Live) -> None:
        for stream in live.streams:
            self._waiting_bytes -= stream.flush(self._out)
        live.unsettled = False

    def _end(self, live: Live, side: int, how: str, time_ns: int) -> None:
        """Tell the end of a connection, once."""
        self._flush(live)
        if not live.record.ended:
            live.record.ended = how
            self._out.end(live.stalls, side, time_ns)
