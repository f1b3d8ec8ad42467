"""
Pairs the complete frames of a connection, in the order of the capture: the objects' matching.

The rules are in `ConnectionCorrelator`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from dissector.capture.columns import NEVER
from dissector.engine.correlation.pairing_kernel import MAX_DELAYED_NS, MAX_EARLY_RESPONSE_NS
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN, UNANSWERED
from dissector.protocol.expected_response import expects_response
from tests.reference.correlation.exchange_rows import ExchangeRow
from tests.reference.correlation.first_response import HEAD_BYTES
from tests.reference.correlation.framer import Frame, Framer, PacketEnd
from tests.reference.correlation.login_phase import LoginPhase
from tests.reference.correlation.open_requests import OpenRequest, OpenRequests

_TWO_NUMBERS = struct.Struct(">ii")

Emit = Callable[[ExchangeRow], None]


class FramePairing:
    """
    The frames and requests of one connection.

    Attributes:
        connection: Its number.
        client: The side that sends requests; None while that is open.
        streams: The two directions.
        barriers: Read limit of each side, as `Chunks.barrier`; set before bytes are added.
        lost_before: Responses to requests before this packet may be in a gap.
        login: The phase of the login by raw SASL tokens.
        ready_frames: The complete frames of each side that wait for their turn.
        rtt_ns: As in `Chunks`, of the newest row of each side; -1: unknown.
        resent_ns: Likewise; NONE: never.
    """

    __slots__ = (
        "_emit",
        "_highest_id",
        "_now_ns",
        "_requests",
        "barriers",
        "client",
        "connection",
        "login",
        "lost_before",
        "ready_frames",
        "resent_ns",
        "rtt_ns",
        "streams",
    )

    def __init__(
        self, connection: int, start_captured: bool, emit: Emit, max_frame_bytes: int
    ) -> None:
        """Start a connection; the arguments are those of `ConnectionCorrelator`."""
        self.connection = connection
        self.client: int | None = None
        self.streams = (Framer(0, max_frame_bytes), Framer(1, max_frame_bytes))
        self._emit = emit
        self.barriers = (NEVER, NEVER)
        self.lost_before = 0
        self._requests = OpenRequests()
        self.ready_frames: tuple[deque[Frame], deque[Frame]] = (deque(), deque())
        self.login = LoginPhase()
        self.rtt_ns, self.resent_ns = [-1, -1], [NONE, NONE]
        # Without the beginning no response counts as early before the first request.
        self._highest_id = -1 if start_captured else NEVER
        self._now_ns = 0

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
        if not frame.token and not expects_response(frame.data):
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
        if len(stream.buffer) - at < HEAD_BYTES or not stream.starts_packet(at):
            return
        first = stream.packet_end_at(at + HEAD_BYTES)
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
        row = ExchangeRow(self.connection, status, frame.side, frame, response, is_token)
        if response is not None:
            row = row._replace(server_ns=self._time_of_server(frame, response))
        self._emit(row)

    def _time_of_server(self, request: Frame, response: Frame) -> int:
        """Return how long the broker had a request; NONE where the capture does not show it."""
        rtt_ns, resent_ns = self.rtt_ns[response.side], self.resent_ns[response.side]
        if rtt_ns < 0 or response.time_ns < request.time_ns or request.packet >= response.packet:
            return NONE
        arrived_ns = request.time_ns
        if request.time_ns < resent_ns <= response.begun_ns:
            if resent_ns < request.time_ns + MAX_DELAYED_NS:
                return NONE  # perhaps only the acknowledgement was late
            arrived_ns = resent_ns
        spent_ns = max(0, response.begun_ns - arrived_ns - rtt_ns)
        return min(spent_ns, response.time_ns - request.time_ns)
