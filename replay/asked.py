"""A request on its way, and how to wait for its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from construct import Container

from dissector.errors import DecodeError, ReplayError
from dissector.protocol.apis import api, api_name
from dissector.protocol.codec import Codec
from dissector.protocol.headers import (
    API_VERSIONS,
    request_header_version,
    response_header_version,
)
from dissector.protocol.messages import Message, decode_response

if TYPE_CHECKING:
    from replay.link import Link


LAST_CORRELATION_ID = 2**31 - 9
"""Java clients keep the eight above for SASL (Kafka, SaslClientAuthenticator.java)."""


def next_id(correlation_id: int, count: int = 1) -> int:
    """Return the correlation id of the next request, or of one that comes later."""
    return (correlation_id + count - 1) % LAST_CORRELATION_ID + 1


class Shape(NamedTuple):
    """How a version of an API is written; headers by their versions."""

    request_header: int
    request: Codec
    response_header: int
    response: Codec


@cache
def shape_of(api_key: int, version: int) -> Shape:
    """
    Return how a version of an API is written.

    Raises:
        DecodeError: It is not known.
    """
    found = api(api_key)
    if found is None:
        raise DecodeError(f"API key {api_key} is not known")
    return Shape(
        request_header_version(api_key, version),
        found.request.codec(version),
        response_header_version(api_key, version),
        found.response.codec(version),
    )


def patience_s(body: Mapping[str, Any]) -> float:
    """Return how long a request asks the broker to wait."""
    times = (body.get(name) or 0 for name in ("max_wait_ms", "rebalance_timeout_ms", "timeout_ms"))
    return max(0, *times) / 1000


class Asked:
    """
    A request that was sent; await `answer()`.

    Attributes:
        api_key: Of the request.
        version: Of the request.
        sent_ns: When it was handed over, by `time.perf_counter_ns`.
        answered_ns: When the answer was complete; 0 before, and where none is due.
        is_due: Whether it will be answered.
    """

    __slots__ = (
        "_link",
        "answered_ns",
        "api_key",
        "correlation_id",
        "frame",
        "is_due",
        "patience_s",
        "sent_ns",
        "version",
    )

    def __init__(self, link: Link, api_key: int, version: int, patience_s: float) -> None:
        self._link = link
        self.api_key = api_key
        self.version = version
        self.patience_s = patience_s
        self.correlation_id = 0
        self.sent_ns = time.perf_counter_ns()
        self.answered_ns = 0
        self.is_due = True
        self.frame: asyncio.Future[bytes] | None = None

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.version}"

    def take_many(self, data: bytes | bytearray, start: int, now_ns: int) -> tuple[int, int]:
        """
        Take answers that can be taken many at a time: none by who stands for a single request.

        Args:
            data: What came.
            start: Where in it the first answer begins, with its size.
            now_ns: When that was, by `time.perf_counter_ns`.

        Returns:
            How many there were, and where they end.
        """
        return 0, start

    def take(self, frame: bytes) -> None:
        """Let those go on that wait for the answer."""
        if self.frame is not None and not self.frame.done():
            self.frame.set_result(frame)

    def lose(self, failure: ReplayError) -> None:
        """Tell those who wait for the answer that none will come."""
        if self.frame is not None and not self.frame.done():
            self.frame.set_exception(failure)
            self.frame.exception()  # seen: nobody may be waiting for it

    def alone(self) -> Asked:
        """Return one that can be waited for, where this one stands for several."""
        one = Asked(self._link, self.api_key, self.version, self.patience_s)
        one.correlation_id = self.correlation_id
        one.sent_ns, one.answered_ns = self.sent_ns, self.answered_ns
        one.frame = asyncio.get_running_loop().create_future()
        return one

    async def answer(self) -> Container | None:
        """
        Wait for the answer and return its body; None where none is due.

        Bytes left over behind it are only a problem in `message()`: real brokers do that too.

        Raises:
            ReplayError: The connection is lost, the time is over, or the answer can't be read.
        """
        if self.frame is None:
            await self._link.room()
            return None
        frame = await self.frame
        shape = shape_of(self.api_key, self.version)
        start = 4 + shape.response_header
        if frame[4:start] == bytes(shape.response_header) and self.api_key != API_VERSIONS:
            try:
                return shape.response.parse(frame[start:])
            except DecodeError:
                pass  # the long way says where
        message = await self.message()
        if message.body is None:
            raise ReplayError(self._link.address, f"answered garbage: {message.problems[0]}")
        return message.body

    async def message(self) -> Message:
        """Wait for the answer and return it with what is wrong with it; one must be due."""
        assert self.frame is not None
        return decode_response(await self.frame, self.api_key, self.version)
