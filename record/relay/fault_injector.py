"""Faults in live traffic: errors, delays and disconnects, in the words of `serve`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from cluster.fields.refusal import RewriteError
from dissector.errors import DissectorError
from dissector.protocol.facts import Facts, collect
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message, decode_request
from record.relay.conversation import Conversation
from record.relay.frame_splitter import SIZE_BYTES
from record.relay.requests_in_flight import ForwardedRequest
from serve.answers.client_request import ClientRequest
from serve.faults.fault import Fault, FaultKind, Faults
from serve.forms.canonical_body import TopicNames, canonical_body, response_frame

Send = Callable[[bytes], ForwardedRequest]
"""Sends a request on, with its size, and returns it as it is in flight."""


class LiveFaults:
    """
    The faults of a relay, for all its connections.

    Args:
        faults: The faults.

    Attributes:
        topics: Names of topics, learned from responses.
    """

    def __init__(self, faults: Faults) -> None:
        self.topics = TopicNames()
        self._faults = faults

    def read(self, message: Message, number: int) -> ClientRequest | None:
        """Return a request as faults see it; None if it can't be read."""
        if message.body is None or message.is_assumed:
            return None
        try:
            return ClientRequest(message, canonical_body(message, self.topics), number)
        except RewriteError:
            return None

    def take(self, request: ClientRequest) -> Fault | None:
        """Return the fault to inject into a request, or None."""
        return self._faults.take(request)


class FaultInjector:
    """
    Injects faults into the requests of one connection, which stay in their order.

    Args:
        shared: The faults.
        talk: The connection.
    """

    def __init__(self, shared: LiveFaults, talk: Conversation) -> None:
        self._shared = shared
        self._talk = talk
        self._waiting: deque[tuple[bytes, Send]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.send_answers: Callable[[], None] = lambda: None

    def learn(self, message: Message) -> None:
        """Learn names of topics from a response."""
        facts = Facts()
        if message.schema is not None and message.body is not None:
            collect(message.schema, message.api_version or 0, message.body, facts)
            self._shared.topics.known.learn(facts.names)

    def take(self, frame: bytes, send: Send) -> None:
        """Send a request on, or what a fault makes of it."""
        self._waiting.append((frame, send))
        if self._timer is None:
            self._go_on()

    def close(self) -> None:
        """Forget the requests that wait."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        while self._waiting and self._timer is None:
            frame, send = self._waiting.popleft()
            message = decode_request(frame[SIZE_BYTES:])
            request = self._shared.read(message, self._talk.number)
            fault = None if request is None else self._shared.take(request)
            if request is None or fault is None:
                send(frame)
            else:
                self._inject(fault, request, frame, send)

    def _inject(self, fault: Fault, request: ClientRequest, frame: bytes, send: Send) -> None:
        match fault.kind:
            case FaultKind.DELAY:
                self._talk.client.pause()
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(fault.delay_s, self._end_delay, frame, send)
            case FaultKind.CLOSE:
                self._waiting.clear()
                self._talk.client.close()
            case FaultKind.TRUNCATE:
                send(frame).is_cut = True
            case FaultKind.ERROR:
                self._answer(fault, request, frame, send)

    def _end_delay(self, frame: bytes, send: Send) -> None:
        self._timer = None
        send(frame)
        self._go_on()
        self._talk.client.resume()

    def _answer(self, fault: Fault, request: ClientRequest, frame: bytes, send: Send) -> None:
        """Answer with an error in place of the broker."""
        if request.api_key == PRODUCE and not request.body.acks:
            self._record(request, frame)  # it gets no response
            return
        try:
            answer = response_frame(request.message, fault.answer(request), self._shared.topics)
        except DissectorError:  # its version has no such error
            send(frame)
            return
        answered = self._record(request, frame)
        answered.answer = len(answer).to_bytes(SIZE_BYTES, "big") + answer
        self._talk.in_flight.add(answered)
        self.send_answers()

    def _record(self, request: ClientRequest, frame: bytes) -> ForwardedRequest:
        """Record a request that is not sent on."""
        number = request.message.correlation_id
        answered = ForwardedRequest(number, request.api_key, request.version)
        self._talk.record_request(frame, answered)
        return answered
