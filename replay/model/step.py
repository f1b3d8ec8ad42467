"""Captured exchanges, and the steps that replay them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.apis import api_name
from dissector.protocol.login_secrets import NOTHING_KNOWN, KnownSecrets
from dissector.protocol.messages import Message, decode_request, decode_response


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


@dataclass(slots=True)
class Step:
    """
    A captured request at its place in a plan.

    Attributes:
        number: From 0, in the order of processing by the brokers: see `plan.service_order`.
        captured: The request and its response.
        after: Numbers of the steps that must have responses before this one is sent.
        left_out: Reason why it is not sent; empty if it is.
        is_before_rebalance: Whether its response reports no error, and the member's next one a
            rebalance of the group.
        is_before_assignment: Whether the member gets partitions only in a later response.
        missing_prerequisites: Omitted changes that its response depends on, by the names of
            `exclusion_policy.changes`.
        overlaps: Resources that changed during the request, as in `concurrent_changes.Overlaps`.
    """

    number: int
    captured: CapturedExchange
    after: tuple[int, ...] = ()
    left_out: str = ""
    is_before_rebalance: bool = False
    is_before_assignment: bool = False
    missing_prerequisites: frozenset[str] = frozenset()
    overlaps: Mapping[tuple[Any, ...], bool] = field(default_factory=dict)
