"""Reassembly of one direction of a TCP connection."""

from __future__ import annotations

from dataclasses import replace

from dissector.capture.columns import NEVER
from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.round_trips import DELAYED_NS, LEAST_AGE
from dissector.capture.tcp.stream_kernel import (
    FAR_BYTES,
    MAX_WAITING_BYTES,
    MAX_WAITING_SEGMENTS,
    START_WAIT_BYTES,
    UNACKED_WAIT_NS,
    WAIT_NS,
)
from tests.reference.tcp.chunk_builder import ChunkBuilder, ReorderState
from tests.reference.tcp.loss_counters import LossCounters
from tests.reference.tcp.reorder_buffer import ReorderBuffer, SegmentBytes

_HALF, _FULL = 1 << 31, 1 << 32


def is_near(number: int, reference: int) -> bool:
    """Return whether two sequence numbers can belong to one connection."""
    return -FAR_BYTES <= number - reference <= FAR_BYTES


class Stream:
    """
    The data of one side of a connection.

    Sequence numbers are unwrapped beyond 2^32, so they compare as ints do. `next` is the position
    of the next byte to release. A stream without a captured SYN has none until it is *anchored*:
    its early segments wait, since the first one captured need not be the lowest.

    The first bytes captured win. A hole becomes a gap when the other side has acknowledged data
    after it and `WAIT_NS` have passed, or when too much waits, or when the connection ends.

    Attributes:
        losses: Counts missing, retransmitted and late bytes.
        side: Its counters for the `streams` command.
        next: Sequence number of the next byte to release; None while not anchored.
        first: The sequence number of the anchor.
        isn: The sequence number of its SYN, if known.
        acked: The other side's last acknowledgement number; None if none was captured.
        first_acked: The first one.
        acked_ns: The time of that acknowledgement.
        acked_packet: The packet of that acknowledgement.
        data_ns: The time of the newest released data.
        resent: Number of retransmitted segments since that acknowledgement.
        fin: The sequence number of its FIN, if that was captured.
        finished: Whether all bytes before the FIN were released.
        buffer: The out-of-order segments; None without any.
        timed: The number whose acknowledgement ends a measurement of the RTT, and the time of its
            bytes; None without one.
        closed_ns: Since when it announces a window of zero.
    """

    __slots__ = (
        "_fin_ns",
        "_fin_packet",
        "_least_at",
        "_number",
        "_reorder",
        "acked",
        "acked_ns",
        "acked_packet",
        "buffer",
        "closed_ns",
        "data_ns",
        "fin",
        "finished",
        "first",
        "first_acked",
        "isn",
        "losses",
        "next",
        "resent",
        "side",
        "timed",
    )

    def __init__(self, losses: LossCounters, reorder: ReorderState, number: int) -> None:
        self.losses = losses
        self.side: Side = losses.side
        self.next: int | None = None
        self.first: int | None = None
        self.isn: int | None = None
        self.acked: int | None = None
        self.first_acked: int | None = None
        self.fin: int | None = None
        self.finished = False
        self.buffer: ReorderBuffer | None = None
        self._reorder = reorder
        self._number = number
        self.acked_ns = 0
        self.acked_packet = 0
        self.data_ns = 0
        self.resent = 0
        self.timed: tuple[int, int] | None = None
        self.closed_ns: int | None = None
        self._least_at = 0
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
        """Whether the passage of time alone may release something."""
        return self.buffer is not None or (self.fin is not None and not self.finished)

    @property
    def waiting(self) -> int:
        """Number of the segments that wait."""
        return 0 if self.buffer is None else len(self.buffer)

    @property
    def has_data(self) -> bool:
        """Whether any of its bytes were released or wait."""
        return self.buffer is not None or (self.next is not None and self.next != self.first)

    def restore_waiting(self, buffer: ReorderBuffer) -> None:
        """Continue with segments waiting after a hole."""
        self.buffer = self._reorder.buffers[self._number] = buffer

    def swap_side(self) -> None:
        """Become the other side's stream; before anything was released or waits."""
        self._number = 1 - self._number

    def unwrap(self, raw: int) -> int:
        """Return a 32-bit sequence number unwrapped, as the nearest one to the expected number."""
        reference = self.expected
        if reference is None:
            reference = raw + _FULL if self.acked is None else self.acked
        return reference + (raw - reference + _HALF) % _FULL - _HALF

    def anchor(self, number: int) -> None:
        """Start the stream here."""
        self.next = self.first = number
        if self.acked is not None and not is_near(self.acked, number):
            self._forget_acks()

    def open(self, isn: int) -> None:
        """Process a SYN's sequence number; the stream starts after it."""
        self.isn = isn
        self.anchor(isn + 1)
        if self.acked is not None and self.acked <= isn:
            self._forget_acks()

    def _forget_acks(self) -> None:
        self.acked = None
        if self.buffer is not None:
            self.buffer.uncover()

    def time_newest(self, time_ns: int) -> None:
        """Measure the RTT of its newest bytes, unless a measurement is under way."""
        if self.timed is None and self.next is not None:
            self.timed = self.next, time_ns

    def end_timing(self, sent_ns: int, time_ns: int, *, is_handshake: bool, is_alone: bool) -> None:
        """Take the time of an acknowledgement; RFC 6298 2 says how it is smoothed."""
        rtt_ns, before = time_ns - sent_ns, self.side.srtt_ns
        if rtt_ns >= 0:
            self.side.srtt_ns = rtt_ns if before is None else (7 * before + rtt_ns) // 8
            if is_handshake:
                self.side.handshake_ns = rtt_ns
            if is_alone:
                self._update_least(rtt_ns, time_ns, is_handshake)

    def _update_least(self, rtt_ns: int, now_ns: int, is_handshake: bool) -> None:
        least_ns = self._reorder.least_ns[self._number]
        is_delayed = rtt_ns - max(least_ns, 0) >= DELAYED_NS and not is_handshake
        is_old = (now_ns >> 20) - self._least_at > LEAST_AGE
        if not is_delayed and (least_ns < 0 or rtt_ns <= least_ns or is_old):
            self._reorder.least_ns[self._number] = rtt_ns
            self._least_at = now_ns >> 20

    def observe_window(self, is_closed: bool, time_ns: int) -> None:
        """Count how long its sender announces a window of zero."""
        if not is_closed and self.closed_ns is not None:
            self.side.zero_window_ns += max(time_ns - self.closed_ns, 0)
            self.closed_ns = None
        elif is_closed and self.closed_ns is None:
            self.closed_ns = time_ns

    def result(self, last_ns: int) -> Side:
        """Return its counters, if the last packet of the connection was at a time."""
        closed_ns = 0 if self.closed_ns is None else max(last_ns - self.closed_ns, 0)
        acked = self.losses.acked_gap_bytes(self.acked)
        if self.next is None and self.acked is not None and self.first_acked is not None:
            silent = self.acked - self.first_acked
            acked += silent if silent > 1 else 0
        zero_window_ns = self.side.zero_window_ns + closed_ns
        return replace(self.side, acked_not_captured=acked, zero_window_ns=zero_window_ns)

    def acknowledge(self, raw: int, packet: int, time_ns: int) -> tuple[int, int] | None:
        """Process an acknowledgement; return the measurement that it ends."""
        number = self.unwrap(raw)
        if self.acked is not None:
            number = self.acked + (raw - self.acked + _HALF) % _FULL - _HALF
            if not 0 < number - self.acked <= FAR_BYTES:
                return None
        elif self.next is not None and not is_near(number, self.next):
            return None
        else:
            self.first_acked = number
        self.acked = number
        self.acked_ns = time_ns
        self.acked_packet = packet
        self.resent = 0
        if self.buffer is not None:
            self.buffer.cover(number, time_ns)
        timed = self.timed
        if timed is None or number < timed[0]:
            return None
        self.timed = None
        return timed

    def receive(self, segment: SegmentBytes, out: ChunkBuilder) -> int:
        """
        Process a segment's payload, which is not empty: release it if it is next, else buffer it.

        Returns:
            Number of added waiting bytes.
        """
        is_new = True
        if self.next is None and self.buffer is None:
            self._anchor_by_ack(segment)
        if self.next is not None and segment.seq < self.next:
            first = self.first or 0
            is_resent = self.losses.count_old(segment.seq, segment.end, first, self.next)
            self._count_resent(is_resent, segment.time_ns)
            if segment.end <= self.next:
                return 0
            segment, is_new = segment.slice(self.next, segment.end), False
        if self.buffer is None and self.next == segment.seq:
            self._emit(segment, out)
            if is_new:
                self.time_newest(segment.time_ns)
            return 0
        return self._buffer_segment(segment, out)

    def _count_resent(self, is_resent: bool, time_ns: int) -> None:
        self.resent += is_resent
        if is_resent:
            self._reorder.resent_ns[self._number] = time_ns
            self.timed = None

    def close(self, fin: int, packet: int, time_ns: int) -> None:
        """Process a FIN's sequence number; the first one counts."""
        if self.next is None and self.buffer is None:
            is_acked_near = self.acked is not None and is_near(self.acked, fin)
            self.anchor(min(self.acked, fin) if is_acked_near and self.acked is not None else fin)
        if self.fin is None:
            self.fin, self._fin_packet, self._fin_ns = fin, packet, time_ns

    def advance(self, now_ns: int, is_full: bool, out: ChunkBuilder) -> int:
        """
        Release all data that is ready.

        Args:
            now_ns: The time of the packet that is being processed.
            is_full: Whether too much waits on all streams together.
            out: Receives the rows.

        Returns:
            Number of released waiting bytes.
        """
        buffer = self.buffer
        before = 0 if buffer is None else buffer.bytes
        if self.next is None and buffer is not None and self._may_anchor(now_ns, is_full):
            self._anchor_at_front()
        if self.next is not None:
            while buffer is not None:
                front = buffer.front
                if front > self.next:
                    if not (is_full or self._is_gap(front, buffer.front_covered_ns, now_ns)):
                        break
                    self._emit_gap_before_front(out)
                self._emit_front(out)
                buffer = self.buffer
            self._try_finish(now_ns, out)
        return before - (0 if buffer is None else buffer.bytes)

    def flush(self, out: ChunkBuilder) -> int:
        """Release all that waits, with gaps for the holes, at the end; returns as `advance`."""
        before = 0 if self.buffer is None else self.buffer.bytes
        if self.next is None and self.buffer is not None:
            self._anchor_at_front()
        while self.buffer is not None:
            self._emit_gap_before_front(out)
            self._emit_front(out)
        if self.next is not None and self.fin is not None:
            self._emit_gap(self.fin, self._fin_packet, self._fin_ns, out)
            self._pass_fin()
        elif self.next is not None and self.acked is not None and self.acked - self.next > 1:
            # One acknowledged number more may be a FIN that was not captured.
            self._emit_gap(self.acked, self.acked_packet, self.acked_ns, out)
        return before

    def _anchor_by_ack(self, segment: SegmentBytes) -> None:
        """
        Anchor the stream at the first segment if the other side has acknowledged something near it.

        Data between the acknowledgement and the segment was sent and is missing. A segment before
        the acknowledgement is a retransmission, and as good a start, unless it is a keep-alive with
        a dummy byte.
        """
        if self.acked is not None and is_near(segment.seq, self.acked):
            is_keep_alive = segment.end <= self.acked and segment.end - segment.seq == 1
            self.anchor(self.acked if is_keep_alive else min(segment.seq, self.acked))

    def _may_anchor(self, now_ns: int, is_full: bool) -> bool:
        buffer = self.buffer
        if buffer is None or buffer.oldest is None:
            return False
        return (
            is_full
            or (self.acked is not None and is_near(self.acked, buffer.front))
            or now_ns - buffer.oldest.time_ns >= WAIT_NS
            or buffer.bytes > START_WAIT_BYTES
            or len(buffer) > MAX_WAITING_SEGMENTS
        )

    def _anchor_at_front(self) -> None:
        buffer = self.buffer
        if buffer is not None:
            front = buffer.front
            is_acked_near = self.acked is not None and is_near(self.acked, front)
            self.anchor(
                min(front, self.acked) if is_acked_near and self.acked is not None else front
            )

    def _is_gap(self, front: int, covered_ns: int, now_ns: int) -> bool:
        """Return whether the bytes missing before `front` are lost."""
        buffer = self.buffer
        if buffer is not None and (
            buffer.bytes > MAX_WAITING_BYTES or len(buffer) > MAX_WAITING_SEGMENTS
        ):
            return True
        if self.acked is None:
            oldest = None if buffer is None else buffer.oldest
            since_ns = self._fin_ns if oldest is None else oldest.time_ns
            return now_ns - since_ns >= UNACKED_WAIT_NS
        if self.acked < front:
            return False
        return now_ns - covered_ns >= WAIT_NS

    def _buffer_segment(self, segment: SegmentBytes, out: ChunkBuilder) -> int:
        buffer = self.buffer
        if buffer is None:
            buffer = self.buffer = self._reorder.buffers[self._number] = ReorderBuffer()
        is_covered = self.acked is not None and segment.seq <= self.acked
        added = buffer.add(segment, self.acked_ns if is_covered else NEVER)
        more = sum(each.end - each.seq for each in added)
        is_resent = self.losses.count_retransmitted(segment.end - segment.seq - more)
        self._count_resent(is_resent, segment.time_ns)
        for each in added:
            out.keep_bytes(each)
        return more

    def _emit_front(self, out: ChunkBuilder) -> None:
        buffer = self.buffer
        if buffer is None or self.next is None:
            return
        for segment in buffer.pop_run():
            segment.released = True
            if segment.end > self.next:
                whole = segment.seq >= self.next
                self._emit(segment if whole else segment.slice(self.next, segment.end), out)
        if not len(buffer):
            self.buffer = self._reorder.buffers[self._number] = None

    def _emit(self, segment: SegmentBytes, out: ChunkBuilder) -> None:
        out.emit_data(self._reorder, self._number, segment)
        self.side.bytes += segment.captured
        self.data_ns = segment.time_ns
        self.next = segment.end
        cut = segment.end - segment.seq - segment.captured
        if cut:
            self.losses.count_cut(segment.end - cut, segment.end)
            at = segment.packet, segment.time_ns
            out.emit_gap(self._reorder, self._number, cut, *at, segment.time_ns)

    def _emit_gap_before_front(self, out: ChunkBuilder) -> None:
        buffer = self.buffer
        if buffer is not None:
            segment = buffer.lowest
            self._emit_gap(segment.seq, segment.packet, segment.time_ns, out)

    def _emit_gap(self, end: int, packet: int, time_ns: int, out: ChunkBuilder) -> None:
        """Emit the bytes up to `end` as missing, if there are any."""
        if self.next is None or end <= self.next:
            return
        self.losses.count_gap(self.next, end, self.acked)
        self.timed = None
        length = end - self.next
        self.next = end
        out.emit_gap(self._reorder, self._number, length, packet, time_ns, self.data_ns)

    def _try_finish(self, now_ns: int, out: ChunkBuilder) -> None:
        """Pass the FIN if all before it is released or is a gap."""
        if self.fin is None or self.finished or self.buffer is not None or self.next is None:
            return
        if self.next < self.fin:
            if not self._is_gap(self.fin, self.acked_ns, now_ns):
                return
            self._emit_gap(self.fin, self._fin_packet, self._fin_ns, out)
        self._pass_fin()

    def _pass_fin(self) -> None:
        if not self.finished:
            self.finished = True
            if self.next == self.fin:
                self.next += 1  # type: ignore[operator]
