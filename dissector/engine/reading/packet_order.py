"""
Puts the messages of a capture in packet order, with bounded memory: as objects, or as numbers.

Exchanges come as they end, so a request comes late. As numbers, messages are yielded in batches; a
window is retained as long as one of its messages waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.messages import Message

Window = TypeVar("Window")

MAX_WAITING = 100_000
"""Messages that may wait for an earlier request; beyond that the first are yielded out of order."""

BATCH_MESSAGES = 20_000
"""Messages of a batch."""

_PACKET, _WINDOW, _ROW, _SIDE = range(4)


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


@dataclass(slots=True)
class OrderedBatch(Generic[Window]):
    """
    Messages in packet order.

    Attributes:
        windows: Their windows, in order.
        window: Of each message, the index of its window.
        row: The row of its exchange in the window.
        side: 0 for the request, 1 for the response.
        packet: The packet that completed it.
    """

    windows: list[Window]
    window: Ints
    row: Ints
    side: Ints
    packet: Ints


class PacketOrderBuffer(Generic[Window]):
    """Retains messages until no open exchange can have an earlier one."""

    def __init__(self) -> None:
        self._table = np.zeros((4, 0), np.int64)
        self._windows: dict[int, Window] = {}
        self._number = 0

    def add(self, window: Window, packets: Ints) -> Iterator[OrderedBatch[Window]]:
        """
        Add the messages of a window; yield those beyond the limit.

        Args:
            window: The window.
            packets: For each exchange, which packet completed the request and the response; NONE
                without one.
        """
        row, side = np.nonzero(packets != NONE)
        number = np.full(len(row), self._number)
        self._windows[self._number] = window
        self._number += 1
        new = np.stack([packets[row, side], number, row, side])
        table = np.concatenate([self._table, new], axis=1)
        self._table = table[:, np.lexsort(table[::-1])]
        return self._first(max(0, self._table.shape[1] - MAX_WAITING))

    def ready(self, low_watermark: int) -> Iterator[OrderedBatch[Window]]:
        """Yield the messages before the low watermark: from there on messages may follow."""
        return self._first(int(np.searchsorted(self._table[_PACKET], low_watermark)))

    def drain(self) -> Iterator[OrderedBatch[Window]]:
        """Yield the rest, at the end of the capture."""
        return self._first(self._table.shape[1])

    def _first(self, count: int) -> Iterator[OrderedBatch[Window]]:
        first, self._table = self._table[:, :count], self._table[:, count:]
        for begin in range(0, count, BATCH_MESSAGES):
            batch = first[:, begin : begin + BATCH_MESSAGES]
            window, numbers = distinct(batch[_WINDOW])
            windows = [self._windows[number] for number in numbers.tolist()]
            yield OrderedBatch(windows, window, batch[_ROW], batch[_SIDE], batch[_PACKET])
        remaining = set(distinct(self._table[_WINDOW])[1].tolist())
        self._windows = {
            number: each for number, each in self._windows.items() if number in remaining
        }
