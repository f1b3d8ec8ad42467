"""Recognises the protocol of a connection, and the side of the client."""

from __future__ import annotations

from typing import Protocol

from dissector.capture.columns import NEVER
from dissector.engine.correlation import state_tables as limits
from dissector.engine.correlation.recognition_kernel import MAX_FIRST_REQUEST_OFFSET
from dissector.engine.correlation.unframed_bytes import MAX_UNASKED_BYTES
from tests.reference.correlation import plausible_frames, resync
from tests.reference.correlation.framer import Framer
from tests.reference.correlation.login_phase import is_kerberos

DOUBTFUL = "doubtful"
"""The protocol of a connection that can only be identified at the end of the capture."""


class Unrecognised(Protocol):
    """
    A connection with an unrecognised protocol; see `ConnectionCorrelator`.

    Attributes:
        speaks: The protocol; empty while that is open.
        client: The side that sends requests; None while that is open.
        doubtful_side: The side with too few responses to prove a broker.
        start_captured: Whether the beginning of the connection was captured.
        barriers: As in `Chunks`, of the newest one.
        streams: The two directions.
    """

    speaks: str
    client: int | None
    doubtful_side: int | None
    start_captured: bool
    barriers: tuple[int, int]
    streams: tuple[Framer, Framer]

    def set_kafka(self, client: int) -> None:
        """Treat the connection as Kafka with this client."""

    def set_not_kafka(self, protocol: str) -> None:
        """Treat the connection as another protocol, and skip its bytes."""

    def validate_request(self, buffer: bytearray, size: int) -> bool:
        """Return whether a frame of this size at the beginning of a buffer can be a request."""

    def validate_response(self, buffer: bytearray, size: int) -> bool:
        """Return whether a frame of this size at the beginning of a buffer can be a response."""


def recognise(correlator: Unrecognised, stream_break: resync.StreamBreak | None) -> None:
    """Determine the protocol, and the side of the client."""
    for stream in correlator.streams:
        at_start = stream.base == 0 and stream.at_packet_start and len(stream.buffer) >= 5
        if at_start and plausible_frames.is_tls(stream.buffer):
            correlator.set_not_kafka("tls")
            return
    first = correlator.streams[0]
    if correlator.start_captured and first.base == 0 and is_kerberos(first.buffer):
        correlator.set_kafka(0)
        first.sync_at(0, correlator.validate_request)
        return
    # The side that opened the connection sends first and is the client.
    for stream in correlator.streams[: 1 if correlator.start_captured else 2]:
        if resync.sync_at_request(stream, correlator.validate_request, stream_break):
            correlator.set_kafka(stream.side)
            return
    ends = correlator.streams[0].scanned, correlator.streams[1].end_of_buffer
    if correlator.start_captured and (
        ends[0] > MAX_FIRST_REQUEST_OFFSET
        or (ends[1] > MAX_FIRST_REQUEST_OFFSET and is_unasked(correlator))
    ):
        correlator.set_not_kafka("other")
        return
    for stream in correlator.streams:
        discard_scanned(
            correlator, stream, searched=not correlator.start_captured or stream.side == 0
        )
        if correlator.client is not None:
            return


def is_unasked(correlator: Unrecognised) -> bool:
    """Return whether the client sent bytes, and all of them are searched and hold no request."""
    asks, end = correlator.streams[0], correlator.streams[0].end_of_buffer
    if not correlator.start_captured or asks.missing or correlator.barriers[0] != NEVER:
        return False
    head = plausible_frames.HEADER_BYTES
    return end >= head and asks.scanned > end - head


def recognise_by_responses(correlator: Unrecognised) -> None:
    """Recognise a broker by its responses alone, if the client's side was not captured."""
    for stream in correlator.streams:
        if resync.sync_without_requests(stream, correlator.validate_response):
            correlator.set_kafka(1 - stream.side)
            return
    runs = [resync.find_response_run(stream, 1) is not None for stream in correlator.streams]
    if sum(runs) == 1:
        correlator.doubtful_side, correlator.speaks = runs.index(True), DOUBTFUL
    elif any(stream.end for stream in correlator.streams):
        correlator.set_not_kafka("other")


def discard_scanned(correlator: Unrecognised, stream: Framer, searched: bool) -> None:
    """
    Skip bytes that were searched in vain, beyond those retained for a second search.

    Args:
        correlator: Of the connection.
        stream: Out of sync.
        searched: Whether it is searched for frames; else its bytes are counted.
    """
    if not searched and correlator.client is None and is_unasked(correlator):
        retained = min(MAX_UNASKED_BYTES, limits.MIN_RETAINED_BYTES)
        if len(stream.buffer) > 2 * retained:
            if stream.base == 0:
                stream.skip(retained)
            stream.skip(len(stream.buffer) - retained)
        return
    discardable = stream.scanned - stream.base if searched else len(stream.buffer)
    if discardable <= 2 * limits.MIN_RETAINED_BYTES:
        return
    may_lack_requests = (
        not correlator.start_captured
        if correlator.client is None
        else stream.side != correlator.client
    )
    if may_lack_requests and resync.sync_without_requests(stream, correlator.validate_response):
        if correlator.client is None:
            correlator.set_kafka(1 - stream.side)
        return
    stream.skip(discardable - limits.MIN_RETAINED_BYTES)
