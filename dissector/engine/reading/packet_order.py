"""Yields the messages of a capture in packet order, with bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.messages import Message

MAX_WAITING = 100_000
"""Messages that may wait for an earlier request; beyond that the first are yielded out of order."""


class OrderedMessage(NamedTuple):
    """
    A message, its exchange, and the packet that completed it.

    Attributes:
        packet: Number of the packet, from 1.
        number: Order of messages of one packet.
        time_ns: Time of capture.
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

    Exchanges come as they end, so a request comes late. A message waits until no open exchange can
    have an earlier one.
    """

    def __init__(self) -> None:
        self._waiting: list[OrderedMessage] = []
        self._number = 0

    def add(self, exchange: Exchange, *, request_shown: bool = False) -> Iterator[OrderedMessage]:
        """
        Add the messages of an exchange; yield those beyond the limit.

        Args:
            exchange: The exchange.
            request_shown: Whether its request was shown already.
        """
        for message in exchange.messages:
            is_request = message.kind == "request"
            if is_request and request_shown:
                continue
            packet = exchange.request_packet if is_request else exchange.response_packet
            time_ns = exchange.request_time_ns if is_request else exchange.response_time_ns
            ordered = OrderedMessage(packet or 0, self._number, time_ns or 0, exchange, message)
            self._number += 1
            heapq.heappush(self._waiting, ordered)
        while len(self._waiting) > MAX_WAITING:
            yield heapq.heappop(self._waiting)

    def ready(self, low_watermark: int) -> Iterator[OrderedMessage]:
        """Yield the messages before the low watermark: from there on messages may follow."""
        while self._waiting and self._waiting[0].packet <= low_watermark:
            yield heapq.heappop(self._waiting)

    def drain(self) -> Iterator[OrderedMessage]:
        """Yield the rest, at the end of the capture."""
        while self._waiting:
            yield heapq.heappop(self._waiting)
