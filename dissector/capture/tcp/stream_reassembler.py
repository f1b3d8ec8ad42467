"""One direction of a TCP connection, put in order."""

from __future__ import annotations

from dissector.capture.tcp.chunk_builder import ChunkBuilder, ReorderState
from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.loss_counters import LossCounters
from dissector.capture.tcp.reorder_buffer import ReorderBuffer, SegmentBytes

WAIT_NS = 50_000_000
"""How long bytes may be captured behind what followed them on the wire."""

UNACKED_WAIT_NS = 10_000_000_000
"""How long a hole may stay open where no acknowledgement is captured that could tell of it."""

START_WAIT_BYTES = 64 << 10
"""How much may wait at the start of a stream whose SYN was not captured."""

MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 16 << 10
"""How much may wait behind a hole before it is given up."""

FAR_BYTES = 64 << 20
"""Sequence numbers farther apart than this are not of one connection."""

_HALF, _FULL = 1 << 31, 1 << 32


def is_near(number: int, reference: int) -> bool:
    """Return whether two sequence numbers can be of one connection."""
    return -FAR_BYTES <= number - reference <= FAR_BYTES


class Stream:
    """
    What one side of a connection sent.

    Sequence numbers are counted on beyond 2^32, so they compare as ints do. `next` is where the
    next byte to be told belongs. A stream whose SYN was not captured has none until it is
    *anchored*: its early segments wait, since the first one captured need not be the lowest.

    The first bytes captured win. A hole is a gap when the other side has acknowledged what lies
    behind it and some time has passed, or when too much waits, or when the connection ends.

    Attributes:
        losses: Counts what is not simply its next bytes.
        side: Its numbers for the `streams` command.
        next: Sequence number of the next byte to tell; None while not anchored.
        first: Where it was anchored.
        isn: The sequence number of its SYN, where that is known.
        acked: What the other side acknowledged last; None where nothing was captured.
        acked_ns: When it did.
        acked_packet: By which packet.
        fin: The sequence number of its FIN, where that was captured.
        finished: Whether all bytes before the FIN were told.
        buffer: The segments that wait; None where none do.
    """

    __slots__ = (
        "_fin_ns",
        "_fin_packet",
        "_hole_acked_ns",
        "_number",
        "_stalls",
        "acked",
        "acked_ns",
        "acked_packet",
        "buffer",
        "fin",
        "finished",
        "first",
        "isn",
        "losses",
        "next",
        "side",
    )

    def __init__(self, tally: LossCounters, stalls: ReorderState, number: int) -> None:
        self.losses = tally
        self.side: Side = tally.side
        self.next: int | None = None
        self.first: int | None = None
        self.isn: int | None = None
        self.acked: int | None = None
        self.fin: int | None = None
        self.finished = False
        self.buffer: ReorderBuffer | None = None
        self._stalls = stalls
        self._number = number
        self.acked_ns = 0
        self.acked_packet = 0
        self._hole_acked_ns: int | None = None
        self._fin_ns = 0
        self._fin_packet = 0

    @property
    def expected(self) -> int | None:
        """The sequence number of the next byte, or of the lowest that waits before the start."""
        if self.next is None and self.buffer is not None:
            return self.buffer.front
        return self.next

    @property
    def is_pending(self) -> bool:
        """Whether time alone may bring something to tell."""
        return self.buffer is not None or (self.fin is not None and not self.finished)

    @property
    def has_data(self) -> bool:
        """Whether bytes of it were told or wait."""
        return self.buffer is not None or (self.next is not None and self.next != self.first)

    def swap_side(self) -> None:
        """Become the other side's stream; nothing may have been told or wait."""
        self._number = 1 - self._number

    def unwrap(self, raw: int) -> int:
        """Return a sequence number of 32 bits as the number near what is known."""
        reference = self.expected
        if reference is None:
            reference = raw + _FULL if self.acked is None else self.acked
        return reference + (raw - reference + _HALF) % _FULL - _HALF

    def anchor(self, number: int) -> None:
        """Let the stream begin here."""
        self.next = self.first = number
        if self.acked is not None and not is_near(self.acked, number):
            self.acked = None

    def open(self, isn: int) -> None:
        """Take a SYN's sequence number; the stream begins behind it."""
        self.isn = isn
        self.anchor(isn + 1)
        if self.acked is not None and self.acked <= isn:
            self.acked = None

    def acknowledge(self, raw: int, packet: int, time_ns: int) -> None:
        """Take an acknowledgement that the other side sent."""
        number = self.unwrap(raw)
        if self.acked is not None:
            number = self.acked + (raw - self.acked + _HALF) % _FULL - _HALF
            if not 0 < number - self.acked <= FAR_BYTES:
                return
        elif self.next is not None and not is_near(number, self.next):
            return
        self.acked = number
        self.acked_ns = time_ns
        self.acked_packet = packet

    def receive(self, piece: SegmentBytes, out: ChunkBuilder) -> int:
        """
        Take a segment's payload, which is not empty: tell it if it is next, else let it wait.

        Returns:
            How many bytes more wait now.
        """
        if self.next is None and self.buffer is None:
            self._anchor_by_ack(piece)
        if self.next is not None and piece.seq < self.next:
            self.losses.count_old(piece.seq, piece.end, self.first or 0, self.next)
            if piece.end <= self.next:
                return 0
            piece = piece.slice(self.next, piece.end)
        if self.buffer is None and self.next == piece.seq:
            self._tell(piece, out)
            return 0
        return self._wait(piece, out)

    def close(self, fin: int, packet: int, time_ns: int) -> None:
        """Take a FIN's sequence number; the first one holds."""
        if self.next is None and self.buffer is None:
            known = self.acked is not None and is_near(self.acked, fin)
            self.anchor(min(self.acked, fin) if known and self.acked is not None else fin)
        if self.fin is None:
            self.fin, self._fin_packet, self._fin_ns = fin, packet, time_ns

    def advance(self, now_ns: int, crowded: bool, out: ChunkBuilder) -> int:
        """
        Tell what can be told now.

        Args:
            now_ns: The time of the packet that is being looked at.
            crowded: Whether too much waits on all streams together.
            out: Where it is told.

        Returns:
            How many bytes fewer wait now.
        """
        waiting = self.buffer
        before = 0 if waiting is None else waiting.bytes
        if self.next is None and waiting is not None and self._may_anchor(now_ns, crowded):
            self._anchor_at_front()
        if self.next is not None:
            while waiting is not None:
                front = waiting.front
                if front > self.next:
                    if not (crowded or self._is_gap(front, now_ns)):
                        break
                    self._tell_gap_before_front(out)
                self._tell_front(out)
                waiting = self.buffer
            self._finish_if(now_ns, out)
        return before - (0 if waiting is None else waiting.bytes)

    def flush(self, out: ChunkBuilder) -> int:
        """Tell all that waits, and what is missing: nothing more will come. Returns as advance."""
        before = 0 if self.buffer is None else self.buffer.bytes
        if self.next is None and self.buffer is not None:
            self._anchor_at_front()
        while self.buffer is not None:
            self._tell_gap_before_front(out)
            self._tell_front(out)
        if self.next is not None and self.fin is not None:
            self._tell_gap(self.fin, self._fin_packet, self._fin_ns, out)
            self._pass_fin()
        elif self.next is not None and self.acked is not None and self.acked - self.next > 1:
            # One acknowledged number more may be a FIN that was not captured.
            self._tell_gap(self.acked, self.acked_packet, self.acked_ns, out)
        return before

    def _anchor_by_ack(self, piece: SegmentBytes) -> None:
        """
        Let the first segment seen begin the stream, if the other side's acknowledgement is known.

        What lies between that and the segment was sent and is missing. A segment before it is a
        retransmission, and as good a beginning, unless it is a keep-alive with a made-up byte.
        """
        if self.acked is not None and is_near(piece.seq, self.acked):
            is_keep_alive = piece.end <= self.acked and piece.end - piece.seq == 1
            self.anchor(self.acked if is_keep_alive else min(piece.seq, self.acked))

    def _may_anchor(self, now_ns: int, crowded: bool) -> bool:
        waiting = self.buffer
        if waiting is None or waiting.oldest is None:
            return False
        return (
            crowded
            or (self.acked is not None and is_near(self.acked, waiting.front))
            or now_ns - waiting.oldest.time_ns >= WAIT_NS
            or waiting.bytes > START_WAIT_BYTES
            or len(waiting) > MAX_WAITING_SEGMENTS
        )

    def _anchor_at_front(self) -> None:
        waiting = self.buffer
        if waiting is not None:
            front = waiting.front
            known = self.acked is not None and is_near(self.acked, front)
            self.anchor(min(front, self.acked) if known and self.acked is not None else front)

    def _is_gap(self, front: int, now_ns: int) -> bool:
        """Return whether what is missing before `front` will not come any more."""
        waiting = self.buffer
        if waiting is not None and (
            waiting.bytes > MAX_WAITING_BYTES or len(waiting) > MAX_WAITING_SEGMENTS
        ):
            return True
        if self.acked is None:
            first = None if waiting is None else waiting.oldest
            since_ns = self._fin_ns if first is None else first.time_ns
            return now_ns - since_ns >= UNACKED_WAIT_NS
        if self.acked < front:
            return False
        if self._hole_acked_ns is None:
            self._hole_acked_ns = self.acked_ns
        return now_ns - self._hole_acked_ns >= WAIT_NS

    def _wait(self, piece: SegmentBytes, out: ChunkBuilder) -> int:
        waiting = self.buffer
        if waiting is None:
            waiting = self.buffer = self._stalls.buffers[self._number] = ReorderBuffer()
        added = waiting.add(piece)
        more = sum(each.end - each.seq for each in added)
        self.losses.count_retransmitted(piece.end - piece.seq - more)
        for each in added:
            out.keep_bytes(each)
        return more

    def _tell_front(self, out: ChunkBuilder) -> None:
        waiting = self.buffer
        if waiting is None or self.next is None:
            return
        for piece in waiting.pop_run():
            piece.released = True
            if piece.end > self.next:
                whole = piece.seq >= self.next
                self._tell(piece if whole else piece.slice(self.next, piece.end), out)
        self._hole_acked_ns = None
        if not len(waiting):
            self.buffer = self._stalls.buffers[self._number] = None

    def _tell(self, piece: SegmentBytes, out: ChunkBuilder) -> None:
        out.emit_data(self._stalls, self._number, piece)
        self.side.bytes += piece.captured
        self.next = piece.end
        cut = piece.end - piece.seq - piece.captured
        if cut:
            self.losses.count_cut(piece.end - cut, piece.end)
            out.emit_gap(self._stalls, self._number, cut, piece.packet, piece.time_ns)

    def _tell_gap_before_front(self, out: ChunkBuilder) -> None:
        waiting = self.buffer
        if waiting is not None:
            piece = waiting.lowest
            self._tell_gap(piece.seq, piece.packet, piece.time_ns, out)

    def _tell_gap(self, end: int, packet: int, time_ns: int, out: ChunkBuilder) -> None:
        """Tell that the bytes up to `end` are missing; none may be."""
        if self.next is None or end <= self.next:
            return
        self.losses.count_gap(self.next, end)
        length = end - self.next
        self.next = end
        self._hole_acked_ns = None
        out.emit_gap(self._stalls, self._number, length, packet, time_ns)

    def _finish_if(self, now_ns: int, out: ChunkBuilder) -> None:
        """Pass the FIN, if all before it is told or is a gap."""
        if self.fin is None or self.finished or self.buffer is not None or self.next is None:
            return
        if self.next < self.fin:
            if not self._is_gap(self.fin, now_ns):
                return
            self._tell_gap(self.fin, self._fin_packet, self._fin_ns, out)
        self._pass_fin()

    def _pass_fin(self) -> None:
        if not self.finished:
            self.finished = True
            self._hole_acked_ns = None
            if self.next == self.fin:
                self.next += 1  # type: ignore[operator]
