"""A request in flight, and how to await its response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from construct import Container

from dissector.errors import DecodeError, ReplayError
from dissector.protocol.apis import api, api_name
from dissector.protocol.codecs.codec import Codec
from dissector.protocol.headers import (
    API_VERSIONS,
    request_header_version,
    response_header_version,
)
from dissector.protocol.messages import Message, decode_response
from dissector.protocol.schema import Schema
from dissector.protocol.undeclared_nulls import has_null_list, holds_null_list

NULL_LIST = "a null for a list that is not nullable"

LAST_CORRELATION_ID = 2**31 - 9
"""Java clients reserve the eight ids above for SASL (Kafka, SaslClientAuthenticator.java)."""


def next_id(correlation_id: int, count: int = 1) -> int:
    """Return the correlation id of the next request, or of the `count`-th one from here."""
    return (correlation_id + count - 1) % LAST_CORRELATION_ID + 1


class ApiCodecs(NamedTuple):
    """Header versions and codecs of one version of an API."""

    request_header: int
    request: Codec
    response_header: int
    response: Codec
    version: int
    response_schema: Schema

    def parse_response(self, body: bytes) -> Container:
        """
        Return the body of a response, which clients can read.

        Raises:
            DecodeError: It is damaged, or has a null for a list that is not nullable.
        """
        parsed = self.response.parse(body)
        if holds_null_list(self.response_schema, self.version, parsed):
            raise DecodeError(NULL_LIST)
        return parsed


@cache
def codecs_of(api_key: int, version: int) -> ApiCodecs:
    """
    Return header versions and codecs of one version of an API.

    Raises:
        DecodeError: The API or the version is unknown.
    """
    known_api = api(api_key)
    if known_api is None:
        raise DecodeError(f"API key {api_key} is not known")
    return ApiCodecs(
        request_header_version(api_key, version),
        known_api.request.codec(version),
        response_header_version(api_key, version),
        known_api.response.codec(version),
        version,
        known_api.response,
    )


def patience_s(body: Mapping[str, Any]) -> float:
    """Return the time a request allows the broker to delay its response."""
    longest_ms = 0
    for name in ("max_wait_ms", "rebalance_timeout_ms", "timeout_ms"):
        longest_ms = max(longest_ms, body.get(name) or 0)
    return longest_ms / 1000


class Peer(NamedTuple):
    """
    The broker of a request.

    Attributes:
        address: `host:port`.
        drain: Waits until the broker has taken most of the data sent.
    """

    address: str
    drain: Callable[[], Awaitable[None]]


class PendingRequest:
    """
    A request in flight; await `response()` for the body of its response.

    Attributes:
        api_key: API key of the request.
        version: Version of the request.
        sent_ns: Time of the hand-over for sending, by `time.perf_counter_ns`.
        response_ns: Completion time of the response; 0 before, and if responses are suppressed.
        expects_response: Whether a response is expected; False for Produce with acks = 0.
    """

    __slots__ = (
        "_peer",
        "api_key",
        "correlation_id",
        "expects_response",
        "frame",
        "patience_s",
        "response_ns",
        "sent_ns",
        "version",
    )

    def __init__(self, peer: Peer, api_key: int, version: int, patience_s: float) -> None:
        self._peer = peer
        self.api_key = api_key
        self.version = version
        self.patience_s = patience_s
        self.correlation_id = 0
        self.sent_ns = time.perf_counter_ns()
        self.response_ns = 0
        self.expects_response = True
        self.frame: asyncio.Future[bytes] | None = None

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.version}"

    def receive_many(self, data: bytes | bytearray, start: int, now_ns: int) -> tuple[int, int]:
        """
        Take responses in bulk; this class holds a single request and takes none.

        Args:
            data: The bytes received.
            start: Offset of the first response in them, at its size field.
            now_ns: Time of reception, by `time.perf_counter_ns`.

        Returns:
            The number of responses taken, and the offset after them.
        """
        return 0, start

    def receive(self, frame: bytes) -> None:
        """Resolve the future with the frame of the response."""
        if self.frame is not None and not self.frame.done():
            self.frame.set_result(frame)

    def fail(self, failure: ReplayError) -> None:
        """Fail the future, as no response will follow."""
        if self.frame is not None and not self.frame.done():
            self.frame.set_exception(failure)
            self.frame.exception()  # mark as retrieved: there may be no waiter

    def split_one(self) -> PendingRequest:
        """Return an awaitable copy for one request of a batch."""
        single = PendingRequest(self._peer, self.api_key, self.version, self.patience_s)
        single.correlation_id = self.correlation_id
        single.sent_ns, single.response_ns = self.sent_ns, self.response_ns
        single.frame = asyncio.get_running_loop().create_future()
        return single

    async def response(self) -> Container | None:
        """
        Await the response and return its body; None if responses are suppressed.

        Surplus bytes after the body are only reported by `message()`: real brokers send them too.

        Raises:
            ReplayError: The connection is lost, timed out, or the response can't be decoded.
        """
        if self.frame is None:
            await self._peer.drain()
            return None
        frame = await self.frame
        shape = codecs_of(self.api_key, self.version)
        start = 4 + shape.response_header
        if frame[4:start] == bytes(shape.response_header) and self.api_key != API_VERSIONS:
            try:
                return shape.parse_response(frame[start:])
            except DecodeError:
                pass  # message() reports the position
        message = await self.message()
        body = message.body
        if body is None or has_null_list(message):
            what = message.problems[0] if body is None else f"{self} with {NULL_LIST}"
            raise ReplayError(self._peer.address, f"sent an undecodable response: {what}")
        return body

    async def message(self) -> Message:
        """Await the response and return it with its problems; not for suppressed responses."""
        assert self.frame is not None
        return decode_response(await self.frame, self.api_key, self.version)
