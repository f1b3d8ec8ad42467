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

import struct
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths import frame_checks
from dissector.engine.correlation.both_paths.correlation_limits import (
    MAX_EARLY_RESPONSE_NS,
    MAX_FRAME_BYTES,
    MAX_SUPPRESSED,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import is_response_due
from dissector.engine.correlation.objects import resync
from dissector.engine.correlation.objects.exchange_rows import ExchangeRow
from dissector.engine.correlation.objects.framer import Frame, Framer, PacketEnd
from dissector.engine.correlation.objects.login_phase import LoginPhase, is_kerberos
from dissector.engine.correlation.objects.open_requests import OpenRequest, OpenRequests
from dissector.engine.correlation.objects.recognition import (
    discard_scanned,
    recognise,
    recognise_by_responses,
)
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, ORPHAN, UNANSWERED

MAX_TOKEN_BYTES = 1 << 20

MAX_EARLY_IDS = 100
"""How far above all requests the id of a first response may be, if it was captured before them."""

_TWO_NUMBERS = struct.Struct(">ii")
_HEAD_BYTES = 8
"""Size and correlation id of a response."""

Emit = Callable[[ExchangeRow], None]


class _Piece(NamedTuple):
    """Bytes of a stream, or a gap."""

    data: bytes
    missing: int
    packet: int
    time_ns: int


class ConnectionCorrelator:
    """
    The state of one connection.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        client: The side that sends requests; None while that is open.
        doubtful_side: After the end, the side with too few responses to prove a broker: Kafka only
            if its endpoint is a broker on other connections; else None.
        start_captured: Whether the beginning of the connection was captured.
        streams: The two directions.
        barriers: Read limit of each side, as `Chunks.barrier`; set before bytes are added.
        lost_before: Responses to requests before this packet may be in a gap.
        login: The phase of the login by raw SASL tokens.
        ready_frames: The complete frames of each side that wait for their turn.
    """

    __slots__ = (
        "_delayed",
        "_emit",
        "_expects_first_response",
        "_highest_id",
        "_now_ns",
        "_requests",
        "barriers",
        "client",
        "connection",
        "doubtful_side",
        "login",
        "lost_before",
        "ready_frames",
        "speaks",
        "start_captured",
        "streams",
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
        self.connection = connection
        self.start_captured = start_captured
        self.speaks = ""
        self.client: int | None = None
        self.doubtful_side: int | None = None
        self.streams = (Framer(0, max_frame_bytes), Framer(1, max_frame_bytes))
        self._emit = emit
        self.barriers = (NEVER, NEVER)
        self.lost_before = 0
        self._requests = OpenRequests()
        self.ready_frames: tuple[deque[Frame], deque[Frame]] = (deque(), deque())
        self._delayed: deque[_Piece] = deque()
        self.login = LoginPhase()
        # Without the beginning no response counts as early before the first request.
        self._highest_id = -1 if start_captured else NEVER
        self._now_ns = 0
        self._expects_first_response = start_captured

    def restore(self, client: int, highest_id: int, now_ns: int, requests: OpenRequests) -> None:
        """Continue a Kafka connection of the fast path; the caller restores the streams."""
        self.speaks, self.client = "kafka", client
        self._highest_id, self._now_ns, self._requests = highest_id, now_ns, requests
        self.streams[client].validate = self.validate_request
        self.streams[1 - client].validate = self.validate_response
        responses = self.streams[1 - client]
        self._expects_first_response &= responses.base == 0 and len(responses.buffer) < _HEAD_BYTES

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
            self._check_first_response(stream)
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
        return responses.in_sync and len(responses.buffer) >= _HEAD_BYTES

    def _check_first_response(self, stream: Framer) -> None:
        """Decide whether the stream of the broker begins with a response; see rule 4."""
        if not stream.in_sync or stream.base or self.login.is_open or self._requests.tokens_seen:
            self._expects_first_response = False
            return
        if len(stream.buffer) < _HEAD_BYTES:
            return
        correlation_id = int.from_bytes(stream.buffer[4:8], "big", signed=True)
        asked = self._is_asked(correlation_id)
        may_be_early = self._highest_id < correlation_id <= self._highest_id + MAX_EARLY_IDS
        if may_be_early and not asked:
            if self._now_ns - stream.first_time_ns < MAX_EARLY_RESPONSE_NS:
                return
            asked = self._highest_id < 0  # without any request it can't be told
        self._expects_first_response = False
        if not asked:
            stream.in_sync = False
            stream.scanned = stream.base

    def _is_asked(self, correlation_id: int) -> bool:
        """Return whether a request so far has a correlation id."""
        suppressed = self._requests.suppressed
        if correlation_id in self._requests or correlation_id in suppressed:
            return True
        if suppressed.count > MAX_SUPPRESSED and 0 <= correlation_id <= self._highest_id:
            return True  # it may be forgotten
        queued = self.ready_frames[self.client or 0]
        head = correlation_id.to_bytes(4, "big", signed=True)
        return any(frame.data[4:8] == head for frame in queued)

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
        has_header = len(buffer) >= frame_checks.HEADER_BYTES
        return not has_header or frame_checks.is_plausible_request(buffer, 0)

    def validate_response(self, buffer: bytearray, size: int) -> bool:
        """Return whether a frame of this size at the beginning of a buffer can be a response."""
        if size > self.streams[0].limit:
            return (
                len(buffer) < 8 or int.from_bytes(buffer[4:8], "big", signed=True) in self._requests
            )
        return size >= (0 if self._requests.tokens_seen else 4)

    def _match_frames(self) -> None:
        """Process the ready frames of both sides in the order of the capture."""
        if self.client is None:
            return
        ready = self.ready_frames
        while ready[0] or ready[1]:
            side = (
                0 if not ready[1] or (ready[0] and ready[0][0].packet < ready[1][0].packet) else 1
            )
            if side != self.client and self._is_early(ready[side][0]):
                side = self.client
                if not ready[side]:
                    return
            if ready[side][0].packet >= self.barriers[1 - side]:
                return
            frame = ready[side].popleft()
            if side == self.client:
                self._handle_request(frame)
            else:
                self._handle_response(frame)

    def _is_early(self, frame: Frame) -> bool:
        """Return whether a response may have been captured before its request."""
        if len(frame.data) < 4 or self._now_ns - frame.time_ns >= MAX_EARLY_RESPONSE_NS:
            return False
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        return self._highest_id < correlation_id and not self._requests.has_tokens

    def _handle_request(self, frame: Frame) -> None:
        if not frame.token and len(frame.data) >= 8:
            newest = int.from_bytes(frame.data[4:8], "big", signed=True)
            self._highest_id = (
                newest if self._highest_id == NEVER else max(self._highest_id, newest)
            )
        if not frame.token and not is_response_due(frame.data):
            self._requests.suppress(frame)
            is_token = self.login.may_be_token(frame)
            self._emit(ExchangeRow(self.connection, NO_RESPONSE, frame.side, frame, None, is_token))
            return
        for dropped in self._requests.add(frame):
            self._emit_request(UNANSWERED, dropped)

    def _prove_unfinished(self, correlation_id: int, proof: PacketEnd) -> None:
        """Take the unfinished request for arrived, if it has the id of a response."""
        requests = self.streams[self.client or 0]
        if requests.unfinished_id != correlation_id or correlation_id in self._requests:
            return
        frame = requests.finish()
        if frame is not None:
            if frame.packet > proof.packet:
                frame = frame._replace(packet=proof.packet, time_ns=proof.time_ns)
            self._handle_request(self.login.marked(frame._replace(broken_off=False)))

    def _search_proof(self, stream: Framer) -> None:
        """Look for a response to the unfinished request where the search for frames is."""
        at, barrier = stream.scanned - stream.base, self.barriers[self.client or 0]
        if len(stream.buffer) - at < _HEAD_BYTES or not stream.starts_packet(at):
            return
        first = stream.packet_end_at(at + _HEAD_BYTES)
        size, correlation_id = _TWO_NUMBERS.unpack_from(stream.buffer, at)
        if size >= 4 and stream.ends_packet(at + 4 + size) and first.packet < barrier:
            self._prove_unfinished(correlation_id, first)

    def _handle_response(self, frame: Frame) -> None:
        if len(frame.data) >= 4:
            correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
            self._prove_unfinished(correlation_id, PacketEnd(0, frame.packet, frame.time_ns))
        request = self._requests.pop_match(frame)
        if request is None:
            row = ExchangeRow(self.connection, ORPHAN, 1 - frame.side, None, frame)
            self._emit(row._replace(answers_acks_0=self._requests.is_suppressed(frame)))
        else:
            for lost in self._requests.pop_lost(request, self.lost_before):
                is_last_token = lost.frame.token and lost.frame.packet >= self.lost_before
                self._emit_request(NO_RESPONSE if is_last_token else UNANSWERED, lost)
            self._emit_request(ANSWERED, request, frame)

    def _emit_request(
        self, status: int, request: OpenRequest, response: Frame | None = None
    ) -> None:
        frame = request.frame
        if response is not None and frame.packet > response.packet and len(frame.data) < frame.size:
            frame = frame._replace(packet=response.packet, time_ns=response.time_ns)
        self.login.answer(frame, response)
        is_token = self.login.may_be_token(frame)
        self._emit(ExchangeRow(self.connection, status, frame.side, frame, response, is_token))
