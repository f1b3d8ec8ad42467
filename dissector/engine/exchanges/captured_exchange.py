"""A captured request and its response, with their own bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.apis import api_name
from dissector.protocol.login_secrets import NOTHING_KNOWN, KnownSecrets
from dissector.protocol.messages import Message, decode_request, decode_response

UNKNOWN = -1
"""The API key or version of a request without one."""


@dataclass(slots=True)
class CapturedExchange:
    """
    A captured request and its response.

    Attributes:
        connection: Number of the TCP connection in the capture.
        client: `address:port` of the client.
        broker: `address:port` of the broker; only shown, never connected to.
        api_key: API key of the request.
        api_version: Version of the request.
        correlation_id: Correlation id of the request.
        client_id: Client id of the request.
        request: The frame, without its size field.
        response: The frame of the response; None if it was not captured, or none is expected.
        expects_response: Whether a response is expected; False for Produce with acks = 0.
        request_time_ns: Completion time of the request.
        response_time_ns: Completion time of the response.
        request_packet: The packet that completed the request, from 1; None if unknown.
        known_secrets: The secrets that logins on its connection showed.
    """

    connection: int
    client: str
    broker: str
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request: bytes
    response: bytes | None
    expects_response: bool
    request_time_ns: int
    response_time_ns: int | None
    request_packet: int | None = None
    known_secrets: KnownSecrets = field(default=NOTHING_KNOWN, repr=False, compare=False)
    _response_message: Message | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def api(self) -> str:
        """The name of the API."""
        return api_name(self.api_key)

    def request_message(self) -> Message:
        """Decode the request, each time again, because callers may modify its body."""
        return decode_request(self.request)

    def response_message(self) -> Message | None:
        """Decode the response, once, so its body must not be modified; None without a response."""
        if self.response is None:
            return None
        if self._response_message is None:
            self._response_message = decode_response(self.response, self.api_key, self.api_version)
        return self._response_message


def captured_exchange(exchange: Exchange, request: Message) -> CapturedExchange:
    """Return an exchange with its own bytes."""
    response = exchange.response
    assert exchange.request_time_ns is not None
    return CapturedExchange(
        connection=exchange.connection,
        client=exchange.client,
        broker=exchange.broker,
        api_key=UNKNOWN if exchange.api_key is None else exchange.api_key,
        api_version=UNKNOWN if exchange.api_version is None else exchange.api_version,
        correlation_id=exchange.correlation_id or 0,
        client_id=exchange.client_id,
        request=request.frame,
        response=response.frame if response is not None else None,
        expects_response=exchange.status != "no_response",
        request_time_ns=exchange.request_time_ns,
        response_time_ns=exchange.response_time_ns if response is not None else None,
        request_packet=exchange.request_packet,
        known_secrets=exchange.known_secrets,
    )
