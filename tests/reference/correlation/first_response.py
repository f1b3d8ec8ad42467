"""
Decides whether the stream of a broker begins with a response: its id is that of a request.

Other bytes that servers send before Kafka, as SOCKS proxies do, are no response.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from dissector.engine.correlation.entries import MAX_SUPPRESSED
from dissector.engine.correlation.pairing_kernel import MAX_EARLY_RESPONSE_NS
from tests.reference.correlation.framer import Frame, Framer
from tests.reference.correlation.open_requests import OpenRequests

HEAD_BYTES = 8
"""Size and correlation id of a response."""

MAX_EARLY_IDS = 100
"""How far above all requests the id of a first response may be, if it was captured before them."""


class KnownIds(NamedTuple):
    """
    What is known of the correlation ids of a connection.

    Attributes:
        requests: The requests in flight.
        queued: Requests that wait for their turn.
        highest_id: The highest id so far; -1 without a request.
        now_ns: Time of the newest packet.
    """

    requests: OpenRequests
    queued: Collection[Frame]
    highest_id: int
    now_ns: int

    def may_have_asked(self, correlation_id: int) -> bool:
        """Return whether a request so far has an id, or may have had it."""
        suppressed = self.requests.suppressed
        if correlation_id in self.requests or correlation_id in suppressed:
            return True
        if suppressed.count > MAX_SUPPRESSED and 0 <= correlation_id <= self.highest_id:
            return True  # it may be forgotten
        head = correlation_id.to_bytes(4, "big", signed=True)
        return any(frame.data[4:8] == head for frame in self.queued)


def awaits_first_response(stream: Framer, known: KnownIds) -> bool:
    """Return whether the first response is open; a stream that begins otherwise loses sync."""
    if not stream.in_sync or stream.base:
        return False
    if len(stream.buffer) < HEAD_BYTES:
        return True
    correlation_id = int.from_bytes(stream.buffer[4:HEAD_BYTES], "big", signed=True)
    asked = known.may_have_asked(correlation_id)
    if not asked and known.highest_id < correlation_id <= known.highest_id + MAX_EARLY_IDS:
        if known.now_ns - stream.first_time_ns < MAX_EARLY_RESPONSE_NS:
            return True
        asked = known.highest_id < 0  # without any request it can't be told
    if not asked:
        stream.in_sync = False
        stream.scanned = stream.base
    return False
