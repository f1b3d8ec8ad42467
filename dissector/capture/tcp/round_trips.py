"""
Device functions that measure round-trip times: from bytes of a side to their acknowledgement.

Seen from the place of the capture, that is the way to the other side and back. The SYN and the
SYN/ACK are measured alike, so the two halves of the handshake show where the capture was taken.

One measurement is under way for each stream. It is dropped if any bytes are sent again, as it is
unknown which of both the acknowledgement is for (Karn's algorithm), and if the acknowledgement
comes after bytes that are missing: the first one may be among them.

The smoothed RTT is that of all acknowledgements, delayed ones and those that came with a response
too. The *least* RTT is that of the way alone: the least of the newest ones by acknowledgements that
came alone and need not have been delayed, with the handshake's.

Source: RFC 6298, 2 and 3; RFC 1122, 4.2.3.2 (delayed acknowledgements); for the age of the least
RTT, "BBR: Congestion-Based Congestion Control", ACM Queue 14 (2016).
"""

from __future__ import annotations

from dissector.capture.columns import NO_HEADER, SEQ_MASK, SYN
from dissector.capture.tcp.tcp_rows import NONE, ConnectionRow, SegmentRow, StreamRow
from dissector.kernel import device_function

DELAYED_NS = 40_000_000
"""The shortest delay of an acknowledgement. Source: TCP_DELACK_MIN in Linux, include/net/tcp.h."""

LEAST_AGE = 10_000_000_000 >> 20
"""In units of 2^20 ns: then a greater RTT replaces a least one, as the way may have changed."""


@device_function
def begin_timing(stream: StreamRow, segment: SegmentRow) -> None:
    """Measure the RTT of a segment, the newest of its stream, unless a measurement is under way."""
    if stream.timed == NONE:
        stream.timed, stream.timed_ns = stream.next, segment.time_ns


@device_function
def end_timing(connection: ConnectionRow, side: int, segment: SegmentRow) -> None:
    """End the measurement in a side's stream with the segment that acknowledges its bytes."""
    stream, peer = connection.streams[side], connection.streams[1 - side]
    is_handshake = stream.timed == stream.first
    stream.timed = NONE
    begin = segment.seq + 1 if segment.flags & SYN else segment.seq
    is_next = peer.next == NONE or (begin - peer.next) & SEQ_MASK == 0
    rtt_ns = segment.time_ns - stream.timed_ns
    if not is_next or rtt_ns < 0 or segment.flags & NO_HEADER:
        return
    if is_handshake:
        if segment.length != 0:
            return  # its own packet is missing
        stream.handshake_ns = rtt_ns
    stream.srtt_ns = rtt_ns if stream.srtt_ns < 0 else (7 * stream.srtt_ns + rtt_ns) >> 3
    if segment.length == 0:
        update_least(stream, rtt_ns, segment.time_ns, is_handshake)


@device_function
def update_least(stream: StreamRow, rtt_ns: int, now_ns: int, is_handshake: bool) -> None:
    """Compare an RTT by an acknowledgement without data with the least one."""
    least_ns, now = stream.least_ns, now_ns >> 20
    if not is_handshake and rtt_ns - max(least_ns, 0) >= DELAYED_NS:
        return
    if least_ns < 0 or rtt_ns <= least_ns or now - stream.least_at > LEAST_AGE:
        stream.least_ns = rtt_ns
        stream.least_at = now
