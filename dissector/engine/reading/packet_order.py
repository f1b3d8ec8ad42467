"""The messages of a capture in the order of its packets, with bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.messages import Message

MAX_WAITING = 100_000
"""Messages that may wait for a request before them to be told; the first go out of order then."""


class OrderedMessage(NamedTuple):
    """
    A message, the exchange it belongs to, and where it was completed.

    Attributes:
        packet: Number of the packet, from 1.
        number: In which order messages of one packet come.
        time_ns: When it was captured.
        exchange: The exchange.
        message: The message.
    """

    packet: int
    number: int
    time_ns: int
    exchange: Exchange
    message: Message


class PacketOrder:
    """
    Puts messages in the order of the packets that completed them.

    Exchanges come as they end, so a request comes late. It is held until no exchange that is still
    open can have an earlier message.
    """

    def __init__(self) -> None:
        self._waiting: list[OrderedMessage] = []
        self._number = 0

    def add(self, exchange: Exchange, *, request_shown: bool = False) -> Iterator[OrderedMessage]:
        """
        Take the messages of an exchange; yield what can't wait for lack of room.

        Args:
            exchange: The exchange.
            request_shown: Whether its request was shown already.
        """
        for message in exchange.messages:
            asked = message.kind == "request"
            if asked and request_shown:
                continue
            packet = exchange.request_packet if asked else exchange.response_packet
            time_ns = exchange.request_time_ns if asked else exchange.response_time_ns
            heard = OrderedMessage(packet or 0, self._number, time_ns or 0, exchange, message)
            self._number += 1
            heapq.heappush(self._waiting, heard)
        while len(self._waiting) > MAX_WAITING:
            yield heapq.heappop(self._waiting)

    def ready(self, low_watermark: int) -> Iterator[OrderedMessage]:
        """Yield the messages before a packet, from 0, the first that may still be told of."""
        while self._waiting and self._waiting[0].packet <= low_watermark:
            yield heapq.heappop(self._waiting)

    def drain(self) -> Iterator[OrderedMessage]:
        """Yield what is left, at the end of the capture."""
        while self._waiting:
            yield heapq.heappop(self._waiting)
