"""The direction from a broker to a client."""

from __future__ import annotations

from cluster.client.pending_request import codecs_of
from cluster.fields.advertised_addresses import advertises_nodes, replace_addresses
from dissector.errors import DissectorError
from dissector.protocol.apis import api
from dissector.protocol.headers import SASL_AUTHENTICATE
from dissector.protocol.messages import Message, decode_response
from record.packets.packet_sink import BROKER
from record.relay.conversation import Address, Conversation
from record.relay.fault_injector import FaultInjector
from record.relay.frame_splitter import SIZE_BYTES, FrameSplitter, Treatment
from record.relay.login_tokens import LOGINS
from record.relay.requests_in_flight import ForwardedRequest

_ID_BYTES = 4
_HALF = 2


class BrokerResponses:
    """
    Forwards and records what a broker sends, with the addresses of listeners for those of brokers.

    Args:
        talk: The connection.
        faults: Learns names of topics from responses; None if there is none.
    """

    def __init__(self, talk: Conversation, faults: FaultInjector | None) -> None:
        self._talk = talk
        self._faults = faults
        self._request: ForwardedRequest | None = None
        self._splitter = FrameSplitter(self, SIZE_BYTES + _ID_BYTES)
        self.feed, self.stop = self._splitter.feed, self._splitter.stop
        self.release = self._splitter.release

    @property
    def waits_for_end(self) -> bool:
        """Whether an answer of ours is next."""
        return self._talk.in_flight.begins_with_answer

    @property
    def held(self) -> int:
        """The number of bytes that wait for the end of a response."""
        return self._splitter.held

    def begin(self, head: bytes) -> Treatment:
        """Choose what is done with a response by its request."""
        number = int.from_bytes(head[SIZE_BYTES:], "big", signed=True)
        self._request = request = self._talk.in_flight.take(number)
        if request is None:
            return Treatment.PASSES
        if request.correlation_id is None or request.api_key in LOGINS:
            return Treatment.HELD if request.own is not None else Treatment.WATCHED
        if request.own is not None or request.is_cut or _may_advertise(request):
            return Treatment.HELD
        return Treatment.PASSES if self._talk.selection is None else Treatment.WATCHED

    def forward(self, data: bytes) -> None:
        """Send bytes on."""
        self._talk.client.write(data)

    def forward_and_record(self, data: bytes) -> None:
        """Send bytes on, and record them."""
        self._talk.client.write(data)
        self._talk.record(BROKER, data)

    def skip(self, size: int) -> None:
        """Leave bytes out of the recording."""
        self._talk.skip(BROKER, size)
        if self._talk.selection is not None and self._request is not None:
            self._talk.selection.drop(self._request)

    def finish(self, frame: bytes, treatment: Treatment) -> None:
        """Record a response that was sent on, or send one on that was held."""
        request = self._request
        if request is None:
            self.forward_and_record(frame)
        elif treatment is Treatment.WATCHED:
            self._record(frame, request)
        elif request.own is not None:
            if not request.own.done():
                request.own.set_result(frame[SIZE_BYTES:])
        else:
            self._record(frame, request)
            self._send(self._for_client(frame, request), request)

    def send_answers(self) -> None:
        """Send the answers of ours that are next, unless a response is still on its way."""
        if self._splitter.is_between:
            self.end_frame()

    def end_frame(self) -> None:
        """Send the answers of ours that are next."""
        while request := self._talk.in_flight.take_answered():
            self._talk.client.write(request.answer)
            self._talk.record_response(request.answer, request)

    def is_no_kafka(self) -> None:
        """Pass on all that follows, in both directions."""
        self._talk.give_up()

    def _record(self, frame: bytes, request: ForwardedRequest) -> None:
        """Record a response without the secrets of a login."""
        login = self._talk.login
        if request.correlation_id is None:
            self._talk.record(BROKER, login.blank_token(frame, from_client=False))
            return
        if request.api_key == SASL_AUTHENTICATE:
            frame = login.blank_response(frame, request.version)
        self._talk.record_response(frame, request)

    def _send(self, frame: bytes, request: ForwardedRequest) -> None:
        if request.is_cut:
            self._talk.client.write(frame[: SIZE_BYTES + (len(frame) - SIZE_BYTES) // _HALF])
            self._talk.client.close()
        else:
            self._talk.client.write(frame)

    def _for_client(self, frame: bytes, request: ForwardedRequest) -> bytes:
        """Return a response with the addresses of listeners; the same bytes if it has none."""
        if not _may_advertise(request):
            return frame
        message = decode_response(frame[SIZE_BYTES:], request.api_key, request.version)
        if message.body is None or message.schema is None:
            self._talk.counts.unread += 1
            return frame
        if self._faults is not None:
            self._faults.learn(message)
        return self._replaced(frame, message)

    def _replaced(self, frame: bytes, message: Message) -> bytes:
        version = message.api_version or 0
        assert message.schema is not None
        assert message.body is not None
        if not replace_addresses(message.schema, version, message.body, self._listener):
            return frame
        try:
            body = codecs_of(message.api_key or 0, version).response.build(message.body)
        except DissectorError:  # a field that the declaration allows in no such response
            self._talk.counts.unread += 1
            return frame
        head = frame[SIZE_BYTES : SIZE_BYTES + message.body_start]
        return (len(head) + len(body)).to_bytes(SIZE_BYTES, "big") + head + body

    def _listener(self, node: int | None, address: Address) -> Address | None:
        talk = self._talk
        return None if node is None else talk.listener_of(address, talk.local_host)


def _may_advertise(request: ForwardedRequest) -> bool:
    found = api(request.api_key)
    if found is None or request.version not in found.response.versions:
        return False
    return advertises_nodes(found.response, request.version)
