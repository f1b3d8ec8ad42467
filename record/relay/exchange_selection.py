"""Recording of the exchanges that pass a display filter, once it is known whether they do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dissector.filter import Filter
from dissector.protocol.facts import Facts, collect
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message, decode_request, decode_response
from record.packets.packet_sink import BROKER, CLIENT, PacketSink
from record.relay.frame_splitter import SIZE_BYTES
from record.relay.requests_in_flight import ForwardedRequest

LIVE_COLUMNS = frozenset(
    (
        *("connection", "client", "broker", "api_key", "api", "api_version", "correlation_id"),
        *("client_id", "status", "request_time_ns", "response_time_ns", "latency_ms"),
        *("request_bytes", "response_bytes", "errors", "topics", "problems"),
    )
)
"""The columns that an exchange has while it passes."""

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame with its size, as it is recorded, and when it passed, in ns since the epoch."""

    frame: bytes
    time_ns: int


class ExchangeSelection:
    """
    Records the exchanges of one connection that pass a filter.

    Args:
        chosen: The filter.
        sink: Takes the bytes to record.
        number: Number of the connection.
        ends: Client and broker as `host:port`.
    """

    def __init__(
        self, chosen: Filter, sink: PacketSink, number: int, ends: tuple[str, str]
    ) -> None:
        self._chosen = chosen
        self._sink = sink
        self._number = number
        self._ends = ends
        self._requests: dict[ForwardedRequest, Seen] = {}
        self._names = Facts()

    def add_request(self, frame: bytes, request: ForwardedRequest) -> None:
        """Take a request that was sent on."""
        seen = Seen(frame, time.time_ns())
        row = ExchangeRow(self._number, self._ends, seen, None, self._names)
        if request.api_key == PRODUCE and not (row.request.body or {}).get("acks", 1):
            self._judge(row)
        else:
            self._requests[request] = seen

    def add_response(self, frame: bytes, request: ForwardedRequest) -> None:
        """Take the response to a request."""
        seen = self._requests.pop(request, None)
        if seen is not None:
            response = Seen(frame, time.time_ns())
            self._judge(ExchangeRow(self._number, self._ends, seen, response, self._names))

    def drop(self, request: ForwardedRequest) -> None:
        """Forget a request: its response is too large to be judged."""
        self._requests.pop(request, None)

    def end(self) -> None:
        """Judge the requests that got no response."""
        for seen in self._requests.values():
            self._judge(ExchangeRow(self._number, self._ends, seen, None, self._names))
        self._requests.clear()

    def _judge(self, row: ExchangeRow) -> None:
        if self._chosen.matches(row):
            self._sink.add(self._number, CLIENT, row.sent.frame, row.sent.time_ns)
            if row.received is not None:
                self._sink.add(self._number, BROKER, row.received.frame, row.received.time_ns)


class ExchangeRow:
    """
    An exchange as a row for display filters; numbers of packets are null.

    Args:
        number: Number of the connection.
        ends: Client and broker as `host:port`.
        sent: The request.
        received: The response; None without one.
        names: Names of topic ids, learned from responses.
    """

    def __init__(
        self,
        number: int,
        ends: tuple[str, str],
        sent: Seen,
        received: Seen | None,
        names: Facts,
    ) -> None:
        self.sent = sent
        self.received = received
        self.request = decode_request(sent.frame[SIZE_BYTES:])
        self._number = number
        self._ends = ends
        self._names = names
        self._response: Message | None = None
        if received is not None:
            key, version = self.request.api_key, self.request.shown_version
            self._response = decode_response(received.frame[SIZE_BYTES:], key, version)
        self._facts = Facts()
        for message in (self.request, self._response):
            if message is not None and message.schema is not None and message.body is not None:
                version = message.api_version or 0
                collect(message.schema, version, message.body, self._facts)
        names.names.update(self._facts.names)

    def column(self, name: str) -> object:
        """Return a column of `pairs`."""
        request, response = self.request, self._response
        match name:
            case "api" | "api_key" | "correlation_id" | "client_id":
                return getattr(request, name)
            case "api_version":
                return request.shown_version
            case "connection":
                return self._number
            case "client" | "broker":
                return self._ends[name == "broker"]
            case "status":
                return self._status()
            case "request_bytes":
                return request.size
            case "response_bytes":
                return None if response is None else response.size
            case "request_time_ns":
                return self.sent.time_ns
            case "response_time_ns":
                return None if self.received is None else self.received.time_ns
            case "latency_ms":
                return self._latency_ms()
            case "errors":
                return list(self._facts.errors)
            case "topics":
                return [self._topic(each) for each in self._facts.topics]
            case "problems":
                messages = (request, response)
                return [str(each) for found in messages if found for each in found.problems]
        return None

    def body(self, kind: str) -> Mapping[str, Any] | None:
        """Return the decoded body of the `request` or the `response`, or None."""
        message = self.request if kind == "request" else self._response
        return None if message is None else message.body

    def _topic(self, topic: str | UUID) -> str:
        return topic if isinstance(topic, str) else self._names.names.get(topic, str(topic))

    def _status(self) -> str:
        if self.received is not None:
            return "answered"
        acks = (self.request.body or {}).get("acks", 1)
        return "unanswered" if acks or self.request.api_key != PRODUCE else "no_response"

    def _latency_ms(self) -> float | None:
        if self.received is None:
            return None
        return (self.received.time_ns - self.sent.time_ns) / _NS_PER_MS
