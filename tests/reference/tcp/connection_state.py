"""A materialised TCP connection, and the meaning of segments to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dissector.capture.columns import (
    ACK,
    RST,
    SEQ_MASK,
    SYN,
)
from dissector.capture.tcp.connection_kernel import REPLY_WINDOW_BYTES, RESET_WINDOW_BYTES
from dissector.capture.tcp.stream_kernel import START_WAIT_BYTES
from tests.reference.tcp.chunk_builder import ReorderState
from tests.reference.tcp.stream_reassembler import Stream, is_near

FlowKey: TypeAlias = tuple[int, int, int, int, int, int, int]
"""A direction: network, and source and destination as address (high, low; signed) and port."""


@dataclass(slots=True)
class Segment:
    """One row of `Segments`, for the slow path."""

    packet: int
    time_ns: int
    seq: int
    ack: int
    flags: int
    start: int
    length: int
    captured: int
    clock_ns: int

    @property
    def payload_seq(self) -> int:
        """The sequence number of the first byte of payload; a SYN occupies one before it."""
        return self.seq + 1 if self.flags & SYN else self.seq

    @property
    def is_opening_syn(self) -> bool:
        """Whether this is a SYN without ACK: the request to open a connection."""
        return self.flags & (SYN | ACK) == SYN


@dataclass(slots=True)
class LiveConnection:
    """
    A connection as an object, while it receives segments out of order.

    Attributes:
        number: Its number.
        keys: The flow keys of its sides. If it was joined to a direction of another network, that
            direction has another key.
        reorder: The out-of-order segments of its sides.
        streams: Streams of side 0 and side 1.
        last_ns: Capture time of its last packet.
        oriented: Whether a handshake showed the side that opened it.
        syn_seen: As in `Connection`.
        ended: As in `Connection`.
        is_pending: Whether the passage of time alone may release something.
        waiting_keys: The keys of its segments since then.
    """

    number: int
    keys: tuple[FlowKey, FlowKey]
    reorder: ReorderState
    streams: tuple[Stream, Stream]
    last_ns: int
    oriented: bool
    syn_seen: bool
    ended: str
    is_pending: bool = False
    waiting_keys: list[FlowKey] = field(default_factory=list)

    @property
    def has_data(self) -> bool:
        """Whether any bytes were sent on it."""
        return self.streams[0].has_data or self.streams[1].has_data

    @property
    def is_closed(self) -> bool:
        """Whether a side has closed or reset it."""
        first, second = self.streams
        return bool(self.ended) or first.fin is not None or second.fin is not None

    @property
    def is_closing(self) -> bool:
        """Whether both sides have closed it and some data is not yet released."""
        first, second = self.streams
        return self.is_pending and first.fin is not None and second.fin is not None

    def swap_sides(self) -> None:
        """Exchange the sides; before anything was released or waits."""
        self.keys = self.keys[1], self.keys[0]
        self.streams = self.streams[1], self.streams[0]
        for stream in self.streams:
            stream.swap_side()
        self.reorder.least_ns.reverse()
        self.reorder.resent_ns.reverse()

    def starts_new_connection(self, side: int, segment: Segment) -> bool:
        """Return whether a segment from `side` shows that the ports are reused."""
        stream = self.streams[side]
        if segment.flags & SYN:
            return self._syn_starts_new_connection(stream, segment)
        expected = stream.expected
        if not segment.length or segment.flags & RST or expected is None:
            return False
        return not is_near(stream.unwrap(segment.seq), expected)

    def _syn_starts_new_connection(self, stream: Stream, segment: Segment) -> bool:
        if stream.isn is not None:
            if (segment.seq - stream.isn) & SEQ_MASK == 0:
                return False
        else:
            # A SYN may be captured after the first bytes.
            begun = stream.expected if stream.first is None else stream.first
            if begun is not None and (begun - segment.payload_seq) & SEQ_MASK <= START_WAIT_BYTES:
                return False
        if segment.is_opening_syn:
            return self.has_data or self.is_closed
        return stream.has_data or self.is_closed

    def process_syn(self, side: int, segment: Segment) -> None:
        """Process a SYN: it sets the start of its stream, and with ACK the start of the other."""
        stream, peer = self.streams[side], self.streams[1 - side]
        self.syn_seen = True
        isn = stream.unwrap(segment.seq)
        stream.timed = None
        if stream.isn != isn and (stream.next is None or not stream.has_data):
            stream.open(isn)
            stream.time_newest(segment.time_ns)
        if segment.flags & ACK and peer.next is None and peer.buffer is None:
            peer.open(peer.unwrap(segment.ack) - 1)

    def accepts_reset(self, side: int, segment: Segment) -> bool:
        """Return whether the receiver of a RST would accept it, according to the capture."""
        stream, peer = self.streams[side], self.streams[1 - side]
        if stream.next is not None:
            number = stream.unwrap(segment.seq)
            lowest = stream.next if stream.acked is None else min(stream.next, stream.acked)
            return lowest - 1 <= number <= stream.next + RESET_WINDOW_BYTES
        if segment.flags & ACK and peer.next is not None:
            # A RST in reply to a SYN must acknowledge it. Source: RFC 9293 3.10.7.3.
            lowest = peer.next - RESET_WINDOW_BYTES if peer.isn is None else peer.isn + 1
            return lowest <= peer.unwrap(segment.ack) <= peer.next + RESET_WINDOW_BYTES
        return True

    def matches_silent_side(self, side: int, segment: Segment) -> bool:
        """
        Return whether a segment of another network was sent by the silent `side`.

        It must acknowledge data of the other side; after an acknowledgement by that side, its
        sequence number must be near it. 32 or 64 bits do not agree by chance.
        """
        stream, peer = self.streams[side], self.streams[1 - side]
        if not segment.flags & ACK or segment.flags & RST or self.is_closed or stream.side.packets:
            return False
        expected = peer.expected
        if expected is None:
            return False
        distance = peer.unwrap(segment.ack) - expected
        if segment.flags & SYN:
            return distance == 0
        acked = stream.acked
        return (
            acked is not None
            and abs(distance) <= REPLY_WINDOW_BYTES
            and abs(stream.unwrap(segment.seq) - acked) <= REPLY_WINDOW_BYTES
        )
