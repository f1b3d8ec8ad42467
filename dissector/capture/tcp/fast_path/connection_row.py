"""Device functions that update a connection's row for in-order segments; see `in_order_kernel`."""

from __future__ import annotations

from dissector.capture.tcp.both_paths.reassembly_limits import FAR_BYTES, RESET_WINDOW_BYTES
from dissector.capture.tcp.both_paths.tcp_header import ACK, FIN, SEQ_MASK
from dissector.capture.tcp.both_paths.tcp_rows import (
    NONE,
    ConnectionRow,
    SegmentArrays,
    StreamRow,
    clear_stream,
)
from dissector.kernel import device_function
from dissector.kernel.named_rows import Rows

ENDED_BY_FIN, ENDED_BY_RST = 1, 2
"""`fin` and `rst`, as indexes into `END_REASONS`."""

_FULL, _HALF = 1 << 32, 1 << 31


@device_function
def opens_connection(connections: Rows[ConnectionRow], owner: int, other: int, seq: int) -> bool:
    """
    Return whether a SYN certainly opens a connection.

    Both directions are new, or belong to a connection that was closed from both sides.
    """
    if owner < 0 or other < 0:
        return owner < 0 and other < 0
    if other >> 1 != owner >> 1:
        return False
    connection = connections[owner >> 1]
    if connection.is_live or not connection.streams[0].finished:
        return False
    stream = connection.streams[owner & 1]
    if not connection.streams[1].finished or not stream.has_isn:
        return False
    return bool((seq - stream.first + 1) & SEQ_MASK != 0)


@device_function
def start_connection(connection: ConnectionRow, segments: SegmentArrays, i: int) -> None:
    """Initialise the row of a connection that segment `i` opens."""
    source, target = connection.ends[0], connection.ends[1]
    source.high, source.low = segments.source[i, 0], segments.source[i, 1]
    source.port = segments.source_port[i]
    target.high, target.low = segments.target[i, 0], segments.target[i, 1]
    target.port = segments.target_port[i]
    connection.network = segments.network[i]
    connection.first_packet = segments.packet[i]
    connection.first_ns = connection.last_ns = segments.time_ns[i]
    connection.ended = connection.waits = 0
    connection.is_live = connection.syn_seen = False
    connection.oriented = True
    clear_stream(connection.streams[0])
    clear_stream(connection.streams[1])


@device_function
def open_side(connection: ConnectionRow, side: int, seq: int) -> None:
    """Start a side's stream behind its SYN."""
    connection.syn_seen = True
    stream = connection.streams[side]
    stream.next = stream.first = seq + _FULL + 1
    stream.has_isn = True


@device_function
def is_first_syn_ack(connection: ConnectionRow, side: int) -> bool:
    """Return whether a SYN/ACK is certainly the side's first, in reply to a SYN."""
    own, peer = connection.streams[side], connection.streams[1 - side]
    if own.next != NONE or own.acked != NONE or own.finished:
        return False
    if peer.next == NONE or peer.finished:
        return False
    return bool(connection.oriented and connection.ended == 0)


@device_function
def is_in_order(stream: StreamRow, control: int, seq: int) -> bool:
    """Return whether bytes, or a side's first FIN, are next in the stream."""
    if stream.next == NONE or (control & FIN and stream.finished):
        return False
    return bool((seq - stream.next) & SEQ_MASK == 0)


@device_function
def acknowledge(stream: StreamRow, ack: int, packet: int, time_ns: int) -> None:
    """Record an acknowledgement of a side's data."""
    if stream.acked != NONE:
        advance = (ack - stream.acked) & SEQ_MASK
        if advance == 0 or advance > FAR_BYTES:
            return
        stream.acked += advance
    elif stream.next != NONE:
        advance = ((ack - stream.next + _HALF) & SEQ_MASK) - _HALF
        if advance < -FAR_BYTES or advance > FAR_BYTES:
            return
        stream.acked = stream.first_acked = stream.next + advance
    else:
        stream.acked = stream.first_acked = ack + _FULL
    stream.acked_ns = time_ns
    stream.acked_packet = packet
    stream.resent = 0


@device_function
def misses_end(stream: StreamRow) -> bool:
    """Return whether bytes that the other side has acknowledged are missing before it closes."""
    if stream.next == NONE or stream.acked == NONE or stream.finished:
        return False
    # One acknowledged number more may be a FIN that was not captured.
    return stream.acked - stream.next > 1


@device_function
def accepts_reset(connection: ConnectionRow, side: int, control: int, seq: int, ack: int) -> bool:
    """Return whether the receiver would accept a RST, without a hole before it."""
    if misses_end(connection.streams[0]) or misses_end(connection.streams[1]):
        return False
    own, peer = connection.streams[side], connection.streams[1 - side]
    if own.next != NONE:
        lowest = 0
        if own.acked != NONE:
            lowest = min(own.acked - own.next, 0)
        ahead = ((seq - own.next + _HALF) & SEQ_MASK) - _HALF
        return bool(lowest - 1 <= ahead <= RESET_WINDOW_BYTES)
    if control & ACK and peer.next != NONE and peer.has_isn:
        ahead = ((ack - peer.next + _HALF) & SEQ_MASK) - _HALF
        return bool(peer.first - peer.next <= ahead <= RESET_WINDOW_BYTES)
    return False


@device_function
def close_side(connection: ConnectionRow, side: int) -> bool:
    """Pass a side's FIN; return whether that ends the connection."""
    stream = connection.streams[side]
    stream.next += 1
    stream.finished = True
    if not connection.streams[1 - side].finished or connection.ended != 0:
        return False
    connection.ended = ENDED_BY_FIN
    return True
