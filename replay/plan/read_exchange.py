"""
What a plan reads in an exchange, once for all exchanges with the same bytes.

Clients repeat themselves: heartbeats, metadata and refused requests differ in nothing but their
correlation ids.
"""

from __future__ import annotations

from functools import cached_property

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.protocol.broker_requests import is_between_brokers
from dissector.protocol.messages import Message
from dissector.protocol.undeclared_nulls import has_undeclared_null
from replay.order.exclusion_policy import (
    is_handshake,
    provided_prerequisites,
    why_left_out,
    why_not_ready,
    why_partition_was_new,
)
from replay.order.read_write_sets import ReadWriteSets, read_write_sets_of
from replay.plan.request_shapes import Shape, shape_of
from replay.plan.sequence_gaps import Batch, produced_batches
from replay.plan.shown_cluster import software_of
from replay.plan.taken_rows import TakenRows

_MOST_BYTES = 2 << 20
"""Amount of frames that are remembered: decoded, they take many times as much."""

_Key = tuple[bytes, bytes, bytes]
"""The bytes of request and response but their correlation ids."""


class ReadExchange:
    """
    What a plan reads in an exchange with a request; all of it depends on the bytes alone.

    Attributes:
        request: The request.
        response: The response.
        status: As of `Exchange`.
        names: Topic ids that it shows, and their names.
        is_readable: Whether all its fields can be read.
        software: The software that the client names.
        is_between_brokers: Whether brokers or controllers sent it; None if it does not show.
    """

    def __init__(self, exchange: Exchange, request: Message, allow: frozenset[str]) -> None:
        self.request = request
        self.response = exchange.response
        self.status = exchange.status
        self.names = {key: name for facts in exchange.facts for key, name in facts.names.items()}
        self.is_readable = not any(map(has_undeclared_null, exchange.messages))
        self.software = software_of(request)
        self.is_between_brokers = None if is_handshake(request) else is_between_brokers(request)
        self._is_logged, self._allow = exchange.is_logged, allow

    @cached_property
    def shape(self) -> Shape | None:
        """Its shape; None without one."""
        return shape_of(self.request, self.response)

    @cached_property
    def batches(self) -> list[Batch]:
        """The batches of a Produce request."""
        return list(produced_batches(self.request, self.response))

    @cached_property
    def changed(self) -> frozenset[str]:
        """The prerequisites that it provides."""
        return provided_prerequisites(self.request, self.response)

    @cached_property
    def why_partition_was_new(self) -> str:
        """Why it is left out if a captured retry succeeded; empty if it is sent."""
        return why_partition_was_new(self.request.api or "", self.response)

    @cached_property
    def why_left_out(self) -> str:
        """Why it is not sent; empty if it is sent."""
        reason = why_left_out(self.request, self._allow)
        return reason or why_not_ready(self.request.api or "", self.response, self._is_logged)

    @cached_property
    def sets(self) -> ReadWriteSets:
        """Its read and write sets."""
        return read_write_sets_of(self.request, self.response)


class ReadExchanges:
    """
    The latest exchanges that were read, by their bytes.

    Args:
        names: Known names of topic ids.
        allow: APIs that the user allows.
    """

    def __init__(self, names: TopicNames, allow: frozenset[str]) -> None:
        self._names, self._allow = names, allow
        self._read: dict[_Key, ReadExchange] = {}
        self._bytes = 0

    def read(self, rows: TakenRows, row: int, is_whole: bool) -> ReadExchange | None:
        """
        Return what is read in an exchange.

        Args:
            rows: The rows of a window.
            row: The row.
            is_whole: Whether the exchange is complete and answered, and as it was captured.

        Returns:
            What was read in the last one with the same bytes; None for a response alone.
        """
        # What a request log lacks does not show in the bytes.
        key = _key(*rows.frames(row)) if is_whole and not rows.are_logged else None
        found = None if key is None else self._read.pop(key, None)
        if found is None:
            exchange = rows.exchange(row, self._names)
            if exchange.request is None:
                return None
            found = ReadExchange(exchange, exchange.request, self._allow)
            self._bytes += 0 if key is None else _size(key)
        if key is not None:
            self._read[key] = found
        while self._bytes > _MOST_BYTES:
            oldest = next(iter(self._read))
            del self._read[oldest]
            self._bytes -= _size(oldest)
        return found


def _key(request: bytes, response: bytes) -> _Key:
    return request[:4], request[8:], response[4:]


def _size(key: _Key) -> int:
    return sum(map(len, key))
