"""
Correlates one connection: recognises Kafka and its client, frames, matches responses to requests.

Rule 1: the two streams are read in the order of the capture. A stream that waits behind a gap
delays the later frames of the other one (`Chunks.barrier`), so that a response never meets its
request too early or too late.

Rule 2: a request is matched with the response of its correlation id; of several in flight with the
same id, the oldest. Raw SASL tokens have no id and are matched in order.

Rule 3: a response that was captured before its request, as in a merge of two taps, waits for it:
for `MAX_EARLY_RESPONSE_NS`, and only with an id above all requests so far, because all known
clients count upwards.

Rule 4: the first response of a connection has the id of a request. Other bytes that servers send
before Kafka, as SOCKS proxies do, would be read as the size of a frame, and hide all responses.

Rule 5: a response proves that its request arrived, even if the end of that was not captured. It is
dated by its last captured packet, never by the next request, which reveals the gap.

Rule 6: no id is invented. A stream is synchronised only at frames that pass the checks of `resync`;
all other bytes are counted as skipped.

Source: https://kafka.apache.org/protocol#protocol_network (order); KIP-43, KIP-152 (SASL tokens).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dissector.capture.columns import NEVER
from dissector.engine.tables.exchange_table import UNANSWERED
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from tests.reference.correlation import plausible_frames, resync
from tests.reference.correlation.first_response import (
    HEAD_BYTES,
    KnownIds,
    awaits_first_response,
)
from tests.reference.correlation.frame_pairing import Emit, FramePairing
from tests.reference.correlation.framer import Frame, Framer
from tests.reference.correlation.login_phase import is_kerberos
from tests.reference.correlation.open_requests import OpenRequests
from tests.reference.correlation.recognition import (
    discard_scanned,
    recognise,
    recognise_by_responses,
)

MAX_TOKEN_BYTES = 1 << 20


class _Piece(NamedTuple):
    """Bytes of a stream, or a gap."""

    data: bytes
    missing: int
    packet: int
    time_ns: int


class ConnectionCorrelator(FramePairing):
    """
    The state of one connection; see `FramePairing` too.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        doubtful_side: After the end, the side with too few responses to prove a broker: Kafka only
            if its endpoint is a broker on other connections; else None.
        start_captured: Whether the beginning of the connection was captured.
    """

    __slots__ = (
        "_delayed",
        "_expects_first_response",
        "doubtful_side",
        "speaks",
        "start_captured",
    )

    def __init__(
        self,
        connection: int,
        start_captured: bool,
        emit: Emit,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """
        Start a connection.

        Args:
            connection: Its number.
            start_captured: Whether the beginning of the connection was captured.
            emit: Called with each exchange as it ends.
            max_frame_bytes: Larger frames are skipped as a problem.
        """
        super().__init__(connection, start_captured, emit, max_frame_bytes)
        self.start_captured = start_captured
        self.speaks = ""
        self.doubtful_side: int | None = None
        self._delayed: deque[_Piece] = deque()
        self._expects_first_response = start_captured

    def restore(self, client: int, highest_id: int, now_ns: int, requests: OpenRequests) -> None:
        """Continue a Kafka connection of the fast path; the caller restores the streams."""
        self.speaks, self.client = "kafka", client
        self._highest_id, self._now_ns, self._requests = highest_id, now_ns, requests
        self.streams[client].validate = self.validate_request
        self.streams[1 - client].validate = self.validate_response
        responses = self.streams[1 - client]
        self._expects_first_response &= responses.base == 0 and len(responses.buffer) < HEAD_BYTES

    def continue_unrecognised(self, now_ns: int) -> None:
        """Continue a connection that is not recognised yet; the caller restores the streams."""
        self._now_ns = now_ns

    @property
    def highest_id(self) -> int:
        """The highest correlation id of a request so far."""
        return self._highest_id

    @property
    def now_ns(self) -> int:
        """Time of the newest packet."""
        return self._now_ns

    @property
    def open_requests(self) -> OpenRequests:
        """The requests in flight."""
        return self._requests

    @property
    def needs_slow_path(self) -> bool:
        """Whether there are SASL tokens or delayed bytes, which the fast path lacks."""
        in_login = self.login.expects_tokens or self.login.is_open
        return in_login or self._requests.has_tokens or bool(self._delayed) or self._is_open_first

    def add_data(self, side: int, data: bytes, packet: int, time_ns: int) -> None:
        """Add the next bytes of one side."""
        self._add(side, _Piece(data, 0, packet, time_ns))

    def add_gap(self, side: int, length: int, packet: int, time_ns: int) -> None:
        """Record bytes of one side that were not captured."""
        self._add(side, _Piece(b"", length, packet, time_ns))

    def _add(self, side: int, piece: _Piece) -> None:
        if self.speaks in ("", "kafka"):
            self._now_ns = max(self._now_ns, piece.time_ns)
            if (piece.data or piece.missing) and self._must_wait(side, piece.packet):
                self._delayed.append(piece)
            else:
                self._pass(side, piece)
            self._advance()
            self._add_delayed()

    def _pass(self, side: int, piece: _Piece) -> None:
        """Add a piece to its stream."""
        data, missing, packet, time_ns = piece
        if missing:
            within_packet = self.streams[side].last_packet == packet
            self._advance(resync.StreamBreak(side, within_packet, missing))
            self.streams[side].add_gap(missing, packet, time_ns)
            if side != self.client:
                self.lost_before = packet
        elif data:
            self.streams[side].add_data(data, packet, time_ns)

    def _must_wait(self, side: int, packet: int) -> bool:
        """
        Return whether bytes of the broker must wait for requests captured before them.

        A gap ends the search for a frame, so the bytes before it must have met all requests.
        """
        is_broker = self.client not in (None, side)
        return is_broker and (bool(self._delayed) or self._is_undecided(side, packet))

    def _is_undecided(self, side: int, packet: int) -> bool:
        """Return whether the search for a frame before these bytes may lack requests."""
        stream = self.streams[side]
        return packet >= self.barriers[1 - side] and bool(stream.buffer) and not stream.in_sync

    def _add_delayed(self) -> None:
        """Add the bytes of the broker that need wait no longer."""
        side = 1 - (self.client or 0)
        while self._delayed and not self._is_undecided(side, self._delayed[0].packet):
            self._pass(side, self._delayed.popleft())
            self._advance()

    def end(self) -> None:
        """End the connection, or the capture: emit all exchanges that are still open."""
        self.barriers = (NEVER, NEVER)
        self._add_delayed()
        self._now_ns = NEVER
        for side in (0, 1):
            is_whole = self.start_captured and self.streams[side].base == 0
            self._advance(resync.StreamBreak(side, is_whole))
        if self.speaks == "":
            recognise_by_responses(self)
        if self.doubtful_side is None:
            self._conclude()

    def resolve_doubt(self, is_broker: bool) -> None:
        """Decide whether an ended, doubtful connection leads to a broker."""
        assert self.doubtful_side is not None
        stream = self.streams[self.doubtful_side]
        self.doubtful_side, self.speaks = None, ""
        if is_broker and resync.sync_without_requests(stream, self.validate_response, 1):
            self.set_kafka(1 - stream.side)
        else:
            self.set_not_kafka("other")
        self._conclude()

    def _conclude(self) -> None:
        """Emit requests in flight and frames that still wait."""
        if self.client is not None:
            responses = self.streams[1 - self.client]
            if not responses.in_sync:
                resync.sync_without_requests(responses, self.validate_response)
            self._advance()
        for stream in self.streams:
            frame = stream.finish() if self.client is not None else None
            if frame is not None:
                self._queue_frame(frame)
            if not stream.in_sync:
                stream.skip(len(stream.buffer))
        self._match_frames()
        self._now_ns = 0
        for request in self._requests.pop_all():
            self._emit_request(UNANSWERED, request)

    @property
    def low_watermark(self) -> int:
        """The first packet with a frame that waits for a response or for its turn."""
        if self.speaks not in ("", "kafka"):
            return NEVER
        waiting = [frames[0].packet for frames in self.ready_frames if frames]
        waiting += [each.packet for each in self._delayed]
        return min([*waiting, self._requests.first_packet, *self.barriers])

    def assume_kafka(self, client: int) -> None:
        """Treat the connection as Kafka with this client, as given by the user's options."""
        self.set_kafka(client)
        if self.start_captured:
            self.streams[client].sync_at(0, self.validate_request)

    def mark_other(self) -> None:
        """Leave this connection alone."""
        self.set_not_kafka("other")

    def _advance(self, stream_break: resync.StreamBreak | None = None) -> None:
        """Frame and match all available bytes; no bytes follow at `stream_break`."""
        if self.client is None:
            recognise(self, stream_break)
        if self.client is None:
            return
        requests, responses = self.streams[self.client], self.streams[1 - self.client]
        progressed = True
        while progressed:
            if not requests.in_sync:
                resync.sync_at_request(requests, self.validate_request, stream_break)
            base, in_sync = requests.base, requests.in_sync
            self._collect_frames(requests)
            self._collect_frames(responses)
            self._match_frames()
            # If sync was lost after some frames, more frames may follow immediately.
            progressed = in_sync and not requests.in_sync and requests.base > base
            if not responses.in_sync:
                self._search_proof(responses)
            if not responses.in_sync and len(self._requests):
                barrier = self.barriers[self.client]
                progressed |= resync.sync_at_response(
                    responses, self.validate_response, self._requests, stream_break, barrier
                )
        for stream in (requests, responses):
            if not stream.in_sync:
                searched = stream is requests or len(self._requests) > 0
                discard_scanned(self, stream, searched)

    def _collect_frames(self, stream: Framer) -> None:
        """Queue the complete frames of a stream."""
        if self._expects_first_response and stream.side != self.client:
            queued = self.ready_frames[1 - stream.side]
            has_tokens = self.login.is_open or self._requests.tokens_seen
            known = KnownIds(self._requests, queued, self._highest_id, self._now_ns)
            self._expects_first_response = not has_tokens and awaits_first_response(stream, known)
            if self._is_open_first:
                return
        while (frame := stream.next_frame()) is not None:
            self._queue_frame(frame)

    @property
    def _is_open_first(self) -> bool:
        """Whether the first response waits for the request that has its id."""
        if self.client is None or not self._expects_first_response:
            return False
        responses = self.streams[1 - self.client]
        return responses.in_sync and len(responses.buffer) >= HEAD_BYTES

    def _queue_frame(self, frame: Frame) -> None:
        if frame.side == self.client:
            frame = self.login.marked(frame)
        self.ready_frames[frame.side].append(frame)

    def set_kafka(self, client: int) -> None:
        """Treat the connection as Kafka with this client."""
        self.speaks = "kafka"
        self.client = client
        responses = self.streams[1 - client]
        responses.scanned = responses.base
        if self.start_captured and responses.base == 0 and not responses.in_sync:
            responses.sync_at(0, self.validate_response)

    def set_not_kafka(self, protocol: str) -> None:
        """Treat the connection as another protocol, and skip its bytes."""
        self.speaks = protocol
        for stream in self.streams:
            stream.skip(len(stream.buffer))

    def validate_request(self, buffer: bytearray, size: int) -> bool:
        """Return whether a frame of this size at the beginning of a buffer can be a request."""
        if self.login.expects_tokens and 0 <= size <= MAX_TOKEN_BYTES:
            return True
        if self.start_captured and self.streams[self.client or 0].base == 0 and is_kerberos(buffer):
            self.login.begin()
            return True
        if size < 8:
            return False
        has_header = len(buffer) >= plausible_frames.HEADER_BYTES
        return not has_header or plausible_frames.is_plausible_request(buffer, 0)

    def validate_response(self, buffer: bytearray, size: int) -> bool:
        """Return whether a frame of this size at the beginning of a buffer can be a response."""
        if size > self.streams[0].limit:
            return (
                len(buffer) < 8 or int.from_bytes(buffer[4:8], "big", signed=True) in self._requests
            )
        return size >= (0 if self._requests.tokens_seen else 4)
