"""
Device functions that measure round-trip times: from bytes of a side to their acknowledgement.

Seen from the place of the capture, that is the way to the other side and back. The SYN and the
SYN/ACK are measured alike, so the two halves of the handshake show where the capture was taken.

One measurement is under way for each stream. It is dropped if any bytes are sent again, as it is
unknown which of both the acknowledgement is for (Karn's algorithm), and if the acknowledgement
comes after bytes that are missing: the first one may be among them.

Source: RFC 6298, 2 and 3.
"""

from __future__ import annotations

from dissector.capture.columns import NO_HEADER
from dissector.capture.tcp.tcp_header import SEQ_MASK, SYN
from dissector.capture.tcp.tcp_rows import NONE, ConnectionRow, SegmentRow, StreamRow
from dissector.kernel import device_function


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
