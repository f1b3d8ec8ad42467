"""The direction from a client to a broker."""

from __future__ import annotations

import struct
from collections.abc import Callable

from dissector.protocol.headers import SASL_AUTHENTICATE, SASL_HANDSHAKE
from record.packets.packet_sink import CLIENT
from record.relay.conversation import Conversation
from record.relay.fault_injector import FaultInjector
from record.relay.frame_splitter import SIZE_BYTES, FrameSplitter, Treatment
from record.relay.login_tokens import LOGINS, is_kerberos, is_request
from record.relay.requests_in_flight import ForwardedRequest

_HEADER = struct.Struct(">hhi")


class ClientRequests:
    """
    Forwards and records what a client sends.

    Args:
        talk: The connection.
        faults: Changes what happens to requests; None for nothing.

    """

    def __init__(self, talk: Conversation, faults: FaultInjector | None) -> None:
        self._talk = talk
        self._faults = faults
        self._is_first = True
        self._watched = ForwardedRequest(None)
        self._at_end: Callable[[], None] | None = None
        self._splitter = FrameSplitter(self, SIZE_BYTES + _HEADER.size)
        self.feed, self.stop = self._splitter.feed, self._splitter.stop
        self.release = self._splitter.release

    @property
    def held(self) -> int:
        """The number of bytes that wait for the end of a request."""
        return self._splitter.held

    @property
    def waits_for_end(self) -> bool:
        """Whether something waits for the end of a request."""
        return self._at_end is not None

    def at_end(self, start: Callable[[], None]) -> None:
        """Call a function once no request is on its way in part."""
        self._at_end = start
        if self._splitter.is_between:
            self.end_frame()

    def begin(self, head: bytes) -> Treatment:
        """Choose what is done with a frame by its header."""
        talk = self._talk
        if not is_request(head):
            if talk.login.sends_tokens or (self._is_first and is_kerberos(head)):
                talk.login.sends_tokens = True
                self._watched = ForwardedRequest(None)
                talk.in_flight.add(self._watched)
                return Treatment.WATCHED
            if self._is_first:
                self.is_no_kafka()
                return Treatment.PASSES
        self._is_first = talk.login.sends_tokens = False
        talk.counts.requests += 1
        if self._faults is not None:
            return Treatment.HELD
        return self._expect(head)

    def forward(self, data: bytes) -> None:
        """Send bytes on."""
        self._talk.send_to_broker(data)

    def forward_and_record(self, data: bytes) -> None:
        """Send bytes on, and record them."""
        self._talk.send_to_broker(data)
        self._talk.record(CLIENT, data)

    def skip(self, size: int) -> None:
        """Leave bytes out of the recording."""
        self._talk.skip(CLIENT, size)

    def finish(self, frame: bytes, treatment: Treatment) -> None:
        """Record a request that was sent on, or give one to the faults."""
        if treatment is Treatment.WATCHED:
            self._record(frame, self._watched)
        elif self._faults is not None:
            self._faults.take(frame, self._send)

    def end_frame(self) -> None:
        """Start what waits for the end of a request."""
        start, self._at_end = self._at_end, None
        if start is not None:
            start()

    def is_no_kafka(self) -> None:
        """Pass on all that follows, in both directions."""
        self._talk.give_up()

    def _expect(self, head: bytes) -> Treatment:
        """Expect the response to a request; return what is done with the request."""
        if len(head) < SIZE_BYTES + _HEADER.size:
            return Treatment.PASSES
        key, version, number = _HEADER.unpack_from(head, SIZE_BYTES)
        self._watched = ForwardedRequest(number, key, version)
        self._talk.in_flight.add(self._watched)
        is_watched = key in LOGINS or self._talk.selection is not None
        return Treatment.WATCHED if is_watched else Treatment.PASSES

    def _send(self, frame: bytes) -> ForwardedRequest:
        """Send a request on that the faults have let through; return it, as it is in flight."""
        key, version, number = _HEADER.unpack_from(frame, SIZE_BYTES)
        request = ForwardedRequest(number, key, version)
        self._talk.in_flight.add(request)
        self._talk.send_to_broker(frame)
        self._record(frame, request)
        return request

    def _record(self, frame: bytes, request: ForwardedRequest) -> None:
        login = self._talk.login
        if request.correlation_id is None:
            self._talk.record(CLIENT, login.blank_token(frame, from_client=True))
            return
        if request.api_key == SASL_HANDSHAKE:
            login.note_handshake(frame)
        elif request.api_key == SASL_AUTHENTICATE:
            frame = login.blank_request(frame)
        self._talk.record_request(frame, request)
