"""What is to be replayed: captured requests, with the answers that they had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.apis import api_name
from dissector.protocol.messages import Message, decode_request, decode_response


@dataclass(slots=True)
class CapturedExchange:
    """
    One request of a capture and what it was answered.

    Attributes:
        connection: Number of the TCP connection in the capture.
        client: `address:port` of who asked.
        broker: `address:port` of who was asked; only ever shown, never connected to.
        api_key: Of the request.
        api_version: Of the request.
        correlation_id: Of the request.
        client_id: Of the request.
        request: The frame, without its size.
        response: The frame of the answer; None where none was captured, or none is due.
        expects_response: Whether an answer is due at all: not to Produce with acks = 0.
        request_time_ns: When the request was complete.
        response_time_ns: When the response was complete.
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
    _response_message: Message | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def api(self) -> str:
        """The name of the API."""
        return api_name(self.api_key)

    def request_message(self) -> Message:
        """Decode the request, anew each time: a body may be changed by who asked for it."""
        return decode_request(self.request)

    def response_message(self) -> Message | None:
        """Decode the answer, once: nobody may change its body; None where there is none."""
        if self.response is None:
            return None
        if self._response_message is None:
            self._response_message = decode_response(self.response, self.api_key, self.api_version)
        return self._response_message


@dataclass(slots=True)
class Step:
    """
    A captured request in its place in a plan.

    Attributes:
        number: From 0, in the order in which requests were captured.
        captured: The request.
        after: Numbers of the steps that must be answered before this one is sent.
        left_out: Why it is not sent; empty if it is.
        is_before_rebalance: Whether a member is told that all is well, and next that its group
            rebalances.
        is_before_assignment: Whether a member is not given partitions that it is given later.
        missing_prerequisites: Changes that were left out and that its answer goes by, as
            `policy.changes` tells.
        overlaps: Things that changed while it was asked about them, as in `overlaps.Overlaps`.
    """

    number: int
    captured: CapturedExchange
    after: tuple[int, ...] = ()
    left_out: str = ""
    is_before_rebalance: bool = False
    is_before_assignment: bool = False
    missing_prerequisites: frozenset[str] = frozenset()
    overlaps: Mapping[tuple[Any, ...], bool] = field(default_factory=dict)
