"""A TCP connection while its segments come, and what a segment means to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dissector.capture.columns import NEVER
from dissector.capture.tcp.chunk_builder import ReorderState
from dissector.capture.tcp.stream_reassembler import START_WAIT_BYTES, Stream, is_near

FIN, SYN, RST, ACK = 1, 2, 4, 16

RESET_WINDOW_BYTES = 1 << 20
"""How far from the next expected byte a RST is believed."""

ANSWER_WINDOW_BYTES = 1 << 20
"""How far a segment and the acknowledgements of the other direction may be apart."""

SEQ_MASK = (1 << 32) - 1

FlowKey: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Network, and source and target as address (high, low; signed) and port: one direction."""


@dataclass(slots=True)
class Segment:
    """One row of `Segments`, for what is looked at one by one."""

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
        """The sequence number of the first byte of payload; a SYN takes one before it."""
        return self.seq + 1 if self.flags & SYN else self.seq

    @property
    def is_opening_syn(self) -> bool:
        """Whether this is a SYN without ACK: the first packet of who opens a connection."""
        return self.flags & (SYN | ACK) == SYN


@dataclass(slots=True)
class LiveConnection:
    """
    A connection as an object, while something comes for it that is not simply its next bytes.

    Attributes:
        number: Its number.
        keys: With what its sides send; when it was joined to another network, there only one does.
        reorder: What waits on it.
        streams: What side 0 and side 1 sent.
        last_ns: When its last packet was captured.
        oriented: Whether a handshake told which side opened it.
        syn_seen: As in `Connection`.
        ended: As in `Connection`.
        is_pending: Whether time alone may bring something to tell.
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
        """Whether a side has closed it, or reset it."""
        first, second = self.streams
        return bool(self.ended) or first.fin is not None or second.fin is not None

    @property
    def is_closing(self) -> bool:
        """Whether both sides have closed it and what they sent is not all told."""
        first, second = self.streams
        return self.is_pending and first.fin is not None and second.fin is not None

    @property
    def fits_row(self) -> bool:
        """Whether the numbers of `layout` tell all of it."""
        return (
            not self.is_pending
            and self.reorder.emitted == (NEVER, NEVER)
            and all(each.fin is None or each.has_data for each in self.streams)
        )

    def swap_sides(self) -> None:
        """Exchange the sides; nothing may have been told or wait."""
        self.keys = self.keys[1], self.keys[0]
        self.streams = self.streams[1], self.streams[0]
        for stream in self.streams:
            stream.swap_side()

    def starts_new_connection(self, side: int, segment: Segment) -> bool:
        """Return whether a segment from `side` shows that the ports are used for a new one."""
        stream = self.streams[side]
        if segment.flags & SYN:
            return self._opens_anew(stream, segment)
        expected = stream.expected
        if not segment.length or segment.flags & RST or expected is None:
            return False
        return not is_near(stream.unwrap(segment.seq), expected)

    def _opens_anew(self, stream: Stream, segment: Segment) -> bool:
        if stream.isn is not None:
            if (segment.seq - stream.isn) & SEQ_MASK == 0:
                return False
        else:
            # A SYN may be captured behind the first bytes.
            begun = stream.expected if stream.first is None else stream.first
            if begun is not None and (begun - segment.payload_seq) & SEQ_MASK <= START_WAIT_BYTES:
                return False
        if segment.is_opening_syn:
            return self.has_data or self.is_closed
        return stream.has_data or self.is_closed

    def process_syn(self, side: int, segment: Segment) -> None:
        """Take a SYN: it tells where its stream begins, and with ACK where the other does."""
        stream, peer = self.streams[side], self.streams[1 - side]
        self.syn_seen = True
        isn = stream.unwrap(segment.seq)
        if stream.isn != isn and (stream.next is None or not stream.has_data):
            stream.open(isn)
        if segment.flags & ACK and peer.next is None and peer.buffer is None:
            peer.open(peer.unwrap(segment.ack) - 1)

    def accepts_reset(self, side: int, segment: Segment) -> bool:
        """Return whether a RST is one that its receiver would believe, as far as can be told."""
        stream, peer = self.streams[side], self.streams[1 - side]
        if stream.next is not None:
            number = stream.unwrap(segment.seq)
            lowest = stream.next if stream.acked is None else min(stream.next, stream.acked)
            return lowest - 1 <= number <= stream.next + RESET_WINDOW_BYTES
        if segment.flags & ACK and peer.next is not None:
            # The answer to a SYN must acknowledge it. Source: RFC 9293 3.10.7.3.
            lowest = peer.next - RESET_WINDOW_BYTES if peer.isn is None else peer.isn + 1
            return lowest <= peer.unwrap(segment.ack) <= peer.next + RESET_WINDOW_BYTES
        return True

    def matches_silent_side(self, side: int, segment: Segment) -> bool:
        """
        Return whether a segment of another network is the silent `side` speaking.

        Its acknowledgement must be of what the other side sent, and where that side acknowledged
        something, its sequence number must be near. No chance makes 32 or 64 bits agree.
        """
        stream, peer = self.streams[side], self.streams[1 - side]
        if not segment.flags & ACK or segment.flags & RST or self.is_closed or stream.side.packets:
            return False
        expected = peer.expected
        if expected is None:
            return False
        answered = peer.unwrap(segment.ack) - expected
        if segment.flags & SYN:
            return answered == 0
        acked = stream.acked
        return (
            acked is not None
            and abs(answered) <= ANSWER_WINDOW_BYTES
            and abs(stream.unwrap(segment.seq) - acked) <= ANSWER_WINDOW_BYTES
        )
